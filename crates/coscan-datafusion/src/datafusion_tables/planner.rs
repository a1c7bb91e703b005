//! A planner that gives a statement one snapshot of each table, makes its arithmetic cheaper, plans equal parts once,
//! and shares the engine's own tables of Parquet files: `register_parquet`, `read_parquet`, names of files in SQL.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::functions::core::file_row_index::FileRowIndexFunc;
use datafusion::functions::core::input_file_name::InputFileNameFunc;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

use crate::common_subplans::{all_share, with_consumers};
use crate::datafusion_tables::listing_table::SharedListingTable;
use crate::decimals::cheaper;
use crate::distributed::planning::is_for_workers;
use crate::operator::Plan;
use crate::options::CoscanOptions;
use crate::settings::NotShared;
use crate::statement_snapshots::with_snapshots;

/// Plans queries with another planner, after replacing tables by shared ones where possible. Writes go to the engine's
/// own tables.
#[derive(Debug)]
pub(crate) struct SharingPlanner {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
    coscan: Arc<CoscanOptions>,
}

impl SharingPlanner {
    /// Wraps a planner. If it is wrapped already, the wrapper is replaced.
    pub(crate) fn around(
        planner: &Arc<dyn QueryPlanner + Send + Sync>,
        coscan: CoscanOptions,
    ) -> Self {
        let existing: &dyn std::any::Any = planner.as_ref();
        let planner = existing.downcast_ref::<Self>().map_or(planner, |sharing| &sharing.planner);
        Self { planner: Arc::clone(planner), coscan: Arc::new(coscan) }
    }

    /// The plan with shared tables, or `None` if it has no tables of the engine.
    fn with_shared_tables(&self, logical_plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let mut has_listing_table = false;
        logical_plan.apply_with_subqueries(|plan| {
            has_listing_table = matches!(
                plan,
                LogicalPlan::TableScan(scan) if self.shared_table(scan).is_some()
            );
            Ok(match has_listing_table {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        if !has_listing_table {
            return Ok(None);
        }
        let mut sharing = Sharing { planner: self, is_sorted: Vec::new() };
        Ok(Some(logical_plan.clone().rewrite_with_subqueries(&mut sharing)?.data))
    }

    /// The plan of a statement in which equal parts are executed once, or `None` if there are none, or if that has
    /// disadvantages.
    async fn plan_with_common_subplans(
        &self,
        statement: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Option<Plan>> {
        let prepare = |subplan: &LogicalPlan| {
            let shared = self.with_shared_tables(subplan)?;
            Ok(shared.unwrap_or_else(|| subplan.clone()))
        };
        let Some(once) = with_consumers(statement, &self.planner, prepare)? else {
            return Ok(None);
        };
        // EXPLAIN has the plan as text only.
        if let LogicalPlan::Explain(explain) = &once {
            let explained = self.plan_with_shared_tables(&explain.plan, session).await;
            if !all_share(&explained?)? {
                return Ok(None);
            }
        }
        let plan = self.plan_with_shared_tables(&once, session).await?;
        Ok(all_share(&plan)?.then_some(plan))
    }

    /// Plans a query with shared tables.
    async fn plan_with_shared_tables(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Plan> {
        let shared = self.with_shared_tables(logical_plan)?;
        self.planner.create_physical_plan(shared.as_ref().unwrap_or(logical_plan), session).await
    }

    fn shared_table(&self, scan: &TableScan) -> Option<SharedListingTable> {
        let table = source_as_provider(&scan.source).ok()?;
        SharedListingTable::of(table, scan.table_name.table(), &self.coscan)
    }
}

#[async_trait]
impl QueryPlanner for SharingPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Plan> {
        let pinned = with_snapshots(logical_plan, session).await?;
        let logical_plan = pinned.as_ref().unwrap_or(logical_plan);
        let is_for_workers = is_for_workers(session.config());
        // Its functions are not known to workers.
        let cheaper = if is_for_workers { None } else { cheaper(logical_plan)? };
        let logical_plan = cheaper.as_ref().unwrap_or(logical_plan);
        if let Some(reason) = not_shared(logical_plan)?
            && let Some(state) = session.as_any().downcast_ref::<SessionState>()
        {
            let mut state = state.clone();
            state.config_mut().set_extension(Arc::new(reason));
            return self.planner.create_physical_plan(logical_plan, &state).await;
        }
        if NotShared::of(session.config()).is_some() {
            return self.planner.create_physical_plan(logical_plan, session).await;
        }
        if is_for_workers {
            return self.plan_with_shared_tables(logical_plan, session).await;
        }
        // Without common subplans, the statement may have another error, or none.
        if let Ok(Some(plan)) = self.plan_with_common_subplans(logical_plan, session).await {
            return Ok(plan);
        }
        self.plan_with_shared_tables(logical_plan, session).await
    }
}

/// The reason why a query is left to the engine, if it calls functions that only the engine's own scans support.
fn not_shared(plan: &LogicalPlan) -> Result<Option<NotShared>> {
    let mut reason = None;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::ScalarFunction(call) = expression {
                    let function = call.func.inner();
                    if function.is::<InputFileNameFunc>() {
                        reason = Some(NotShared::Function("input_file_name()"));
                    } else if function.is::<FileRowIndexFunc>() {
                        reason = Some(NotShared::Function("file_row_index()"));
                    }
                }
                Ok(match reason {
                    Some(_) => TreeNodeRecursion::Stop,
                    None => TreeNodeRecursion::Continue,
                })
            })
        })
    })?;
    Ok(reason)
}

/// Replaces the engine's tables by shared ones.
struct Sharing<'a> {
    planner: &'a SharingPlanner,
    /// For each node from the root to the current one, whether the rows of its inputs are sorted above them.
    is_sorted: Vec<bool>,
}

impl TreeNodeRewriter for Sharing<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let is_sorted = match plan {
            LogicalPlan::Sort(_) | LogicalPlan::Window(_) => true,
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_) => self.is_sorted.last().copied().unwrap_or_default(),
            _ => false,
        };
        self.is_sorted.push(is_sorted);
        Ok(Transformed::no(plan))
    }

    fn f_up(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.is_sorted.pop();
        let LogicalPlan::TableScan(scan) = plan else { return Ok(Transformed::no(plan)) };
        let is_sorted = self.is_sorted.last().copied().unwrap_or_default();
        Ok(match self.planner.shared_table(&scan) {
            Some(table) => {
                let source = provider_as_source(Arc::new(table.sorted_above(is_sorted)));
                Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan }))
            }
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        })
    }
}
