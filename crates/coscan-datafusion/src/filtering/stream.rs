//! The execution of a filter: it hands on the rows that pass, in batches of the usual size.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::{BatchCoalescer, filter_record_batch};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, MetricBuilder, MetricType, RatioMetrics, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};

use crate::operator::{Operator, OperatorExec, only_input};

/// Decides which rows of a batch pass.
pub(super) trait RowTest: Send + 'static {
    /// Whether each row passes; `None` if all do.
    ///
    /// # Errors
    /// If a condition cannot be evaluated.
    fn passes(&mut self, batch: &RecordBatch) -> Result<Option<BooleanArray>>;
}

/// The execution of a partition of a filter.
pub(super) struct Filtering<T> {
    test: T,
    /// The columns that it passes on, if not all.
    projection: Option<Vec<usize>>,
    /// Rows that passed and are not handed out yet.
    passed: BatchCoalescer,
    /// A batch behind them of which all rows passed.
    whole: Option<RecordBatch>,
    baseline: BaselineMetrics,
    selectivity: RatioMetrics,
}

impl<T: RowTest> Filtering<T> {
    /// The rows of a partition of an operator's only input that pass.
    ///
    /// # Errors
    /// If the input cannot be executed.
    pub(super) fn stream<O: Operator>(
        plan: &OperatorExec<O>,
        (test, projection): (T, Option<Vec<usize>>),
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (schema, batch_rows) = (plan.schema(), context.session_config().batch_size());
        let filtering = Self {
            test,
            projection,
            // As in the engine: large batches are handed on without a copy.
            passed: BatchCoalescer::new(Arc::clone(&schema), batch_rows)
                .with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            whole: None,
            baseline: BaselineMetrics::new(&plan.metrics, partition),
            selectivity: MetricBuilder::new(&plan.metrics)
                .with_type(MetricType::Summary)
                .ratio_metrics("selectivity", partition),
        };
        let input = only_input(&plan.inputs)?.execute(partition, context)?;
        // The input is dropped at its end, and with it what it holds.
        let rows = stream::try_unfold((filtering, Some(input)), async |(mut this, mut input)| {
            loop {
                if let Some(batch) = this.next_batch() {
                    this.selectivity.add_part(batch.num_rows());
                    let batch = batch.record_output(&this.baseline);
                    return Ok(Some((batch, (this, input))));
                }
                let Some(batches) = &mut input else { return Ok(None) };
                match batches.next().await.transpose()? {
                    Some(batch) => this.push(&batch)?,
                    None => {
                        input = None;
                        this.passed.finish_buffered_batch()?;
                    }
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn next_batch(&mut self) -> Option<RecordBatch> {
        self.passed.next_completed_batch().or_else(|| self.whole.take())
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        self.selectivity.add_total(batch.num_rows());
        let passes = self.test.passes(batch)?;
        let columns = match &self.projection {
            Some(projection) => batch.project(projection)?,
            None => batch.clone(),
        };
        match passes {
            // Pushing with the filter would keep the texts of all rows: views would refer to their buffers.
            Some(passes) => self.passed.push_batch(filter_record_batch(&columns, &passes)?)?,
            // Behind a few rows that passed before, the coalescer would copy it.
            None => {
                self.passed.finish_buffered_batch()?;
                self.whole = Some(columns);
            }
        }
        Ok(())
    }
}
