//! An operator above the scan of a plan that records when each partition returns rows, waits and ends.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::Stream;

use super::PartitionReport;

/// The activity of the partitions of a scan.
#[derive(Debug)]
pub(super) struct Probe(Arc<Mutex<Vec<Partition>>>);

#[derive(Debug, Clone, Default)]
struct Partition {
    rows: u64,
    /// The times of its first poll and of its end.
    begun: Option<Instant>,
    ended: Option<Instant>,
    /// The time until it was woken, not until it was polled again.
    waited: Duration,
}

impl Probe {
    /// The plan with the operator above its only scan.
    pub(super) fn above_scan(
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<(Arc<dyn ExecutionPlan>, Self)> {
        let mut probes = Vec::new();
        let insert = |plan: Arc<dyn ExecutionPlan>| {
            if !plan.children().is_empty() {
                return Ok(Transformed::no(plan));
            }
            let count = plan.output_partitioning().partition_count();
            let partitions = Arc::new(Mutex::new(vec![Partition::default(); count]));
            probes.push(Probe(Arc::clone(&partitions)));
            Ok(Transformed::yes(Arc::new(ProbeExec { input: plan, partitions }) as _))
        };
        let plan = plan.transform_up(insert).data()?;
        match (probes.pop(), probes.pop()) {
            (Some(probe), None) => Ok((plan, probe)),
            _ => internal_err!("a plan with one scan was expected"),
        }
    }

    /// The time of the scan, and the activity of each partition. An average chunk has `chunk_rows` rows.
    pub(super) fn report(&self, chunk_rows: f64) -> (Duration, Vec<PartitionReport>) {
        let partitions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = partitions.iter().filter_map(|partition| partition.begun).min();
        let ended = partitions.iter().filter_map(|partition| partition.ended).max();
        let time = begun.zip(ended).map_or(Duration::ZERO, |(begun, ended)| ended - begun);
        let idle = |partition: &Partition| {
            let (Some(begun), Some(ended)) = (partition.begun, partition.ended) else { return 1.0 };
            let busy = (ended - begun).saturating_sub(partition.waited);
            1.0 - (busy.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0)
        };
        let report = |partition: &Partition| PartitionReport {
            rows: partition.rows,
            chunks: partition.rows as f64 / chunk_rows,
            idle: idle(partition),
        };
        (time, partitions.iter().map(report).collect())
    }
}

#[derive(Debug)]
struct ProbeExec {
    input: Arc<dyn ExecutionPlan>,
    partitions: Arc<Mutex<Vec<Partition>>>,
}

impl DisplayAs for ProbeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProbeExec")
    }
}

impl ExecutionPlan for ProbeExec {
    fn name(&self) -> &str {
        "ProbeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = Arc::clone(&self.partitions);
        Ok(Arc::new(Self { input: children.remove(0), partitions }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(ProbeStream {
            input: self.input.execute(partition, context)?,
            partition,
            partitions: Arc::clone(&self.partitions),
            waiting: None,
        }))
    }
}

struct ProbeStream {
    input: SendableRecordBatchStream,
    partition: usize,
    partitions: Arc<Mutex<Vec<Partition>>>,
    /// The time since which it waits, and the waker that records when it was woken.
    waiting: Option<(Instant, Arc<Woken>)>,
}

impl ProbeStream {
    fn note(&self, change: impl FnOnce(&mut Partition)) {
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut partitions[self.partition]);
    }
}

impl Stream for ProbeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let now = Instant::now();
        let waited = self.waiting.take().map_or(Duration::ZERO, |(since, woken)| {
            woken.at().unwrap_or(now).saturating_duration_since(since)
        });
        let woken = Arc::new(Woken { waker: context.waker().clone(), at: Mutex::default() });
        let waker = Waker::from(Arc::clone(&woken));
        let polled = self.input.as_mut().poll_next(&mut Context::from_waker(&waker));
        let rows = match &polled {
            Poll::Ready(Some(Ok(batch))) => batch.num_rows() as u64,
            Poll::Ready(_) => 0,
            Poll::Pending => {
                self.waiting = Some((Instant::now(), woken));
                0
            }
        };
        let is_end = matches!(polled, Poll::Ready(None));
        self.note(|partition| {
            partition.begun.get_or_insert(now);
            partition.waited += waited;
            partition.rows += rows;
            if is_end {
                partition.ended.get_or_insert_with(Instant::now);
            }
        });
        polled
    }
}

impl RecordBatchStream for ProbeStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

impl Drop for ProbeStream {
    fn drop(&mut self) {
        self.note(|partition| {
            partition.ended.get_or_insert_with(Instant::now);
        });
    }
}

/// Wakes a task, and records when it first did so.
struct Woken {
    waker: Waker,
    at: Mutex<Option<Instant>>,
}

impl Woken {
    fn at(&self) -> Option<Instant> {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        self.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_idle_before_it_begins_while_it_waits_and_after_it_ends() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let partition = |rows, begun, ended, waited| Partition {
            rows,
            begun: Some(at(begun)),
            ended: Some(at(ended)),
            waited: Duration::from_millis(waited),
        };
        let partitions = vec![
            partition(300, 0, 100, 0),
            partition(100, 10, 60, 20),
            // This partition was never polled.
            Partition::default(),
        ];
        let (time, reports) = Probe(Arc::new(Mutex::new(partitions))).report(100.0);
        assert_eq!(time, Duration::from_millis(100));
        let idle: Vec<_> =
            reports.iter().map(|report| (report.idle * 100.0).round() as u32).collect();
        assert_eq!(idle, [0, 70, 100]);
        let chunks: Vec<_> = reports.iter().map(|report| report.chunks).collect();
        assert_eq!(chunks, [3.0, 1.0, 0.0]);
    }
}
