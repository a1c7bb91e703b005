//! Lists of object numbers. DataFusion has them as lists of integers, and drops the metadata of a column that is
//! computed. Clients read them by their type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

/// The key in the metadata of a field.
const LIST_OF_OIDS: &str = "coscan.list_of_oids";

/// Whether a field of a statement on the catalog is marked as a list of object numbers.
pub(crate) fn is_list_of_oids(field: &Field) -> bool {
    field.metadata().contains_key(LIST_OF_OIDS)
}

/// Marks a field of a statement on the catalog, where lists of `int4` are lists of object numbers.
pub(in crate::sql) fn catalog_field(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::List(of) if *of.data_type() == DataType::Int32 => {
            let mark = HashMap::from([(LIST_OF_OIDS.to_owned(), String::new())]);
            Arc::new(field.as_ref().clone().with_metadata(mark))
        }
        _ => Arc::clone(field),
    }
}

/// The marked columns of a statement on the catalog.
pub(in crate::sql) fn catalog_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(catalog_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
