//! The format of samples, the data of the page.

use serde::{Deserialize, Serialize};

/// The version of the format. It changes when an older page would misread samples.
pub const VERSION: u32 = 1;

/// Numbers for each cell of a map.
pub const CELL_NUMBERS: usize = 5;

/// The scheduler at one moment: an event of `/events`, or a line of a file that the page replays (JSON lines, oldest
/// first; the first line has whole maps and all tables).
///
/// Unless a field says otherwise, sizes are in bytes and `seconds` count from the start of the manager. Chunks are
/// indexes of the scheduler. Names of columns that are stored together are joined by commas. Readers must ignore
/// unknown fields.
///
/// ```json
/// {"version":1,"seconds":12.5,"policy":"relevance",
///  "memory":{"budget":1e9,"pool":2e8,"pool_limit":2e8,"decoded":0,"operators":0,"metadata":9000,"peak":3e8},
///  "totals":{"bytes_read":1,"bytes_saved":1,"slices_decoded":1,"slices_reused":1,"chunks":1,"results":1,"loads":1,"decisions":1,"decision_us":1.5},
///  "scan_count":1,
///  "scans":[{"id":0,"query":"q7","user":"ann","sql":"SELECT …","table":0,"table_name":"lineitem","columns":["l_tax"],"class":"long","ordered":false,
///            "weight":1,"workers":2,"busy":1,"chunks":100,"delivered":40,"ready":2,"bytes_read":1,"bytes_reused":1,
///            "seconds":1.5,"waits":"load","waiting":0.01,"why":"waits for chunk 17, which is being read for 3 scans"}],
///  "tables":[{"id":0,"name":"lineitem","columns":["l_orderkey","l_tax"],"chunks":100,"rows":12000000,"scans":1}],
///  "maps":[{"table":0,"columns":2,"bins":100,"chunks":100,"whole":true,"cells":[0,0,0,0,1]}],
///  "shared_bytes":[1,0,0,0,0],
///  "loads":[{"seconds":12.4,"table":0,"chunk":17,"bytes":1,"scans":3,"scan":0}],
///  "lost":0,
///  "servers":{"count":2,"bytes_shared":150994944,"rows":[{"address":"10.0.0.1:5440","zone":"","status":"this server","extents":9,"bytes_owned":75497472,
///                               "bytes_sent":0,"bytes_received":0}]},
///  "workers":{"tasks":3,"rows":[{"address":"10.0.0.1:5450","status":"healthy","reason":null}]}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The version of the format, [`VERSION`].
    pub version: u32,
    /// The time of the sample.
    pub seconds: f64,
    /// The policy of the scheduler.
    pub policy: String,
    /// Memory by use.
    pub memory: MemoryRow,
    /// Totals since the start.
    pub totals: TotalsRow,
    /// The number of running scans.
    pub scan_count: usize,
    /// The scans that are shown, which are the oldest ones.
    pub scans: Vec<ScanRow>,
    /// All shown tables, if any of them differs from the previous sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<TableRow>>,
    /// The parts of the pool, table by table, that differ from the previous sample.
    #[serde(default)]
    pub maps: Vec<MapPart>,
    /// The bytes that running scans of the shown tables need, by the number of scans that need them: 1, 2, 3, 4, 5 or
    /// more [CS11 Figure 6.1].
    pub shared_bytes: [u64; 5],
    /// The loads that started since the previous sample [CS07 Figure 4].
    #[serde(default)]
    pub loads: Vec<LoadRow>,
    /// The number of loads missing above, since there were too many at once.
    #[serde(default)]
    pub lost: u64,
    /// The servers that share reads, if this is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServersRow>,
    /// The workers of distributed queries, if this server divides its queries or is a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersRow>,
}

/// Workers of distributed queries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersRow {
    /// The tasks that this server executes for others, if it is a worker.
    pub tasks: Option<usize>,
    /// The workers among which it divides queries, by address.
    pub rows: Vec<WorkerRow>,
}

/// A worker in the view of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// The address of the worker.
    pub address: String,
    /// Whether it gets tasks, as `system.workers` says it.
    pub status: String,
    /// The reason why it gets none.
    pub reason: Option<String>,
}

/// Servers that share reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersRow {
    /// The number of servers.
    pub count: usize,
    /// The bytes of all pages of the shared files.
    pub bytes_shared: u64,
    /// The servers that are shown: this one, then those with which most bytes were exchanged.
    pub rows: Vec<ServerRow>,
}

/// A server in the view of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRow {
    /// The address of the server.
    pub address: String,
    /// The zone of the server, once it is known.
    pub zone: Option<String>,
    /// The state of the connection between this server and the other, as
    /// [`PeerStatus::name`](coscan_transport::PeerStatus::name).
    pub status: String,
    /// The number of extents of shared files that the server owns.
    pub extents: u64,
    /// The bytes of the pages of these extents.
    pub bytes_owned: u64,
    /// The bytes of pages that this server has sent to the other.
    pub bytes_sent: u64,
    /// The bytes of pages that the other has sent to this server.
    pub bytes_received: u64,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    /// The memory budget.
    pub budget: u64,
    /// The bytes of stored pages.
    pub pool: u64,
    /// The maximum bytes of the pool now.
    pub pool_limit: u64,
    /// The bytes of decoded columns.
    pub decoded: u64,
    /// The bytes of operators of queries.
    pub operators: u64,
    /// The bytes of footers, page indexes and Bloom filters.
    pub metadata: u64,
    /// The highest sum of all uses so far.
    pub peak: u64,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TotalsRow {
    /// The bytes read from the stores.
    pub bytes_read: u64,
    /// The bytes that scans would have read in addition if they shared nothing.
    pub bytes_saved: u64,
    /// The number of columns of chunks that were decoded.
    pub slices_decoded: u64,
    /// The number of columns of chunks that scans found decoded.
    pub slices_reused: u64,
    /// The number of chunks handed to workers.
    pub chunks: u64,
    /// The number of chunks whose results queries took from others, instead of reading them.
    #[serde(default)]
    pub results: u64,
    /// The number of loads.
    pub loads: u64,
    /// The number of decisions, which are loads, evictions and answers to workers.
    pub decisions: u64,
    /// The microseconds spent on decisions.
    pub decision_us: f64,
}

/// A running scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanRow {
    /// The id of the scan in the scheduler.
    pub id: u32,
    /// The id of its query, if it has one.
    pub query: Option<String>,
    /// The user of the query, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The start of the query's SQL, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The id of its table.
    pub table: u32,
    /// The name of the table.
    pub table_name: String,
    /// The columns that it reads.
    pub columns: Vec<String>,
    /// Its priority class: `tiny`, `short` or `long`.
    pub class: String,
    /// Whether it is in order.
    pub ordered: bool,
    /// The weight of its query.
    pub weight: u32,
    /// The number of its workers.
    pub workers: usize,
    /// The number of workers that work on a chunk.
    pub busy: usize,
    /// The number of chunks that it needs or needed, without those that were pruned while it ran.
    pub chunks: u64,
    /// The number of chunks that it was handed.
    pub delivered: u64,
    /// The number of its chunks that are in the pool.
    pub ready: usize,
    /// The bytes read for it.
    pub bytes_read: u64,
    /// The bytes that were read for others and that it used.
    pub bytes_reused: u64,
    /// The seconds since it started.
    pub seconds: f64,
    /// The reason for waiting, as [`ScanWait::name`](coscan_runtime::ScanWait::name).
    pub waits: String,
    /// The seconds for which it has waited.
    pub waiting: f64,
    /// The reason for waiting, in words.
    pub why: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// The id of the table in the scheduler.
    pub id: u32,
    /// The name of the table.
    pub name: String,
    /// The columns of the table, which are the rows of its map.
    pub columns: Vec<String>,
    /// The number of chunks.
    pub chunks: usize,
    /// The number of rows.
    pub rows: u64,
    /// The number of running scans.
    pub scans: usize,
}

/// The map of a table, or its changed cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapPart {
    /// The id of the table.
    pub table: u32,
    /// The number of rows of the map.
    pub columns: usize,
    /// The number of columns of the map, which are bins of chunks.
    pub bins: usize,
    /// The number of chunks. Bin `b` starts at chunk `b * chunks / bins`, rounded up.
    pub chunks: usize,
    /// Whether all cells are included.
    pub whole: bool,
    /// [`CELL_NUMBERS`] numbers for each cell, first column first: the shares of its pages that are being read, in the
    /// pool, and in use, and of its slices that are decoded, and the number of scans that need it. A share is from 0 to
    /// 255, and above 0 if there are any pages or slices. The number of scans is at most 255. Unless the map is whole,
    /// the index of a cell precedes its numbers, and cells that did not change are missing.
    pub cells: Vec<u32>,
}

/// A load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// The time of its start.
    pub seconds: f64,
    /// The id of the table.
    pub table: u32,
    /// The index of the chunk.
    pub chunk: u32,
    /// The number of bytes.
    pub bytes: u64,
    /// The number of running scans that need them.
    pub scans: usize,
    /// The id of the scan that it was decided for.
    pub scan: u32,
}
