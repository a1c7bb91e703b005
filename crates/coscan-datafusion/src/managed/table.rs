//! A table that statements change.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use coscan_database::{TableId, TableVersion, Transaction};
use coscan_storage::table::{TableChanges, Value};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::not_impl_err;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::managed::database::ManagedDatabase;
use crate::managed::opened_files::{OpenedFiles, changes_of};
use crate::tables::opener::{Identity, Opener};
use crate::tables::source::ScanSource;

/// A table of a [`ManagedDatabase`]. Statements read and change it in sessions with coscan
/// ([`install`](crate::install)). A clone is the same table.
#[derive(Clone)]
pub struct ManagedTable {
    inner: Arc<Inner>,
    /// Whether a column with the numbers of rows is read after all others, which names the rows that a statement changes.
    has_row_numbers: bool,
}

struct Inner {
    database: ManagedDatabase,
    id: TableId,
    name: String,
    columns: SchemaRef,
    row_numbers: FieldRef,
    opener: Opener,
}

impl ManagedTable {
    pub(crate) fn new(
        database: ManagedDatabase,
        id: TableId,
        name: &str,
        columns: SchemaRef,
    ) -> Self {
        let coscan = database.coscan().clone();
        let opener = Opener {
            name: name.to_owned(),
            identity: Identity::Named(format!("{} table {}", database.name(), id.0)),
            options: coscan.table_options(),
            orders: Vec::new(),
            coscan,
        };
        let (name, row_numbers) = (name.to_owned(), row_number_field(&columns));
        let inner = Inner { database, id, name, columns, row_numbers, opener };
        Self { inner: Arc::new(inner), has_row_numbers: false }
    }

    /// The database that it belongs to.
    #[must_use]
    pub fn database(&self) -> &ManagedDatabase {
        &self.inner.database
    }

    pub(crate) fn id(&self) -> TableId {
        self.inner.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its columns, without that of row numbers.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.inner.columns
    }

    /// The same table, read with the numbers of rows.
    pub(crate) fn with_row_numbers(&self) -> Self {
        Self { has_row_numbers: true, ..self.clone() }
    }

    pub(crate) fn has_row_numbers(&self) -> bool {
        self.has_row_numbers
    }

    /// Whether both are the same table.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.inner.id == other.inner.id && self.inner.database.is_same(&other.inner.database)
    }

    /// The source of a version that a transaction sees.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub(crate) async fn source(
        &self,
        version: &TableVersion<Value>,
        transaction: &Arc<Transaction<Value>>,
    ) -> Result<ScanSource> {
        let opened = self.inner.database.opened(self.inner.id);
        let base = self.base(&opened, version).await?;
        // Files that a checkpoint has replaced stay as long as this is read.
        let held = Some(Arc::clone(transaction) as _);
        let changes = TableChanges { held, ..changes_of(version) };
        base.with_changes(changes, transaction.lsn().0)
    }

    /// The source of the files of a version, without its changes.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub(crate) async fn base(
        &self,
        opened: &OpenedFiles,
        version: &TableVersion<Value>,
    ) -> Result<Arc<ScanSource>> {
        let Inner { database, columns, row_numbers, opener, .. } = &*self.inner;
        opened.table_of(version, database.files(), opener, (columns, row_numbers)).await
    }

    /// The column with the numbers of rows.
    pub(crate) fn row_numbers(&self) -> &FieldRef {
        &self.inner.row_numbers
    }
}

/// The column with the numbers of rows, beside these columns.
fn row_number_field(columns: &SchemaRef) -> FieldRef {
    let mut name = "row number".to_owned();
    while columns.column_with_name(&name).is_some() {
        name.push('\'');
    }
    Arc::new(Field::new(name, DataType::UInt64, false))
}

#[async_trait]
impl TableProvider for ManagedTable {
    fn schema(&self) -> SchemaRef {
        let Inner { columns, row_numbers, .. } = &*self.inner;
        match self.has_row_numbers {
            true => {
                let fields = columns.fields().iter().chain([row_numbers]).cloned();
                Arc::new(Schema::new(fields.collect::<Vec<_>>()))
            }
            false => Arc::clone(columns),
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!(
            "the session reads table {} of a database without coscan's planner: install coscan after other planners",
            self.inner.name
        )
    }
}

impl fmt::Debug for ManagedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.inner.name;
        f.debug_struct("ManagedTable").field("name", name).finish_non_exhaustive()
    }
}
