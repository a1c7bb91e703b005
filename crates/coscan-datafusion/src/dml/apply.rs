//! Rows of a statement's input, applied to a transaction.

use std::collections::HashSet;
use std::sync::Arc;

use coscan_database::{TableRowId, TableVersion, Transaction};
use coscan_storage::pdt::Sid;
use coscan_storage::table::{ColumnValues, Value};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, UInt64Type};
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::TryStreamExt;

use crate::dml::inserted_rows::{InsertedRows, as_type};
use crate::dml::operation::{MergeAction, Operation};
use crate::error::from_database;
use crate::managed::table::ManagedTable;

/// The bytes beside its values that a changed cell takes.
const CELL_BYTES: usize = 64;

/// The changes of a statement.
pub(crate) struct Changes<'a> {
    table: &'a ManagedTable,
    operation: &'a Operation,
    transaction: Transaction<Value>,
    /// The version that the numbers of rows count in.
    version: TableVersion<Value>,
    inserted: InsertedRows,
    /// The rows that a MERGE has changed: each may be changed once.
    merged: HashSet<u64>,
    count: u64,
    memory: MemoryReservation,
}

/// The changes of a statement, which can be committed.
pub(crate) struct AppliedChanges {
    pub(crate) transaction: Transaction<Value>,
    /// The number of changed rows.
    pub(crate) count: u64,
    /// The path of the file with the rows that were inserted, if one was written.
    pub(crate) file: Option<String>,
    /// The memory that they take, while they belong to the statement.
    pub(crate) memory: MemoryReservation,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(
        table: &'a ManagedTable,
        operation: &'a Operation,
        transaction: Transaction<Value>,
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let version = transaction.version(table.id()).map_err(from_database)?;
        let memory = MemoryConsumer::new(operation.name()).register(context.memory_pool());
        let inserted = InsertedRows::new(table);
        let merged = HashSet::new();
        Ok(Self { table, operation, transaction, version, inserted, merged, count: 0, memory })
    }

    /// Applies all rows.
    pub(crate) async fn apply_all(&mut self, mut data: SendableRecordBatchStream) -> Result<()> {
        if *self.operation == Operation::Overwrite {
            self.delete_all()?;
        }
        while let Some(batch) = data.try_next().await? {
            self.apply(batch).await?;
        }
        Ok(())
    }

    /// The transaction with all changes.
    pub(crate) async fn finish(self) -> Result<AppliedChanges> {
        let Self { table, mut transaction, inserted, count, mut memory, .. } = self;
        let file = inserted.finish(table, &mut transaction, &mut memory).await?;
        Ok(AppliedChanges { transaction, count, file, memory })
    }

    async fn apply(&mut self, batch: RecordBatch) -> Result<()> {
        match self.operation {
            Operation::Insert | Operation::Overwrite => {
                self.check_not_null(&batch, 0, &(0..batch.num_columns()).collect::<Vec<_>>())?;
                self.count += batch.num_rows() as u64;
                self.inserted.add(self.table, &batch, &mut self.memory).await
            }
            Operation::Delete => {
                self.memory.try_grow(batch.num_rows())?;
                for row in numbers(&batch)?.into_iter().flatten() {
                    self.delete(row)?;
                }
                Ok(())
            }
            Operation::Update { columns } => {
                self.table.database().check_memory()?;
                self.check_not_null(&batch, 1, columns)?;
                self.memory.try_grow(batch.num_rows() * (columns.len() + 1) * CELL_BYTES)?;
                let values = self.column_values(&batch, 1, columns)?;
                for (position, row) in numbers(&batch)?.into_iter().enumerate() {
                    let Some(row) = row else {
                        return internal_err!("a changed row has no number");
                    };
                    let cells = columns.iter().zip(&values);
                    let cells = cells.map(|(&column, values)| (column, values.get(position)));
                    self.update(row, cells)?;
                }
                Ok(())
            }
            Operation::Merge { actions, columns } => self.merge(&batch, actions, columns),
        }
    }

    fn merge(
        &mut self,
        batch: &RecordBatch,
        actions: &[MergeAction],
        columns: &[usize],
    ) -> Result<()> {
        self.table.database().check_memory()?;
        self.memory.try_grow(batch.num_rows() * (columns.len() + 1) * CELL_BYTES)?;
        let chosen = batch.column(1).as_primitive::<Int32Type>();
        let values = self.column_values(batch, 2, columns)?;
        for (position, row) in numbers(batch)?.into_iter().enumerate() {
            let action = usize::try_from(chosen.value(position)).ok();
            let Some(action) = action.and_then(|action| actions.get(action)) else {
                return internal_err!("the statement has no such action");
            };
            if let Some(row) = row
                && !self.merged.insert(row)
            {
                return exec_err!(
                    "MERGE INTO {} would change a row twice, since several rows of the source match it: let each match one",
                    self.table.name()
                );
            }
            let value = |column: usize| {
                let place = columns.iter().position(|&other| other == column);
                place.map_or(Value::Null, |place| values[place].get(position))
            };
            match (action, row) {
                (MergeAction::Delete, Some(row)) => self.delete(row)?,
                (MergeAction::Update(assigned), Some(row)) => {
                    let cells: Vec<_> =
                        assigned.iter().map(|&column| (column, value(column))).collect();
                    cells
                        .iter()
                        .try_for_each(|(column, value)| self.check_value(*column, value))?;
                    self.update(row, cells.into_iter())?;
                }
                (MergeAction::Insert, None) => {
                    let row: Vec<_> = (0..self.table.columns().fields().len()).map(value).collect();
                    for (column, value) in row.iter().enumerate() {
                        self.check_value(column, value)?;
                    }
                    self.memory.try_grow(row.iter().map(Value::heap_bytes).sum())?;
                    self.transaction.insert(self.table.id(), row).map_err(from_database)?;
                    self.count += 1;
                }
                _ => return internal_err!("an action does not fit its row"),
            }
        }
        Ok(())
    }

    fn delete_all(&mut self) -> Result<()> {
        let version = self.version.clone();
        for file in version.files() {
            for sid in (0..file.file.rows).map(Sid).filter(|sid| file.changes.is_visible(*sid)) {
                self.delete_row(TableRowId::Stored(file.id, sid))?;
            }
        }
        for insert in version.inserted().tail() {
            self.delete_row(TableRowId::Inserted(insert.id()))?;
        }
        Ok(())
    }

    fn delete_row(&mut self, row: TableRowId) -> Result<()> {
        self.transaction.delete(self.table.id(), row).map_err(from_database)
    }

    fn delete(&mut self, row: u64) -> Result<()> {
        let name = self.name_of(row)?;
        self.count += 1;
        self.delete_row(name)
    }

    fn update(&mut self, row: u64, cells: impl Iterator<Item = (usize, Value)>) -> Result<()> {
        let name = self.name_of(row)?;
        self.count += 1;
        let cells: Vec<_> = cells.map(|(column, value)| (column as u32, value)).collect();
        self.memory.try_grow(cells.iter().map(|(_, value)| value.heap_bytes()).sum())?;
        self.transaction.update(self.table.id(), name, cells).map_err(from_database)
    }

    fn name_of(&self, row: u64) -> Result<TableRowId> {
        match self.version.row(row) {
            Some(name) => Ok(name),
            None => internal_err!("the version has no row {row}"),
        }
    }

    /// Checks columns of a batch, the first of which is at a position, against the columns of the table.
    fn check_not_null(&self, batch: &RecordBatch, first: usize, columns: &[usize]) -> Result<()> {
        for (&column, values) in columns.iter().zip(&batch.columns()[first..]) {
            if values.logical_null_count() > 0 {
                self.check_value(column, &Value::Null)?;
            }
        }
        Ok(())
    }

    /// The values of the columns from a position on, which are those of these columns of the table.
    fn column_values(
        &self,
        batch: &RecordBatch,
        first: usize,
        columns: &[usize],
    ) -> Result<Vec<ColumnValues>> {
        let arrays = columns.iter().zip(&batch.columns()[first..]);
        let fields = self.table.columns().fields();
        let values = arrays.map(|(&column, array)| {
            as_type(array, fields[column].data_type()).map(|array| ColumnValues::new(&array))
        });
        values.collect()
    }

    fn check_value(&self, column: usize, value: &Value) -> Result<()> {
        let field = self.table.columns().field(column);
        if matches!(value, Value::Null) && !field.is_nullable() {
            return exec_err!(
                "column {} of table {} is NOT NULL: give it a value",
                field.name(),
                self.table.name()
            );
        }
        Ok(())
    }
}

/// The numbers of rows in the first column.
fn numbers(batch: &RecordBatch) -> Result<Vec<Option<u64>>> {
    match batch.columns().first().and_then(|numbers| numbers.as_primitive_opt::<UInt64Type>()) {
        Some(numbers) => Ok(numbers.iter().collect()),
        None => internal_err!("the first column has the numbers of rows"),
    }
}
