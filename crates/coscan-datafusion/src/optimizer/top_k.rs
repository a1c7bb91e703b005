//! Pushes the order of a top-k down to the scan, also through filters, where DataFusion's own rule stops.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use crate::execution::exec::SharedScanExec;
use crate::optimizer::sorts::{Changed, change_scan, change_sort_inputs};

/// Sets the order of a top-k in the scans below it. It runs before dynamic filters are pushed down.
#[derive(Debug)]
pub(crate) struct TopKPushdown;

impl TopKPushdown {
    pub(crate) const NAME: &'static str = "coscan_top_k_pushdown";

    /// The rule of DataFusion that must run later.
    pub(crate) const BEFORE: &'static str = "FilterPushdown(Post)";
}

impl PhysicalOptimizerRule for TopKPushdown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        change_sort_inputs(plan, |sort| match sort.fetch() {
            Some(_) => with_order(sort.input(), sort.expr()),
            None => Ok(None),
        })
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Pushes an order down to the scan of a plan. Returns `None` if the scan cannot use it.
fn with_order(plan: &Arc<dyn ExecutionPlan>, order: &[PhysicalSortExpr]) -> Changed {
    let push_down = |scan: &SharedScanExec, order: &[PhysicalSortExpr]| {
        Ok(match scan.try_pushdown_sort(order)? {
            SortOrderPushdownResult::Inexact { inner } => Some(inner),
            _ => None,
        })
    };
    change_scan(plan, order, &push_down)
}
