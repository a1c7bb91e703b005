//! The form in which the scan of a task travels. All servers of a cluster have the same version, so the form has no history.

mod decoding;
mod encoding;

use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion_proto::protobuf;

pub(crate) use encoding::encode;

/// The number of this form, part of the version that servers compare. Raise it when a message changes.
pub(crate) const FORMAT: u32 = 2;

/// A scan of a task.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TaskScanMessage {
    #[prost(string, tag = "2")]
    owner: String,
    #[prost(string, tag = "3")]
    table: String,
    /// The stored columns, followed by those of directories.
    #[prost(message, optional, tag = "4")]
    schema: Option<protobuf::Schema>,
    /// The number of columns of directories.
    #[prost(uint32, tag = "5")]
    directory_columns: u32,
    #[prost(message, optional, tag = "6")]
    mapping: Option<MappingMessage>,
    #[prost(string, repeated, tag = "7")]
    stores: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    options: Vec<FileOptionsMessage>,
    #[prost(message, repeated, tag = "9")]
    files: Vec<FileMessage>,
    /// The first row of each range, and the number of its rows.
    #[prost(uint64, repeated, tag = "10")]
    rows: Vec<u64>,
    #[prost(uint32, repeated, tag = "11")]
    projection: Vec<u32>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) filters: Vec<protobuf::PhysicalExprNode>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) pushed_filters: Vec<protobuf::PhysicalExprNode>,
    #[prost(uint64, optional, tag = "14")]
    fetch: Option<u64>,
    #[prost(message, repeated, tag = "15")]
    top_k: Vec<SortMessage>,
    #[prost(uint32, tag = "16")]
    partitions: u32,
}

/// A version of a file.
#[derive(Clone, PartialEq, prost::Message)]
struct FileMessage {
    /// The index of its store.
    #[prost(uint32, tag = "1")]
    store: u32,
    #[prost(string, tag = "2")]
    path: String,
    #[prost(uint64, tag = "3")]
    bytes: u64,
    #[prost(int64, tag = "4")]
    modified_seconds: i64,
    #[prost(uint32, tag = "5")]
    modified_nanoseconds: u32,
    #[prost(string, optional, tag = "6")]
    entity_tag: Option<String>,
    #[prost(string, optional, tag = "7")]
    version: Option<String>,
    #[prost(message, repeated, tag = "8")]
    directory_values: Vec<protobuf::ScalarValue>,
    /// The index of its options.
    #[prost(uint32, tag = "9")]
    options: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FileOptionsMessage {
    #[prost(uint64, tag = "1")]
    chunk_rows: u64,
    /// Whether pages hold whole rows.
    #[prost(bool, tag = "2")]
    row_pages: bool,
    #[prost(bool, tag = "3")]
    views: bool,
    #[prost(bool, tag = "4")]
    binary_as_string: bool,
    /// The unit of INT96 timestamps, as the power of ten of its parts of a second.
    #[prost(uint32, optional, tag = "5")]
    int96_unit: Option<u32>,
}

/// The stored columns as files name them.
#[derive(Clone, PartialEq, prost::Message)]
struct MappingMessage {
    #[prost(message, optional, tag = "1")]
    fields: Option<protobuf::Schema>,
    /// The ids by which columns are found. Empty if they are found by name.
    #[prost(int32, repeated, tag = "2")]
    ids: Vec<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SortMessage {
    #[prost(uint32, tag = "1")]
    column: u32,
    #[prost(bool, tag = "2")]
    descending: bool,
    #[prost(bool, tag = "3")]
    nulls_first: bool,
}

fn cannot_travel(error: impl std::error::Error) -> DataFusionError {
    exec_datafusion_err!("a type or value of a table cannot be sent to a worker: {error}")
}
