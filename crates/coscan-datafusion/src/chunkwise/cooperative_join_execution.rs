//! The execution of a join of clustered tables.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coscan_runtime::{JointScan, JointScanRequest, ScanMetrics};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use tokio::sync::mpsc::Sender;

use super::chunk_plan::ChunkPlan;
use super::joint_chunks::Clustering;
use super::joint_rows::{JointInput, JointRows};
use super::needed::Needed;
use super::output::send_all;
use crate::error::from_scan;
use crate::execution::exec::SharedScanExec;
use crate::execution::metrics::ScanCounts;
use crate::operator::Plan;

/// The plan over all rows of its tables at once. It is executed if the tables are found not to be clustered. Later
/// plans use that finding and have no such join.
pub(super) struct WholeTables {
    pub(super) filling: ChunkPlan,
    pub(super) tables: Vec<Plan>,
    pub(super) collected: Vec<Plan>,
    /// Set when it is executed.
    pub(super) is_executed: Arc<AtomicBool>,
}

/// Whether the tables were joined as a whole. A copy of the plan has not been executed.
#[derive(Debug, Default)]
pub(super) struct IsExecuted(pub(super) Arc<AtomicBool>);

impl Clone for IsExecuted {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl WholeTables {
    fn execute(&self, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.is_executed.store(true, Ordering::Relaxed);
        let plan = self.filling.over_whole(&self.tables, &self.collected)?;
        let options = context.session_config().options();
        let plan = EnsureRequirements::new().optimize(plan, options)?;
        execute_stream(plan, Arc::clone(context))
    }
}

/// An execution, which all its tasks share.
pub(super) struct Joining {
    pub(super) scans: Vec<SharedScanExec>,
    pub(super) clustering: Arc<Clustering>,
    pub(super) needed: Arc<Needed>,
    pub(super) filling: ChunkPlan,
    /// Whether the joins of the filling collect rows.
    pub(super) has_collected: bool,
    pub(super) whole: WholeTables,
    pub(super) context: Arc<TaskContext>,
    pub(super) counts: ScanCounts,
}

impl Joining {
    /// Starts the scan, and a task for each of its workers.
    pub(super) async fn start(
        self: Arc<Self>,
        schema: SchemaRef,
    ) -> Result<SendableRecordBatchStream> {
        let Some(first) = self.scans.first() else { return internal_err!("a join without tables") };
        let label = first.label(&self.context);
        let Some(rows) = self.clustering.rows(first.manager(), &label).await? else {
            return self.whole.execute(&self.context);
        };
        let joint = self.clustering.register(first.manager(), &rows)?;
        if self.has_collected {
            // This comes before the start of the scan, since workers that wait for it would hold
            // chunks.
            self.filling.collect(&self.context).await?;
        }
        let chunks = self.needed_chunks(&rows);
        self.counts.chunks_needed.add(chunks.len());
        self.counts.chunks_pruned.add(rows.len() - chunks.len());
        let workers = first.partitions_max().min(chunks.len()).max(1);
        let (columns, inputs) = self.columns();
        let request = JointScanRequest { columns, chunks, workers, weight: first.weight(), label };
        let scan = first.manager().start_joint_scan(&joint, request).map_err(from_scan)?;
        let mut output = RecordBatchReceiverStreamBuilder::new(schema, workers);
        let counting = Arc::new(Counting { scan: Arc::clone(&scan), joining: Arc::clone(&self) });
        for worker in 0..workers {
            let rows = JointRows::new(scan.worker(worker), Arc::clone(&inputs));
            let task = join_chunks(Arc::clone(&self), rows, Arc::clone(&counting), output.tx());
            output.spawn(task);
        }
        Ok(output.build())
    }

    /// The columns to read of each table, and the inputs of the plan as indexes into them.
    fn columns(&self) -> (Vec<Vec<usize>>, Arc<[JointInput]>) {
        let tables = self.clustering.table_of_scans();
        let mut columns = vec![Vec::new(); self.clustering.table_count()];
        for (scan, &table) in self.scans.iter().zip(tables) {
            columns[table].extend_from_slice(scan.projection());
        }
        for columns in &mut columns {
            columns.sort_unstable();
            columns.dedup();
        }
        let input = |(scan, &table): (&SharedScanExec, &usize)| {
            let all: &[usize] = &columns[table];
            let position = |column: &usize| all.partition_point(|other| other < column);
            let columns = scan.projection().iter().map(position).collect();
            JointInput { table, columns, schema: scan.schema() }
        };
        let inputs = self.scans.iter().zip(tables).map(input).collect();
        (columns, inputs)
    }

    /// The joint chunks that are needed.
    fn needed_chunks(&self, rows: &[Vec<Range<u64>>]) -> Vec<usize> {
        let is_needed_by = |scan: usize, rows: &Range<u64>| {
            let scan = &self.scans[scan];
            let mut chunks = scan.table().table().layout().chunks_in(rows.clone());
            chunks.any(|chunk| scan.needed_chunks().binary_search(&chunk).is_ok())
        };
        let tables = self.clustering.table_of_scans();
        let is_needed =
            |joint: usize| self.needed.is(&|scan| is_needed_by(scan, &rows[joint][tables[scan]]));
        (0..rows.len()).filter(|&joint| is_needed(joint)).collect()
    }
}

/// Executes the plan for the joint chunks of a worker.
async fn join_chunks(
    joining: Arc<Joining>,
    rows: JointRows,
    _counting: Arc<Counting>,
    output: Sender<Result<RecordBatch>>,
) -> Result<()> {
    while rows.next_chunk().await? {
        let joined = joining.filling.execute(rows.inputs(), &joining.context)?;
        if !send_all(joined, &output).await? {
            break;
        }
    }
    Ok(())
}

/// Adds the metrics of a scan to those of the plan when the last of its workers ends.
struct Counting {
    scan: Arc<JointScan>,
    joining: Arc<Joining>,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.joining.counts.add(&ScanMetrics::default(), &self.scan.metrics());
    }
}
