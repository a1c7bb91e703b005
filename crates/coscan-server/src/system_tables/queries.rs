//! `system.queries`: waiting and running queries, and the last ended ones.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::error::Result;

use crate::system_tables::SystemTables;

const UTC: &str = "UTC";

pub(super) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    Arc::new(Schema::new(vec![
        Field::new("query_id", DataType::Int64, false),
        Field::new("user", DataType::Utf8, false),
        Field::new("state", DataType::Utf8, false),
        Field::new("started", time, false),
        Field::new("waited_seconds", DataType::Float64, false),
        Field::new("ran_seconds", DataType::Float64, false),
        Field::new("rows", DataType::Int64, false),
        Field::new("sql", DataType::Utf8, false),
        Field::new("error", DataType::Utf8, true),
    ]))
}

pub(super) fn rows(tables: &SystemTables) -> Result<RecordBatch> {
    let queries = tables.queries.seen_by(&tables.user);
    let strings = |text: fn(&crate::queries::QueryReport) -> &str| -> ArrayRef {
        Arc::new(queries.iter().map(|query| Some(text(query))).collect::<StringArray>())
    };
    let numbers = |number: fn(&crate::queries::QueryReport) -> u64| -> ArrayRef {
        let numbers = queries.iter().map(|query| i64::try_from(number(query)).ok());
        Arc::new(numbers.collect::<arrow::array::Int64Array>())
    };
    let seconds = |time: fn(&crate::queries::QueryReport) -> f64| -> ArrayRef {
        Arc::new(queries.iter().map(|query| Some(time(query))).collect::<Float64Array>())
    };
    let started = queries.iter().map(|query| {
        let since = query.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).ok()
    });
    let started = started.collect::<TimestampMicrosecondArray>().with_timezone(UTC);
    let columns: Vec<ArrayRef> = vec![
        numbers(|query| query.id.0),
        strings(|query| &query.user),
        strings(|query| query.state.name()),
        Arc::new(started),
        seconds(|query| query.waited.as_secs_f64()),
        seconds(|query| query.ran.as_secs_f64()),
        numbers(|query| query.rows),
        strings(|query| &query.sql),
        Arc::new(queries.iter().map(|query| query.error.as_deref()).collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
