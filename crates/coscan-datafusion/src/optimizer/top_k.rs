//! A top-k tells the scan below it what it sorts by, also through filters.
//!
//! DataFusion's own rule stops at a filter, which passes rows on in whatever order they come.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use crate::execution::exec::SharedScanExec;
use crate::optimizer::sorts::{Changed, change_scan, change_sort_inputs};

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
        change_sort_inputs(plan, |sort| match sort.fetch() {
            Some(_) => told(sort.input(), sort.expr()),
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

/// The plan with a scan that knows an order of its rows; `None` if no scan is below it, but for operators that pass
/// rows on.
fn told(plan: &Arc<dyn ExecutionPlan>, order: &[PhysicalSortExpr]) -> Changed {
    let tell = |scan: &SharedScanExec, order: &[PhysicalSortExpr]| {
        Ok(match scan.try_pushdown_sort(order)? {
            SortOrderPushdownResult::Inexact { inner } => Some(inner),
            _ => None,
        })
    };
    change_scan(plan, order, &|_, _| true, &tell)
}
