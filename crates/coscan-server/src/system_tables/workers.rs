//! `system.workers`: the workers that this server divides queries among.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;

use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("address", DataType::Utf8, false),
        Field::new("status", DataType::Utf8, false),
        Field::new("reason", DataType::Utf8, true),
    ]))
}

/// A row for each worker. There are none if this server divides no queries, or the user is not an administrator.
pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let workers = tables.seen_workers();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(workers.iter().map(|worker| &worker.address))),
        Arc::new(StringArray::from_iter_values(workers.iter().map(|worker| worker.status))),
        Arc::new(workers.iter().map(|worker| worker.reason.as_deref()).collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
