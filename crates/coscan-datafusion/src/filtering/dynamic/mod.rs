//! Evaluates dynamic filters on rows, below operators that do much work for each row.
//!
//! A join that has read the keys of one side gives the scans of the other a *dynamic filter*: rows with other keys find no
//! partner. The scan rules chunks out by it (`execution/dynamic_pruning.rs`). An aggregation or a repartition between scan and
//! join would still work on all rows of the remaining chunks, though the join then drops most of these rows.
//! [`DynamicFilters`] drops them before, as long as that pays ([`evaluation`]).

mod evaluation;
mod filter;
mod key_bitmap;
mod sampling;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::PlanProperties;

use super::stream::Filtering;
use crate::operator::{Operator, OperatorExec, Plan, only_input};
use evaluation::FilterEvaluation;
pub(crate) use filter::DynamicFilter;

/// Puts an operator above an input. The operator drops rows that the filters rule out, as long as that pays.
///
/// # Errors
/// If it cannot be above the input.
pub(crate) fn dynamic_filters_above(input: &Plan, filters: Vec<DynamicFilter>) -> Result<Plan> {
    Ok(Arc::new(OperatorExec::above(DynamicFilters { filters }, vec![Arc::clone(input)])?))
}

/// Drops rows that dynamic filters rule out, where it pays. It may drop none.
#[derive(Clone, Debug)]
struct DynamicFilters {
    filters: Vec<DynamicFilter>,
}

impl Operator for DynamicFilters {
    const NAME: &'static str = "DynamicFilterExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        Ok(Arc::clone(only_input(inputs)?.properties()))
    }

    fn fields(&self, inputs: &[Plan]) -> Vec<String> {
        let Some(input) = inputs.first() else { return Vec::new() };
        let columns = self.filters.iter().map(|filter| filter.column_names(&input.schema()));
        vec![format!("columns=[{}]", columns.collect::<Vec<_>>().join("; "))]
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let evaluations = plan
            .operator
            .filters
            .iter()
            .map(|filter| FilterEvaluation::new(filter, Arc::clone(context.memory_pool())));
        let evaluations: Vec<_> = evaluations.collect();
        Filtering::stream(plan, (evaluations, None), partition, context)
    }
}
