//! `system.scans`: the running scans of queries, with their progress and the reasons why they wait.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use coscan_runtime::ScanReport;
use coscan_runtime::core::Order;
use datafusion::error::Result;

use crate::queries::QueryId;
use crate::system_tables::SystemTables;

pub(super) fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        Field::new("query_id", DataType::Int64, true),
        field("scan_id", DataType::Int64),
        field("table_name", DataType::Utf8),
        field("columns", DataType::Utf8),
        field("ordered", DataType::Boolean),
        field("weight", DataType::Int64),
        field("seconds", DataType::Float64),
        field("workers", DataType::Int64),
        field("workers_busy", DataType::Int64),
        field("chunks", DataType::Int64),
        field("chunks_done", DataType::Int64),
        field("chunks_ready", DataType::Int64),
        field("bytes_read", DataType::Int64),
        field("bytes_reused", DataType::Int64),
        field("waits_for", DataType::Utf8),
        field("waiting_seconds", DataType::Float64),
        field("why", DataType::Utf8),
    ]))
}

pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let scans = seen(tables);
    let integers = |value: &dyn Fn(&ScanReport) -> u64| -> ArrayRef {
        let values = scans.iter().map(|scan| i64::try_from(value(scan)).ok());
        Arc::new(values.collect::<Int64Array>())
    };
    let seconds = |value: &dyn Fn(&ScanReport) -> f64| -> ArrayRef {
        Arc::new(scans.iter().map(|scan| Some(value(scan))).collect::<Float64Array>())
    };
    let texts = |value: &dyn Fn(&ScanReport) -> String| -> ArrayRef {
        Arc::new(scans.iter().map(|scan| Some(value(scan))).collect::<StringArray>())
    };
    let ordered = scans.iter().map(|scan| Some(scan.order == Order::InOrder));
    let query_ids = scans.iter().map(|scan| i64::try_from(query_of(scan)?.0).ok());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(query_ids.collect::<Int64Array>()),
        integers(&|scan| u64::from(scan.id.0)),
        texts(&|scan| scan.table_name.to_string()),
        texts(&|scan| scan.columns.join(", ")),
        Arc::new(ordered.collect::<BooleanArray>()),
        integers(&|scan| u64::from(scan.weight)),
        seconds(&|scan| scan.age.as_secs_f64()),
        integers(&|scan| scan.workers as u64),
        integers(&|scan| scan.workers_busy as u64),
        integers(&|scan| {
            let chunks = &scan.metrics.chunks;
            chunks.chunks_needed.saturating_sub(chunks.chunks_pruned_dynamic)
        }),
        integers(&|scan| scan.metrics.chunks.chunks_delivered),
        integers(&|scan| scan.chunks_ready as u64),
        integers(&|scan| scan.metrics.chunks.bytes_read),
        integers(&|scan| scan.metrics.chunks.bytes_reused),
        texts(&|scan| scan.waits_for.name().to_owned()),
        seconds(&|scan| scan.waiting.as_secs_f64()),
        texts(&ScanReport::why),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// The scans of the queries that the user may see. Administrators see all.
fn seen(tables: &SystemTables) -> Vec<ScanReport> {
    let mut scans = tables.manager.scans();
    if !tables.user.admin {
        let queries = tables.queries.seen_by(&tables.user);
        let queries: HashSet<QueryId> = queries.iter().map(|query| query.id).collect();
        scans.retain(|scan| query_of(scan).is_some_and(|query| queries.contains(&query)));
    }
    scans
}

fn query_of(scan: &ScanReport) -> Option<QueryId> {
    scan.query.as_ref()?.parse().ok()
}
