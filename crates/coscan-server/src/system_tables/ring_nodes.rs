//! `system.ring_nodes`: the servers that share what they read, as this one sees them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;

use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("address", DataType::Utf8, false),
        Field::new("zone", DataType::Utf8, true),
        Field::new("status", DataType::Utf8, false),
        Field::new("bytes_sent", DataType::Int64, false),
    ]))
}

/// The others; none if this server shares with nobody.
pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let peers = tables.transport.as_ref().map_or_else(Vec::new, |transport| transport.peers());
    let addresses = StringArray::from_iter_values(peers.iter().map(|peer| &peer.address));
    let zones: StringArray = peers.iter().map(|peer| peer.zone.as_deref()).collect();
    let statuses = StringArray::from_iter_values(peers.iter().map(|peer| peer.status.name()));
    let bytes = peers.iter().map(|peer| i64::try_from(peer.bytes_sent).unwrap_or(i64::MAX));
    let bytes = Int64Array::from_iter_values(bytes);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(addresses), Arc::new(zones), Arc::new(statuses), Arc::new(bytes)];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
