//! Renames columns that a result has twice. DataFusion requires different names. The addition is removed before clients
//! see it.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

/// Separates the name from the addition. It is a private-use character, which no client sends.
const MARK: char = '\u{f8fd}';

/// A new name for the column at this index, whose name is taken.
pub(super) fn repeated(name: &str, place: usize) -> String {
    format!("{name}{MARK}{place}")
}

/// The name that clients see.
fn shown(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

/// The columns as clients see them.
pub(super) fn shown_schema(schema: SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| field.name().contains(MARK)) {
        return schema;
    }
    let fields = schema.fields().iter().map(|field| {
        let name = shown(field.name());
        Arc::new(field.as_ref().clone().with_name(name))
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
