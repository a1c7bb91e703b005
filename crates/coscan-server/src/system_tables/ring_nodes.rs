//! `system.ring_nodes`: the servers that share reads, in the view of this one.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use coscan_transport::PeerState;
use datafusion::error::Result;

use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("address", DataType::Utf8, false),
        Field::new("zone", DataType::Utf8, true),
        Field::new("status", DataType::Utf8, false),
        Field::new("extents_owned", DataType::Int64, false),
        Field::new("bytes_owned", DataType::Int64, false),
        Field::new("bytes_sent", DataType::Int64, false),
        Field::new("bytes_received", DataType::Int64, false),
    ]))
}

/// The rows of this server and the others. There are none if this server does not share, or the user is not an
/// administrator.
pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let nodes = tables.seen_transport().map_or_else(Vec::new, |transport| transport.nodes());
    let addresses = StringArray::from_iter_values(nodes.iter().map(|node| &node.address));
    let zones: StringArray = nodes.iter().map(|node| node.zone.as_deref()).collect();
    let statuses = StringArray::from_iter_values(nodes.iter().map(|node| node.status.name()));
    let numbers = |number: fn(&PeerState) -> u64| -> ArrayRef {
        let numbers = nodes.iter().map(|node| i64::try_from(number(node)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(numbers))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(addresses),
        Arc::new(zones),
        Arc::new(statuses),
        numbers(|node| node.share.extents),
        numbers(|node| node.share.bytes),
        numbers(|node| node.bytes_sent),
        numbers(|node| node.bytes_received),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
