//! The views of a manager for observers: its scans, its tables, the pool, and events.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{PoolMap, TableId};

use crate::manager::BufferManager;
use crate::observe::events::Events;
use crate::observe::scan_report::ScanReport;
use crate::tables::table::SharedTable;

/// A report on a registered table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its id with the scheduler.
    pub id: TableId,
    /// The name by which a query last called it; before that, the one that it is registered by, or that of its first
    /// file.
    pub name: Arc<str>,
    /// The columns of each column group, in the order of the groups.
    pub groups: Arc<[String]>,
    /// The number of its chunks, of all its snapshots that are in use.
    pub chunks: usize,
    /// The number of rows of these chunks.
    pub rows: u64,
    /// The number of its running scans.
    pub scans: usize,
}

/// Stored bytes that a scan would need now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanBytes {
    /// Bytes of pages that would be read for it alone.
    pub unshared: u64,
    /// Bytes of pages that are in the pool or being read, or that running scans need in any case.
    pub shared: u64,
}

impl BufferManager {
    /// Reports on all running scans, oldest first. Each is of one moment, but not all of the same one: none of them
    /// waits until all are looked at.
    #[must_use]
    pub fn scans(&self) -> Vec<ScanReport> {
        self.driver.scan_reports()
    }

    /// Reports on all registered tables, oldest first.
    #[must_use]
    pub fn tables(&self) -> Vec<TableReport> {
        self.driver.table_reports()
    }

    /// The residency of the pages of a table, and the scans that need them: column groups × at most `bins_max` bins of
    /// chunks; `None` if there is no such table.
    ///
    /// This walks over all chunks, a few at a time, so that no query waits for it; the map is not of one moment. A
    /// million chunks of a column take some tens of milliseconds: do not ask for it with every event.
    #[must_use]
    pub fn pool_map(&self, table: TableId, bins_max: usize) -> Option<PoolMap> {
        self.driver.pool_map(table, bins_max)
    }

    /// The stored bytes that a scan of some columns and rows would need, with pages that hold other rows, too. Columns
    /// and rows are as in [`Self::scan`]. It is an estimate, since pages come and go meanwhile.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn scan_bytes(
        &self,
        table: &SharedTable,
        columns: &[usize],
        rows: &[Range<u64>],
    ) -> ScanBytes {
        let (snapshot, parquet) = (table.snapshot(), table.table());
        let mut groups: Vec<_> =
            columns.iter().map(|&column| parquet.group_of_column(column)).collect();
        groups.sort_unstable();
        groups.dedup();
        let pages = parquet.pages_for(&groups, rows).into_iter();
        let pages: Vec<_> = pages.map(|page| snapshot.page_id(page)).collect();
        self.driver.scan_bytes(&pages)
    }

    /// The actions of the scheduler from now on. At most `capacity` events that are not taken are kept, at least one.
    /// Further events are dropped and counted, see [`Events::take_lost`]. The scheduler never waits.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Events {
        self.driver.subscribe(capacity)
    }
}
