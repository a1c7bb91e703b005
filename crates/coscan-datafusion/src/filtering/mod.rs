//! Cheaper filters. In place of the engine's operator, [`Filter`] evaluates the conditions of an AND each on the columns that it
//! reads ([`conjunction`]). [`dynamic`] evaluates dynamic filters on rows; [`stream`] executes both operators.

mod conjunction;
mod cost;
pub(crate) mod dynamic;
pub(crate) mod projected_predicate;
mod stream;

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, replace_children_if_necessary};

use crate::operator::{Operator, OperatorExec, Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_up};
use conjunction::Conjunction;
use stream::{Filtering, RowTest};

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
        let projection = plan.operator.projection().map(<[usize]>::to_vec);
        let condition = Arc::clone(&plan.operator.condition);
        Filtering::stream(plan, (condition, projection), partition, context)
    }
}

impl RowTest for Arc<Conjunction> {
    fn passes(&mut self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        self.evaluate(batch).map(Some)
    }
}
