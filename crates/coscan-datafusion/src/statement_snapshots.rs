//! Gives a statement one snapshot of each table. The engine would ask each table by itself, and twice a table that is
//! joined with itself.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{DmlStatement, LogicalPlan, TableScan};

use crate::dml::target::ChangeTarget;
use crate::managed::snapshot::ManagedSnapshot;
use crate::managed::table::ManagedTable;
use crate::tables::provider::SharedTableProvider;
use crate::tables::statement_snapshot::StatementSnapshot;

/// The plan of a statement with one snapshot of each shared or managed table, whichever parts of the statement name it. `None` if
/// they name none.
///
/// # Errors
/// If the footers of a table cannot be read, or its columns have changed since the statement was parsed.
pub(crate) async fn with_snapshots(
    plan: &LogicalPlan,
    session: &dyn Session,
) -> Result<Option<LogicalPlan>> {
    let mut named = Named::default();
    plan.apply_with_subqueries(|plan| {
        named.note(plan);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if named.is_empty() {
        return Ok(None);
    }
    let snapshots = named.snapshots(session).await?;
    Ok(Some(plan.clone().transform_up_with_subqueries(|plan| snapshots.apply(plan))?.data))
}

/// The tables that a statement names, each once.
#[derive(Default)]
struct Named {
    shared: Vec<SharedTableProvider>,
    managed: Vec<ManagedTable>,
    /// The change of a managed table, which a statement has at most one of.
    change: Option<LogicalPlan>,
}

impl Named {
    fn note(&mut self, plan: &LogicalPlan) {
        if let Some(table) = table_of::<SharedTableProvider>(plan) {
            if !self.shared.iter().any(|known| known.is_same(&table)) {
                self.shared.push(table);
            }
        } else if let Some(table) = table_of::<ManagedTable>(plan) {
            if !self.managed.iter().any(|known| is_read_alike(known, &table)) {
                self.managed.push(table);
            }
        } else if target_of(plan).is_some() {
            self.change = Some(plan.clone());
        }
    }

    fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.managed.is_empty() && self.change.is_none()
    }

    async fn snapshots(self, session: &dyn Session) -> Result<StatementSnapshots> {
        let mut shared = Vec::with_capacity(self.shared.len());
        for table in self.shared {
            let pinned = Arc::new(table.statement_snapshot(session).await?);
            shared.push((table, pinned));
        }
        let mut snapshots: Vec<ManagedSnapshot> = Vec::new();
        let changed = self.change.as_ref().and_then(target_of).map(|target| target.table);
        for table in self.managed.iter().chain(&changed) {
            if !snapshots.iter().any(|snapshot| snapshot.is_of(table.database())) {
                snapshots.push(ManagedSnapshot::of(session, table.database())?);
            }
        }
        let mut managed = Vec::with_capacity(self.managed.len());
        for table in self.managed {
            let snapshot = snapshots.iter().find(|snapshot| snapshot.is_of(table.database()));
            let snapshot = snapshot.expect("each database has a snapshot");
            let pinned = Arc::new(snapshot.table(&table).await?);
            managed.push((table, pinned));
        }
        Ok(StatementSnapshots { shared, managed, snapshots, change: self.change.map(Arc::new) })
    }
}

/// The snapshots that a statement reads.
struct StatementSnapshots {
    shared: Vec<(SharedTableProvider, Arc<StatementSnapshot>)>,
    managed: Vec<(ManagedTable, Arc<StatementSnapshot>)>,
    snapshots: Vec<ManagedSnapshot>,
    change: Option<Arc<LogicalPlan>>,
}

impl StatementSnapshots {
    /// Replaces the table of a node of the plan by its snapshot.
    fn apply(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if let Some(target) = target_of(&plan) {
            return self.with_target(plan, &target);
        }
        let pinned = if let Some(table) = table_of::<SharedTableProvider>(&plan) {
            self.shared.iter().find(|(known, _)| known.is_same(&table)).map(|(_, pinned)| pinned)
        } else if let Some(table) = table_of::<ManagedTable>(&plan) {
            self.managed.iter().find(|(known, _)| is_read_alike(known, &table)).map(|(_, p)| p)
        } else {
            None
        };
        match (plan, pinned) {
            (LogicalPlan::TableScan(scan), Some(pinned)) => {
                check_columns(&scan, &pinned.schema())?;
                let source = provider_as_source(Arc::clone(pinned) as _);
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            (plan, _) => Ok(Transformed::no(plan)),
        }
    }

    fn with_target(
        &self,
        plan: LogicalPlan,
        target: &ChangeTarget,
    ) -> Result<Transformed<LogicalPlan>> {
        let database = target.table.database();
        let snapshot = self.snapshots.iter().find(|snapshot| snapshot.is_of(database));
        match (plan, snapshot, &self.change) {
            (LogicalPlan::Dml(statement), Some(snapshot), Some(change)) => {
                let target = target.planned(snapshot.clone(), Arc::clone(change));
                let target = provider_as_source(Arc::new(target));
                Ok(Transformed::yes(LogicalPlan::Dml(DmlStatement { target, ..statement })))
            }
            (plan, _, _) => Ok(Transformed::no(plan)),
        }
    }
}

/// Whether both are the same table with the same columns.
fn is_read_alike(one: &ManagedTable, other: &ManagedTable) -> bool {
    one.is_same(other) && one.has_row_numbers() == other.has_row_numbers()
}

/// The table that a plan scans, if it is one of this kind.
fn table_of<T: TableProvider + Clone>(plan: &LogicalPlan) -> Option<T> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    source_as_provider(&scan.source).ok()?.downcast_ref().cloned()
}

/// The target of a plan that changes a managed table.
fn target_of(plan: &LogicalPlan) -> Option<ChangeTarget> {
    let LogicalPlan::Dml(statement) = plan else { return None };
    source_as_provider(&statement.target).ok()?.downcast_ref().cloned()
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
