//! Gives a statement one snapshot of each table. The engine would ask each table by itself, and twice a table that is
//! joined with itself.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use crate::settings::SessionSettings;
use crate::tables::pinned::PinnedTable;
use crate::tables::provider::SharedTableProvider;
use crate::tables::replica;
use crate::tables::source::ScanSource;

impl SharedTableProvider {
    /// The snapshot that a statement of a session sees: the newest one, if the session's `refresh_interval` has passed.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again, or a local file was replaced.
    pub(crate) async fn pinned(&self, session: &dyn Session) -> Result<PinnedTable> {
        // Without a cache of lists the engine lists the files of its tables for each query.
        let has_lists = session.runtime_env().cache_manager.get_list_files_cache().is_some();
        let interval = SessionSettings::of(session.config()).refresh_interval;
        let planned = match self.snapshots.may_change_columns() {
            true => Some(self.snapshots.current().await?),
            false => None,
        };
        if let Some(interval) = interval.or_else(|| (!has_lists).then_some(Duration::ZERO)) {
            for copy in self.refreshed_copies() {
                copy.refresh_after(interval).await;
            }
        }
        let newest = self.snapshots.current().await?;
        // The statement was planned with the columns of the snapshot before.
        let schema = |source: &ScanSource| Arc::clone(source.table.table().schema());
        let source = planned.filter(|planned| schema(planned) != schema(&newest)).unwrap_or(newest);
        self.snapshots.check(&source).await?;
        let replicas = self.replicas_of(&source).await;
        Ok(PinnedTable::new(source, replicas))
    }

    /// The replicas that a query may read instead of a snapshot of the table: those with the same number of rows.
    async fn replicas_of(&self, table: &ScanSource) -> Vec<Arc<ScanSource>> {
        let mut replicas = Vec::with_capacity(self.replicas.len());
        for replica in &self.replicas {
            let current = replica.current().await;
            match current.and_then(|current| replica::check_rows(table, &current).map(|()| current))
            {
                Ok(current) => replicas.push(current),
                Err(error) => {
                    log::warn!("a scan does without a replica of {}: {error}", table.name)
                }
            }
        }
        replicas
    }
}

/// The plan of a statement with one snapshot of each shared table, whichever parts of the statement name it. `None` if
/// they name no shared table.
///
/// # Errors
/// If the footers of a table cannot be read, or its columns have changed since the statement was parsed.
pub(crate) async fn pin_tables(
    plan: &LogicalPlan,
    session: &dyn Session,
) -> Result<Option<LogicalPlan>> {
    let mut shared: Vec<SharedTableProvider> = Vec::new();
    plan.apply_with_subqueries(|plan| {
        if let Some(table) = shared_table(plan)
            && !shared.iter().any(|known| known.is_same(&table))
        {
            shared.push(table);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if shared.is_empty() {
        return Ok(None);
    }
    let mut pinned = Vec::with_capacity(shared.len());
    for table in &shared {
        pinned.push(Arc::new(table.pinned(session).await?));
    }
    let pin = |plan: LogicalPlan| {
        let Some(table) = shared_table(&plan) else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::TableScan(scan) = plan else { return Ok(Transformed::no(plan)) };
        let position = shared.iter().position(|known| known.is_same(&table));
        let pinned = &pinned[position.expect("each table is pinned")];
        check_columns(&scan, &pinned.schema())?;
        let source = provider_as_source(Arc::clone(pinned) as _);
        Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
    };
    Ok(Some(plan.clone().transform_up_with_subqueries(pin)?.data))
}

fn shared_table(plan: &LogicalPlan) -> Option<SharedTableProvider> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    source_as_provider(&scan.source).ok()?.downcast_ref().cloned()
}

/// Checks that the columns of a scan are those of a snapshot.
fn check_columns(scan: &TableScan, schema: &Schema) -> Result<()> {
    let planned = scan.projected_schema.fields().iter().enumerate();
    let is_same = |(position, planned): (usize, &FieldRef)| {
        let column = scan.projection.as_ref().map_or(position, |columns| columns[position]);
        let column = schema.fields().get(column);
        column.is_some_and(|column| {
            column.name() == planned.name() && column.data_type() == planned.data_type()
        })
    };
    match planned.clone().all(is_same) {
        true => Ok(()),
        false => plan_err!(
            "the columns of table {} have changed since this statement was prepared; prepare it again",
            scan.table_name
        ),
    }
}
