//! Cheaper aggregation. In place of the engine's first stage, [`PartialAggregate`] finds the [`groups`] of rows by keys that are
//! compared as integers ([`group_values`]). Accumulators are the engine's.

mod group_values;
mod groups;

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricType, RatioMetrics, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, InputOrderMode, PlanProperties, ReplaceChildrenOptions,
    replace_children_if_necessary,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::chunkwise::leaf::LeafExec;
use crate::operator::{Operator, OperatorExec, Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_up};
use group_values::{KEYS_MAX, is_supported};
use groups::{Groups, Taken};

/// Replaces first stages of aggregations. It must run after all rules that look for them.
pub(crate) const CHEAPER_AGGREGATES: Rule =
    Rule::new("coscan_cheaper_aggregates", |plan, _| cheaper_aggregates(plan));

/// Replaces the first stages of aggregations in a plan.
pub(crate) fn cheaper_aggregates(plan: &Plan) -> Changed {
    change_up(plan, cheaper)
}

/// The operator in the place of a first stage, if it may be cheaper.
fn cheaper(plan: &Plan) -> Changed {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if !is_plain(aggregate) || !has_cheap_keys(aggregate)? {
        return Ok(None);
    }
    let operator = PartialAggregate { replaced: Arc::clone(plan) };
    Ok(Some(Arc::new(OperatorExec::above(operator, vec![Arc::clone(aggregate.input())])?)))
}

/// Whether it is a first stage that reads all rows, in any order, and whose functions compute many groups at once.
fn is_plain(aggregate: &AggregateExec) -> bool {
    *aggregate.mode() == AggregateMode::Partial
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.group_expr().is_single()
        && aggregate.limit_options().is_none()
        && aggregate.aggr_expr().iter().all(|function| function.groups_accumulator_supported())
}

/// Whether its groups are found in less time than by the engine, which is as fast for one key of a fixed width.
fn has_cheap_keys(aggregate: &AggregateExec) -> Result<bool> {
    let input = aggregate.input().schema();
    let keys = aggregate.group_expr().expr().iter().map(|(key, _)| key.data_type(&input));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let is_cheaper = keys.len() > 1 || keys.contains(&DataType::Utf8View);
    Ok(is_cheaper && keys.len() <= KEYS_MAX && keys.iter().all(is_supported))
}

/// The first stage of an aggregation, with the properties, text and statistics of the engine's operator.
#[derive(Clone, Debug)]
struct PartialAggregate {
    replaced: Plan,
}

impl PartialAggregate {
    fn engine(&self) -> Result<&AggregateExec> {
        match self.replaced.downcast_ref() {
            Some(aggregate) => Ok(aggregate),
            None => internal_err!("not in the place of an aggregation"),
        }
    }
}

impl Operator for PartialAggregate {
    const NAME: &'static str = "AggregateExec";

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
        let input = only_input(&plan.inputs)?;
        let aggregation = Aggregation {
            operator: plan.operator.clone(),
            partition,
            input_schema: input.schema(),
            stage: Stage::Groups {
                groups: Groups::new(plan.operator.engine()?, partition, &context)?,
                input: input.execute(partition, Arc::clone(&context))?,
            },
            output: VecDeque::new(),
            output_memory: None,
            metrics: plan.metrics.clone(),
            baseline: BaselineMetrics::new(&plan.metrics, partition),
            reduction: MetricBuilder::new(&plan.metrics)
                .with_type(MetricType::Summary)
                .ratio_metrics("reduction_factor", partition),
            context,
        };
        let states = stream::try_unfold(aggregation, async |mut aggregation| {
            Ok(aggregation.next().await?.map(|states| (states, aggregation)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(plan.schema(), states)))
    }
}

/// The execution of a partition.
struct Aggregation {
    operator: PartialAggregate,
    partition: usize,
    input_schema: SchemaRef,
    stage: Stage,
    /// States that are not handed out yet.
    output: VecDeque<RecordBatch>,
    /// The memory of these states.
    output_memory: Option<MemoryReservation>,
    context: Arc<TaskContext>,
    metrics: ExecutionPlanMetricsSet,
    baseline: BaselineMetrics,
    reduction: RatioMetrics,
}

/// Who aggregates the rows that come next.
enum Stage {
    /// This operator.
    Groups { groups: Groups, input: SendableRecordBatchStream },
    /// The engine's operator.
    Engine(SendableRecordBatchStream),
    /// Nobody: there are none.
    End,
}

impl Aggregation {
    /// The next states, or `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(states) = self.output.pop_front() {
                self.reduction.add_part(states.num_rows());
                return Ok(Some(states.record_output(&self.baseline)));
            }
            self.output_memory = None;
            let batch = match &mut self.stage {
                Stage::Groups { input, .. } => input.try_next().await?,
                Stage::Engine(states) => return states.try_next().await,
                Stage::End => return Ok(None),
            };
            self.advance(batch)?;
        }
    }

    /// Aggregates the next rows, or hands on the states of all groups when that is not possible, or there are no more rows.
    fn advance(&mut self, batch: Option<RecordBatch>) -> Result<()> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let Stage::Groups { groups, .. } = &mut self.stage else { return Ok(()) };
        let (is_at_end, refused) = match batch {
            None => (true, None),
            Some(batch) => {
                let taken = groups.aggregate(self.operator.engine()?, &batch)?;
                if taken != Taken::No {
                    self.reduction.add_total(batch.num_rows());
                }
                match taken {
                    Taken::Yes => return Ok(()),
                    Taken::WithoutMemory => (false, None),
                    Taken::No => (false, Some(batch)),
                }
            }
        };
        if let Stage::Groups { groups, input } = std::mem::replace(&mut self.stage, Stage::End) {
            self.hand_on(groups)?;
            if !is_at_end {
                self.stage = Stage::Engine(self.engine_over(refused, input)?);
            }
        }
        Ok(())
    }

    /// Puts the states of all groups into the output.
    fn hand_on(&mut self, groups: Groups) -> Result<()> {
        let batch_rows = self.context.session_config().batch_size();
        if let Some((states, memory)) = groups.into_states(&self.operator.replaced.schema())? {
            let starts = (0..states.num_rows()).step_by(batch_rows);
            let rows = |start| batch_rows.min(states.num_rows() - start);
            self.output = starts.map(|start| states.slice(start, rows(start))).collect();
            self.output_memory = Some(memory);
        }
        Ok(())
    }

    /// The engine's operator over the rest of the input.
    fn engine_over(
        &self,
        first: Option<RecordBatch>,
        rest: SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        // The names of columns in the stream may be others, as below a union.
        let schema = Arc::clone(&self.input_schema);
        let rest = stream::iter(first.map(Ok)).chain(rest);
        let rest = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rest));
        let leaf = Arc::new(LeafExec::of_rows(schema, rest));
        let engine = Arc::clone(&self.operator.replaced).reset_state()?;
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let engine = engine.replace_children(vec![leaf], keep)?;
        let states = engine.execute(self.partition, Arc::clone(&self.context))?;
        // Its figures are shown with those of this operator.
        for metric in engine.metrics().iter().flat_map(|metrics| metrics.iter()) {
            self.metrics.register(Arc::clone(metric));
        }
        Ok(states)
    }
}
