//! Columns of a table that its files do not define: declared types, other names, and constants.

use arrow_array::ArrayRef;
use arrow_schema::{FieldRef, Fields, SchemaRef};

use super::{ParquetFile, ParquetTable};

/// Declarations of columns that a table's files do not define. There are none by default.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// The columns to read, instead of all columns of the files. A file's columns are found by name and cast; a
    /// column that a file lacks is NULL there.
    pub declared: Option<SchemaRef>,
    /// The declared columns as files name them, if they name them otherwise.
    pub mapping: Option<ColumnMapping>,
    /// Columns that no file stores, after all others but that of row numbers.
    pub constants: Vec<ConstantColumn>,
    /// A column with the number of each row, counted from the start of the table, after all others. Its type is UInt64. It
    /// names the rows that a statement changes.
    pub row_numbers: Option<FieldRef>,
    /// Makes room for at least so many rows that no file has ([`TableChanges`](super::TableChanges)).
    pub inserted_rows_max: Option<u64>,
}

/// The declared columns of a table as its files name them, one field for each. Table formats map columns so that they
/// can be renamed and dropped without writing files anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMapping {
    /// The fields with their names in files, at all depths. Their types are otherwise those of the declared columns.
    pub fields: Fields,
    /// The property by which a file's columns are found. Fields of structs are always found by name.
    pub key: ColumnKey,
}

/// The property by which a column of a file is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKey {
    /// Its name.
    Name,
    /// Its id in the Parquet schema (`field_id`), here one for each field.
    FieldId(Vec<i32>),
}

impl ColumnMapping {
    /// The position of each column in a file, `None` for those that it lacks.
    pub(super) fn places_in(&self, file: &ParquetFile) -> Vec<Option<usize>> {
        match &self.key {
            ColumnKey::Name => {
                let place = |field: &FieldRef| file.fields().find(field.name()).map(|(at, _)| at);
                self.fields.iter().map(place).collect()
            }
            ColumnKey::FieldId(ids) => {
                let root = file.metadata().file_metadata().schema();
                let id_of = |stored: &parquet::schema::types::TypePtr| {
                    let info = stored.get_basic_info();
                    info.has_id().then(|| info.id())
                };
                let place = |id: &i32| {
                    root.get_fields().iter().position(|stored| id_of(stored) == Some(*id))
                };
                ids.iter().map(place).collect()
            }
        }
    }
}

/// A column that has the same value in all rows of a file.
#[derive(Clone, Debug)]
pub struct ConstantColumn {
    /// Its name and type.
    pub field: FieldRef,
    /// One value per file, of the field's type or, if that is a dictionary, of the type of its values.
    pub values: ArrayRef,
}

impl ParquetTable {
    /// Whether files have other names for fields nested in a column.
    #[must_use]
    pub fn has_renamed_fields(&self, column: usize) -> bool {
        let stored = self.mapping().and_then(|mapping| mapping.fields.get(column));
        stored.is_some_and(|stored| stored.data_type() != self.data_type(column))
    }
}
