//! A top-k tells the scan below it what it sorts by, also through filters.
//!
//! DataFusion's own rule stops at a filter, which passes rows on in whatever order they come.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use crate::exec::SharedScanExec;

/// Tells scans which rows a top-k above them wants first. It runs before dynamic filters are pushed down.
#[derive(Debug)]
pub(crate) struct TopKHint;

impl TopKHint {
    pub(crate) const NAME: &'static str = "coscan_top_k_hint";

    /// The rule of DataFusion that it runs before.
    pub(crate) const BEFORE: &'static str = "FilterPushdown(Post)";
}

impl PhysicalOptimizerRule for TopKHint {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let tell = |plan: Arc<dyn ExecutionPlan>| {
            let sort = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_some());
            let input = match sort {
                Some(sort) => told(sort.input(), sort.expr().to_vec())?,
                None => None,
            };
            Ok(match input {
                Some(input) => Transformed::yes(replace_children_if_necessary(plan, vec![input])?),
                None => Transformed::no(plan),
            })
        };
        plan.transform_down(tell).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with a scan that knows an order of its rows; `None` if no scan is below it, but for operators that pass
/// rows on.
fn told(
    plan: &Arc<dyn ExecutionPlan>,
    order: Vec<PhysicalSortExpr>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<SharedScanExec>() {
        let SortOrderPushdownResult::Inexact { inner } = plan.try_pushdown_sort(&order)? else {
            return Ok(None);
        };
        return Ok(Some(inner));
    }
    let Some(order) = below(plan, order) else { return Ok(None) };
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    let input = told(input, order)?;
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// An order of the rows that an operator passes on, as one of its input: the first keys that are columns there.
pub(crate) fn below(
    plan: &Arc<dyn ExecutionPlan>,
    order: Vec<PhysicalSortExpr>,
) -> Option<Vec<PhysicalSortExpr>> {
    let map = |input_column: &dyn Fn(usize) -> Option<Column>| {
        let key = |key: &PhysicalSortExpr| {
            let column = input_column(key.expr.downcast_ref::<Column>()?.index())?;
            Some(PhysicalSortExpr::new(Arc::new(column), key.options))
        };
        order.iter().map_while(key).collect::<Vec<_>>()
    };
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let schema = filter.input().schema();
        return Some(map(&|column| {
            let column = match filter.projection() {
                Some(projection) => *projection.get(column)?,
                None => column,
            };
            Some(Column::new(schema.field(column).name(), column))
        }));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column =
            |column: usize| projection.expr().get(column)?.expr.downcast_ref::<Column>().cloned();
        return Some(map(&column));
    }
    let passes_on = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>();
    passes_on.then_some(order)
}
