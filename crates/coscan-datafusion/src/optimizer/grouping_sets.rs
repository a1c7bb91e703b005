//! ROLLUP, CUBE and GROUPING SETS do not rely on the order of their input.
//!
//! DataFusion 55.2 returns groups as soon as an ordered input has passed them, including groups of other sets that are
//! not complete. Some groups are then returned twice, each with a part of the rows
//! ([how](https://github.com/apache/datafusion/issues/24421)). Later versions do not use the order, and do not need
//! this rule.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{PlanProperties, replace_children_if_necessary};

use crate::operator::{Operator, OperatorExec, Plan, only_input};
use crate::optimizer::rule::{Changed, Rule, change_up};

/// Puts [`Unordered`] below aggregations with several grouping sets. It must run before all rules that sort.
pub(crate) const GROUPING_SETS: Rule =
    Rule::new("coscan_grouping_sets", |plan, _| change_up(plan, with_unordered_input));

fn with_unordered_input(plan: &Plan) -> Changed {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let input = aggregate.input();
    // The groups of a first step have no order if its input has none.
    if aggregate.group_expr().groups().len() < 2
        || input.is::<AggregateExec>()
        || input.is::<OperatorExec<Unordered>>()
    {
        return Ok(None);
    }
    let input = OperatorExec::above(Unordered, vec![Arc::clone(input)])?;
    replace_children_if_necessary(Arc::clone(plan), vec![Arc::new(input)]).map(Some)
}

/// Passes rows on without declaring their order.
#[derive(Clone, Debug)]
struct Unordered;

impl Operator for Unordered {
    const NAME: &'static str = "UnorderedExec";
    const KEEPS_ROWS: bool = true;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        let input = only_input(inputs)?;
        let unordered = EquivalenceProperties::new(input.schema());
        Ok(Arc::new(PlanProperties::clone(input.properties()).with_eq_properties(unordered)))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        Vec::new()
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        only_input(&plan.inputs)?.execute(partition, context)
    }
}
