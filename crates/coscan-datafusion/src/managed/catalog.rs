//! The tables of a database: creating, finding and dropping them.

use std::sync::Arc;

use coscan_database::{Table, TableId, Transaction};
use coscan_storage::table::Value;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::plan_err;
use datafusion::error::Result;
use parquet::arrow::ArrowSchemaConverter;

use crate::error::from_database;
use crate::managed::database::ManagedDatabase;
use crate::managed::encoding::{check_type, schema_bytes, schema_of};
use crate::managed::table::ManagedTable;
use crate::managed::transactions::committed;

impl ManagedDatabase {
    /// Creates a table without rows. Strings and binaries become views, as they are read from files, and columns with
    /// dictionaries become columns of their values.
    ///
    /// # Errors
    /// If there is a table of this name, no column, two of the same name, or one of a type that Parquet does not have, or if
    /// the database cannot be written.
    pub async fn create_table(&self, name: &str, schema: &Schema) -> Result<ManagedTable> {
        let mut transaction = self.versions().begin();
        let table = self.create_in(&mut transaction, name, schema)?;
        committed(transaction).await.map_err(from_database)?;
        Ok(table)
    }

    /// Creates a table in a transaction.
    ///
    /// # Errors
    /// As [`Self::create_table`].
    pub(crate) fn create_in(
        &self,
        transaction: &mut Transaction<Value>,
        name: &str,
        schema: &Schema,
    ) -> Result<ManagedTable> {
        let columns = stored_columns(name, schema)?;
        let id = transaction.create_table(name, schema_bytes(&columns)).map_err(from_database)?;
        Ok(self.table_of(id, name, columns))
    }

    /// Drops a table. Statements that are running keep it.
    ///
    /// # Errors
    /// If it was dropped already, or the database cannot be written.
    pub async fn drop_table(&self, table: &ManagedTable) -> Result<()> {
        let mut transaction = self.versions().begin();
        transaction.drop_table(table.id()).map_err(from_database)?;
        committed(transaction).await.map_err(from_database)?;
        self.forget_dropped();
        Ok(())
    }

    /// The table of this name, if there is one.
    ///
    /// # Errors
    /// If its columns cannot be read.
    pub fn table(&self, name: &str) -> Result<Option<ManagedTable>> {
        let Some(Table { id, name, definition }) = self.versions().table(name) else {
            return Ok(None);
        };
        let columns = Arc::new(schema_of(&definition)?);
        Ok(Some(self.table_of(id, &name, columns)))
    }

    /// The names of all tables.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        self.versions().tables().iter().map(|table| table.name.to_string()).collect()
    }

    fn table_of(&self, id: TableId, name: &str, columns: SchemaRef) -> ManagedTable {
        ManagedTable::new(self.clone(), id, name, columns)
    }
}

/// The columns of a table as they are read from files.
fn stored_columns(name: &str, schema: &Schema) -> Result<SchemaRef> {
    let fields: Vec<_> = schema.fields().iter().map(stored_field).collect();
    if fields.is_empty() {
        return plan_err!("table {name} needs a column");
    }
    for (position, field) in fields.iter().enumerate() {
        if fields[..position].iter().any(|other| other.name() == field.name()) {
            return plan_err!("table {name} has two columns called {}: rename one", field.name());
        }
        check_type(field)?;
    }
    let columns = Schema::new(fields);
    match ArrowSchemaConverter::new().convert(&columns) {
        Ok(_) => Ok(Arc::new(columns)),
        Err(error) => plan_err!(
            "table {name} has a column of a type that Parquet files do not have ({error}): cast it"
        ),
    }
}

fn stored_field(field: &FieldRef) -> Field {
    let data_type = match without_dictionaries(field.data_type()) {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other,
    };
    Field::new(field.name(), data_type, field.is_nullable())
}

/// The type of the same values without dictionaries, which say how values are encoded. Partition columns have them.
fn without_dictionaries(data_type: &DataType) -> DataType {
    let plain = |field: &FieldRef| {
        let data_type = without_dictionaries(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Dictionary(_, values) => without_dictionaries(values),
        DataType::List(item) => DataType::List(plain(item)),
        DataType::LargeList(item) => DataType::LargeList(plain(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(plain(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(plain(entries), *is_sorted),
        other => other.clone(),
    }
}
