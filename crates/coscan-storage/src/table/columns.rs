//! What a table says of its columns besides what its files store.

use arrow_array::ArrayRef;
use arrow_schema::{FieldRef, SchemaRef};

/// What a table says of its columns besides what its files store: nothing by default.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// The columns to read, instead of all that the files have. A file's columns are found by name and cast; one that a
    /// file lacks is NULL there.
    pub declared: Option<SchemaRef>,
    /// Columns that no file stores, after all others.
    pub constants: Vec<ConstantColumn>,
}

/// A column that has the same value in all rows of a file.
#[derive(Clone, Debug)]
pub struct ConstantColumn {
    /// Its name and type.
    pub field: FieldRef,
    /// A value a file, of the field's type or, if that is a dictionary, of the type of its values.
    pub values: ArrayRef,
}
