//! Names of columns that a result has twice. DataFusion wants them to differ: what is added is taken away before clients
//! see it.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

/// From here on a name is ours: a character of private use, which no client sends.
const MARK: char = '\u{f8fd}';

/// A name for the column at this place, which is another's.
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
