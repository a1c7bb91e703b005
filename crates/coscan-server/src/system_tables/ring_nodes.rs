//! `system.ring_nodes`: the servers that share what they read, as this one sees them.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;

use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("address", DataType::Utf8, false),
        Field::new("is_connected", DataType::Boolean, false),
        Field::new("bytes_sent", DataType::Int64, false),
    ]))
}

/// The others; none if this server shares with nobody.
pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let peers = tables.transport.as_ref().map_or_else(Vec::new, |transport| transport.peers());
    let addresses = StringArray::from_iter_values(peers.iter().map(|peer| &peer.address));
    let connected: BooleanArray = peers.iter().map(|peer| Some(peer.is_connected)).collect();
    let bytes = peers.iter().map(|peer| i64::try_from(peer.bytes_sent).unwrap_or(i64::MAX));
    let bytes = Int64Array::from_iter_values(bytes);
    let columns = vec![Arc::new(addresses) as _, Arc::new(connected) as _, Arc::new(bytes) as _];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
