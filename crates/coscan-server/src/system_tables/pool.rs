//! `system.pool`: the contents and activity of the buffer manager, one row for each number.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use coscan_datafusion::SharedResults;
use datafusion::error::Result;

use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("value", DataType::Int64, false),
    ]))
}

pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let report = tables.manager.report();
    let shared = SharedResults::of(&tables.manager);
    let (running, waiting) = tables.queries.counts();
    let rows = [
        ("queries_running", running as u64),
        ("queries_waiting", waiting as u64),
        ("scans", report.scans as u64),
        ("loads_in_flight", report.loads_in_flight as u64),
        ("chunks_in_use", report.chunks_in_use as u64),
        ("slices_decoded", report.slices_decoded),
        ("slices_reused", report.slices_reused),
        ("results_published", shared.chunks_published),
        ("results_taken", shared.chunks_taken),
        ("results_refused", shared.chunks_refused),
        ("results_bytes", shared.bytes),
        ("pool_held_bytes", report.pool_held_bytes),
        ("pool_limit_bytes", report.pool_limit_bytes),
        ("decoded_bytes", report.decoded_bytes),
        ("decoded_idle_bytes", report.decoded_idle_bytes),
        ("operator_bytes", report.operator_bytes),
        ("metadata_bytes", report.metadata_bytes),
        ("held_bytes_max", report.held_bytes_max),
        ("memory_bytes", report.memory_bytes),
    ];
    let ring = tables.transport.as_ref().map(|transport| transport.cluster().report());
    let ring = ring.map(|report| {
        [
            ("ring_files", report.files as u64),
            ("ring_requests_made", report.requests_made),
            ("ring_requests_served", report.requests_served),
            ("ring_bytes_received", report.bytes_received),
            ("ring_bytes_sent", report.bytes_sent),
            ("ring_bytes_bypassed", report.bytes_bypassed),
            ("ring_bytes_read_instead", report.bytes_read_instead),
        ]
    });
    let rows: Vec<_> = rows.into_iter().chain(ring.into_iter().flatten()).collect();
    let names: StringArray = rows.iter().map(|(name, _)| Some(*name)).collect();
    let values = rows.iter().map(|(_, value)| i64::try_from(*value).unwrap_or(i64::MAX));
    let values: Int64Array = values.map(Some).collect();
    Ok(RecordBatch::try_new(schema(), vec![Arc::new(names), Arc::new(values)])?)
}
