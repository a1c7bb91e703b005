//! Columns of a table that its files do not define: declared types and constants.

use arrow_array::ArrayRef;
use arrow_schema::{FieldRef, SchemaRef};

/// Declarations of columns that a table's files do not define. There are none by default.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// The columns to read, instead of all columns of the files. A file's columns are found by name and cast; a
    /// column that a file lacks is NULL there.
    pub declared: Option<SchemaRef>,
    /// Columns that no file stores, after all others.
    pub constants: Vec<ConstantColumn>,
}

/// A column that has the same value in all rows of a file.
#[derive(Clone, Debug)]
pub struct ConstantColumn {
    /// Its name and type.
    pub field: FieldRef,
    /// One value per file, of the field's type or, if that is a dictionary, of the type of its values.
    pub values: ArrayRef,
}
