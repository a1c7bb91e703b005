//! The state of a manager at one moment: the complete content of a sample.

use std::cmp::Reverse;

use coscan_datafusion::SharedResults;
use coscan_runtime::core::{Order, PoolMap, PriorityClass, TableId};
use coscan_runtime::{BufferManager, Event, EventKind, ScanReport, TableReport};
use coscan_transport::{PeerState, PeerStatus, Transport};

use super::sample::{
    CELL_NUMBERS, LoadRow, MemoryRow, Sample, ScanRow, ServerRow, ServersRow, TableRow, TotalsRow,
    VERSION, WorkerRow, WorkersRow,
};
use crate::known_workers::{KnownWorker, KnownWorkers};
use crate::queries::Queries;

/// The maximum number of scans that are shown.
pub(super) const SCANS_MAX: usize = 200;
/// The maximum number of tables that are shown.
pub(super) const TABLES_MAX: usize = 12;
/// The maximum number of servers that are shown.
const SERVERS_MAX: usize = 64;
/// The maximum number of bins of a map.
const BINS_MAX: usize = 240;
/// The maximum number of cells of a map. A table of a thousand columns has fewer bins.
const CELLS_MAX: usize = 16_384;

/// The length of the shown start of a query's text, in bytes.
const SQL_BYTES: usize = 160;

/// The map of a table with [`CELL_NUMBERS`] bytes for each cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) table: u32,
    pub(super) columns: usize,
    pub(super) bins: usize,
    pub(super) chunks: usize,
    pub(super) cells: Vec<u8>,
}

/// A whole picture. Its sample has no maps and no loads, which are stored beside it.
#[derive(Clone, Debug, Default)]
pub(super) struct SchedulerSnapshot {
    pub(super) sample: Sample,
    pub(super) maps: Vec<Map>,
    /// The last loads, oldest first.
    pub(super) loads: Vec<LoadRow>,
    /// The number of earlier loads.
    pub(super) loads_before: u64,
}

impl SchedulerSnapshot {
    /// The current state of a manager. Visits all chunks of the shown tables.
    pub(super) fn take(manager: &BufferManager) -> Self {
        let tables = shown(manager.tables());
        let maps = tables
            .iter()
            .filter_map(|table| manager.pool_map(table.id, bins_max(table.groups.len())));
        let maps: Vec<PoolMap> = maps.collect();
        let mut shared_bytes = [0; 5];
        for map in &maps {
            shared_bytes.iter_mut().zip(map.shared_bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        let scans = manager.scans();
        let report = manager.report();
        let sample = Sample {
            version: VERSION,
            seconds: report.age.as_secs_f64(),
            policy: manager.options().policy.name().to_owned(),
            memory: MemoryRow {
                budget: report.memory_bytes,
                pool: report.pool_held_bytes,
                pool_limit: report.pool_limit_bytes,
                decoded: report.decoded_bytes,
                operators: report.operator_bytes,
                metadata: report.metadata_bytes,
                peak: report.held_bytes_max,
            },
            totals: TotalsRow {
                bytes_read: report.bytes_read,
                bytes_saved: report.bytes_saved(),
                slices_decoded: report.slices_decoded,
                slices_reused: report.slices_reused,
                chunks: report.chunks_delivered,
                results: SharedResults::of(manager).chunks_taken,
                loads: report.loads_started,
                decisions: report.decisions,
                decision_us: report.decision_time.as_secs_f64() * 1e6,
            },
            scan_count: scans.len(),
            scans: scans.iter().take(SCANS_MAX).map(scan_row).collect(),
            tables: Some(tables.iter().map(table_row).collect()),
            shared_bytes,
            ..Sample::default()
        };
        let maps = maps.iter().map(map).collect();
        Self { sample, maps, loads: Vec::new(), loads_before: 0 }
    }

    /// Adds the users and SQL of the scans.
    pub(super) fn add_queries(&mut self, queries: &Queries) {
        for scan in &mut self.sample.scans {
            let id = scan.query.as_ref().and_then(|id| id.parse().ok());
            if let Some(query) = id.and_then(|id| queries.find(id)) {
                scan.user = Some(query.user);
                let words = query.sql.split_whitespace().collect::<Vec<_>>().join(" ");
                scan.sql = Some(words[..words.floor_char_boundary(SQL_BYTES)].to_owned());
            }
        }
    }

    /// Adds the servers that share what they read.
    pub(super) fn add_servers(&mut self, transport: &Transport) {
        let mut nodes = transport.nodes();
        let count = nodes.len();
        let bytes_shared = nodes.iter().map(|node| node.share.bytes).sum();
        nodes.sort_by_cached_key(|node| {
            let exchanged = node.bytes_sent.saturating_add(node.bytes_received);
            (node.status != PeerStatus::ThisServer, Reverse(exchanged), node.address.clone())
        });
        nodes.truncate(SERVERS_MAX);
        let rows = nodes.into_iter().map(server_row).collect();
        self.sample.servers = Some(ServersRow { count, bytes_shared, rows });
    }

    /// Adds the workers of distributed queries, if there are any.
    pub(super) fn add_workers(&mut self, workers: &KnownWorkers) {
        let tasks = workers.tasks();
        let rows: Vec<_> = workers.all().into_iter().map(worker_row).collect();
        if tasks.is_some() || !rows.is_empty() {
            self.sample.workers = Some(WorkersRow { tasks, rows });
        }
    }
}

fn worker_row(worker: KnownWorker) -> WorkerRow {
    WorkerRow { address: worker.address, status: worker.status.to_owned(), reason: worker.reason }
}

fn server_row(node: PeerState) -> ServerRow {
    ServerRow {
        address: node.address,
        zone: node.zone,
        status: node.status.name().to_owned(),
        extents: node.share.extents,
        bytes_owned: node.share.bytes,
        bytes_sent: node.bytes_sent,
        bytes_received: node.bytes_received,
    }
}

/// The maximum number of bins of a map with a number of columns.
pub(super) fn bins_max(columns: usize) -> usize {
    BINS_MAX.min(CELLS_MAX / columns.max(1)).max(1)
}

/// A load, if the event is the start of one.
pub(super) fn load_row(event: &Event) -> Option<LoadRow> {
    match event.kind {
        EventKind::LoadStarted { scan, table, chunk, bytes, scans, .. } => Some(LoadRow {
            seconds: event.at.as_secs_f64(),
            table: table.0,
            chunk: chunk.0,
            bytes,
            scans,
            scan: scan.0,
        }),
        _ => None,
    }
}

/// The tables that are shown, oldest first. They are the ones that most scans read.
fn shown(mut tables: Vec<TableReport>) -> Vec<TableReport> {
    tables.sort_by_key(|table| (Reverse(table.scans), table.id));
    tables.truncate(TABLES_MAX);
    tables.sort_by_key(|table| table.id);
    tables
}

fn table_row(table: &TableReport) -> TableRow {
    TableRow {
        id: table.id.0,
        name: table.name.to_string(),
        columns: table.groups.to_vec(),
        chunks: table.chunks,
        rows: table.rows,
        scans: table.scans,
    }
}

pub(super) fn scan_row(scan: &ScanReport) -> ScanRow {
    let chunks = &scan.metrics.chunks;
    ScanRow {
        id: scan.id.0,
        query: scan.query.as_ref().map(ToString::to_string),
        user: None,
        sql: None,
        table: scan.table.0,
        table_name: scan.table_name.to_string(),
        columns: scan.columns.to_vec(),
        class: match scan.class {
            PriorityClass::Tiny => "tiny",
            PriorityClass::Short => "short",
            PriorityClass::Long => "long",
        }
        .to_owned(),
        ordered: scan.order == Order::InOrder,
        weight: scan.weight,
        workers: scan.workers,
        busy: scan.workers_busy,
        chunks: chunks.chunks_needed.saturating_sub(chunks.chunks_pruned_dynamic),
        delivered: chunks.chunks_delivered,
        ready: scan.chunks_ready,
        bytes_read: chunks.bytes_read,
        bytes_reused: chunks.bytes_reused,
        seconds: scan.age.as_secs_f64(),
        waits: scan.waits_for.name().to_owned(),
        waiting: scan.waiting.as_secs_f64(),
        why: scan.why(),
    }
}

pub(super) fn map(map: &PoolMap) -> Map {
    let TableId(table) = map.table;
    let mut cells = Vec::with_capacity(map.cells.len() * CELL_NUMBERS);
    for (index, cell) in map.cells.iter().enumerate() {
        let pages = cell.pages();
        let shares = [cell.loading, cell.stored, cell.in_use].map(|count| share(count, pages));
        cells.extend(shares);
        cells.push(share(cell.decoded, chunks_of(map, index % map.bins)));
        cells.push(u8::try_from(cell.scans).unwrap_or(u8::MAX));
    }
    Map { table, columns: map.groups, bins: map.bins, chunks: map.chunk_index_end, cells }
}

fn chunks_of(map: &PoolMap, bin: usize) -> u32 {
    let first = |bin: usize| (bin * map.chunk_index_end).div_ceil(map.bins);
    u32::try_from(first(bin + 1) - first(bin)).unwrap_or(u32::MAX)
}

/// A share from 0 to 255, which is above 0 if `count` is.
fn share(count: u32, of: u32) -> u8 {
    let share = u64::from(count) * 255 / u64::from(of.max(1));
    u8::try_from(share.max(u64::from(count > 0))).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_of_few_is_seen() {
        assert_eq!([share(0, 9), share(1, 100_000), share(9, 9), share(1, 0)], [0, 1, 255, 255]);
    }
}
