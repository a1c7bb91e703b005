//! The engine's own tables of Parquet files are shared, too: `register_parquet`, `read_parquet`, names of files in SQL.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, TableScan, TableSource};
use datafusion::physical_plan::ExecutionPlan;

use crate::coscan::Coscan;
use crate::listing_table::SharedListingTable;

/// Plans queries as another planner does, on tables that are shared where they can be. What is written to a table is
/// written to the engine's own.
#[derive(Debug)]
pub(crate) struct SharingPlanner {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
    coscan: Arc<Coscan>,
}

impl SharingPlanner {
    /// Takes the place of the planner that it was given, or of one like itself around that.
    pub(crate) fn around(planner: &Arc<dyn QueryPlanner + Send + Sync>, coscan: Coscan) -> Self {
        let existing: &dyn std::any::Any = planner.as_ref();
        let planner = existing.downcast_ref::<Self>().map_or(planner, |sharing| &sharing.planner);
        Self { planner: Arc::clone(planner), coscan: Arc::new(coscan) }
    }

    fn shared_source(&self, scan: &TableScan) -> Option<Arc<dyn TableSource>> {
        let table = source_as_provider(&scan.source).ok()?;
        let shared = SharedListingTable::of(table, scan.table_name.table(), &self.coscan)?;
        Some(provider_as_source(Arc::new(shared)))
    }
}

#[async_trait]
impl QueryPlanner for SharingPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut has_listing_table = false;
        logical_plan.apply_with_subqueries(|plan| {
            has_listing_table = matches!(
                plan,
                LogicalPlan::TableScan(scan) if self.shared_source(scan).is_some()
            );
            Ok(match has_listing_table {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        if !has_listing_table {
            return self.planner.create_physical_plan(logical_plan, session).await;
        }
        let share = |plan: LogicalPlan| {
            let LogicalPlan::TableScan(scan) = plan else { return Ok(Transformed::no(plan)) };
            Ok(match self.shared_source(&scan) {
                Some(source) => {
                    Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan }))
                }
                None => Transformed::no(LogicalPlan::TableScan(scan)),
            })
        };
        let shared = logical_plan.clone().transform_up_with_subqueries(share)?;
        self.planner.create_physical_plan(&shared.data, session).await
    }
}
