//! Cheaper filters. In place of the engine's operator, [`Filter`] evaluates the conditions of an AND each on the columns that it
//! reads ([`conjunction`]).

mod conjunction;
mod cost;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{BatchCoalescer, filter_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, MetricBuilder, MetricType, RatioMetrics, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, replace_children_if_necessary};
use futures::{StreamExt, stream};

use crate::operator::{Operator, OperatorExec, Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_up};
use conjunction::Conjunction;

/// Replaces the engine's filters. It must run after all rules that look for them.
pub(crate) const CHEAPER_FILTERS: Rule =
    Rule::new("coscan_cheaper_filters", |plan, _| cheaper_filters(plan));

/// Replaces the engine's filters in a plan.
pub(crate) fn cheaper_filters(plan: &Plan) -> Changed {
    change_up(plan, cheaper)
}

fn cheaper(plan: &Plan) -> Changed {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(None) };
    let is_dynamic = filter
        .predicate()
        .exists(|part| Ok(part.downcast_ref::<DynamicFilterPhysicalExpr>().is_some()))?;
    // A filter with a limit stops in the middle of a batch.
    if is_dynamic || filter.fetch().is_some() {
        return Ok(None);
    }
    let condition = Conjunction::new(filter.predicate(), &filter.input().schema())?;
    let operator = Filter { replaced: Arc::clone(plan), condition: Arc::new(condition) };
    Ok(Some(Arc::new(OperatorExec::above(operator, vec![Arc::clone(filter.input())])?)))
}

/// The engine's filter that an operator is, or in whose place it is. Its input may be another one by now.
pub(crate) fn engine_filter(plan: &Plan) -> Option<&FilterExec> {
    let cheaper = plan.downcast_ref::<OperatorExec<Filter>>();
    cheaper.map_or(plan, |cheaper| &cheaper.operator.replaced).downcast_ref()
}

/// A filter with the properties, text and statistics of the engine's operator.
#[derive(Clone, Debug)]
struct Filter {
    replaced: Plan,
    condition: Arc<Conjunction>,
}

impl Filter {
    /// The columns of the input that it passes on, if not all.
    fn projection(&self) -> Option<&[usize]> {
        self.replaced.downcast_ref::<FilterExec>()?.projection().as_deref()
    }
}

impl Operator for Filter {
    const NAME: &'static str = "FilterExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        let input = Arc::clone(only_input(inputs)?);
        let replaced = replace_children_if_necessary(Arc::clone(&self.replaced), vec![input])?;
        Ok(Arc::clone(replaced.properties()))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        Vec::new()
    }

    fn replaced(&self) -> Option<&Plan> {
        Some(&self.replaced)
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let filtering = Filtering {
            condition: Arc::clone(&plan.operator.condition),
            projection: plan.operator.projection().map(<[usize]>::to_vec),
            // As in the engine: large batches are handed on without a copy.
            passed: BatchCoalescer::new(plan.schema(), batch_rows)
                .with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            baseline: BaselineMetrics::new(&plan.metrics, partition),
            selectivity: MetricBuilder::new(&plan.metrics)
                .with_type(MetricType::Summary)
                .ratio_metrics("selectivity", partition),
        };
        let input = only_input(&plan.inputs)?.execute(partition, context)?;
        Ok(filtering.stream(plan.schema(), input))
    }
}

/// The execution of a partition.
struct Filtering {
    condition: Arc<Conjunction>,
    projection: Option<Vec<usize>>,
    /// Rows that passed and are not handed out yet.
    passed: BatchCoalescer,
    baseline: BaselineMetrics,
    selectivity: RatioMetrics,
}

impl Filtering {
    fn stream(
        self,
        schema: SchemaRef,
        input: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        // The input is dropped at its end, and with it what it holds.
        let rows = stream::try_unfold((self, Some(input)), async |(mut this, mut input)| {
            loop {
                if let Some(batch) = this.passed.next_completed_batch() {
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
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        self.selectivity.add_total(batch.num_rows());
        let passes = self.condition.evaluate(batch)?;
        let columns = match &self.projection {
            Some(projection) => batch.project(projection)?,
            None => batch.clone(),
        };
        // Pushing with the filter would keep the texts of all rows: views would refer to their buffers.
        Ok(self.passed.push_batch(filter_record_batch(&columns, &passes)?)?)
    }
}
