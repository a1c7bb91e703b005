//! The state of the buffer manager: tables, scans, pages, loads and the pool.
//!
//! Policies read it; only the state machine in [`crate::ActiveBufferManager`] changes it, through `transitions`.

mod in_work;
mod load_candidates;
mod needs;
mod pages;
mod scan_index;
mod scans;
mod slices;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ChunkIndex, DeviceId, LoadId, PageId, ScanId, SliceId, TableId, Time};
use crate::pages::{Page, Pages};
use crate::pool::Pool;
use crate::scan::Scan;
use crate::table::Table;

pub(crate) use in_work::ChunksInWork;
pub use load_candidates::{CandidateKind, LoadCandidates};
pub(crate) use scan_index::ScanIndex;

/// Pages of one chunk that are being read.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) table: TableId,
    pub(crate) device: DeviceId,
    pub(crate) origin: LoadOrigin,
    /// Pages not reported yet that are to come from other servers.
    pub(crate) from_peers: Vec<PageId>,
    /// The scan that it is for; it may have ended.
    pub(crate) scan: ScanId,
    pub(crate) chunk: ChunkIndex,
    /// Pages not reported yet.
    pub(crate) unreported: Vec<PageId>,
    /// Pages pinned until the load ends: those that it reads, and the others of the chunk that its scan needs. So a load
    /// leaves a whole chunk behind, not half of one [CS07 §6.2, "avoiding data waste"].
    pub(crate) held: Vec<PageId>,
    pub(crate) started: Time,
    pub(crate) urgent: bool,
}

impl Load {
    /// Whether it takes a slot of its device. A load that only waits for other servers takes none, since they may wait
    /// for that slot.
    pub(crate) fn takes_slot(&self) -> bool {
        self.origin == LoadOrigin::Device || self.unreported.len() > self.from_peers.len()
    }
}

/// The origin of the pages of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoadOrigin {
    /// All pages come from its device.
    Device,
    /// Some pages come from other servers.
    Peers,
    /// All pages come from the pools of other servers.
    PeerPools,
}

/// The state that policies decide by.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) pages: Pages,
    pub(crate) tables: BTreeMap<TableId, Table>,
    /// The number of tables on each device.
    pub(crate) devices: BTreeMap<DeviceId, usize>,
    pub(crate) scans: BTreeMap<ScanId, Scan>,
    pub(crate) pool: Pool,
    pub(crate) loads: BTreeMap<LoadId, Load>,
    /// Average time of a load, smoothed; 0 until the first one ended.
    pub(crate) load_ns: u64,
    /// Nanoseconds of waiting after which a scan is served first.
    pub(crate) wait_max_ns: u64,
    pub(crate) scan_index: ScanIndex,
    pub(crate) in_work: ChunksInWork,
    /// Tables whose needs, or pages in the pool, have changed since victims were last chosen.
    pub(crate) changed: BTreeSet<TableId>,
    /// Decoded slices that no scan needs any more, which the caller has not been told yet.
    pub(crate) unneeded_slices: BTreeSet<SliceId>,
    /// Tickets given to waiting workers so far.
    pub(crate) tickets: u64,
}

impl State {
    pub(crate) fn new(pool_bytes: u64, wait_max_ns: u64) -> Self {
        Self {
            now: Time::default(),
            pages: Pages::default(),
            tables: BTreeMap::new(),
            devices: BTreeMap::new(),
            scans: BTreeMap::new(),
            pool: Pool::new(pool_bytes),
            loads: BTreeMap::new(),
            load_ns: 0,
            wait_max_ns,
            scan_index: ScanIndex::default(),
            in_work: ChunksInWork::default(),
            changed: BTreeSet::new(),
            unneeded_slices: BTreeSet::new(),
            tickets: 0,
        }
    }

    /// The time of the last command or event.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Nanoseconds that a load takes on average, smoothed; `None` until the first one ended.
    #[must_use]
    pub fn load_ns(&self) -> Option<u64> {
        (self.load_ns > 0).then_some(self.load_ns)
    }

    /// Whether a scan that has waited since this time is served first, whatever the policy prefers.
    #[must_use]
    pub fn is_overdue(&self, since: Time) -> bool {
        self.now.since(since) >= self.wait_max_ns
    }

    /// The most bytes the pool may hold.
    #[must_use]
    pub fn pool_bytes(&self) -> u64 {
        self.pool.limit_bytes
    }

    /// Bytes in the pool or being read.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.pool.held_bytes
    }

    /// The bytes of the cached pages that neither a worker nor a load holds: the most that could be evicted.
    #[must_use]
    pub fn unpinned_bytes(&self) -> u64 {
        self.pool.unpinned_bytes
    }

    /// A registered table.
    ///
    /// # Panics
    /// If there is none with this id.
    #[must_use]
    pub fn table(&self, table: TableId) -> &Table {
        self.tables.get(&table).expect("a scan's table stays registered")
    }

    /// Whether a table is registered.
    #[must_use]
    pub fn knows(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// The devices of all tables, each once.
    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceId> + '_ {
        self.devices.keys().copied()
    }

    /// All tables, oldest first.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Table)> {
        self.tables.iter().map(|(&id, table)| (id, table))
    }

    /// Bytes of memory for the state of a table: its chunks, the pages that it listed first, and the needs of its scans.
    /// The lists of pages themselves are not counted.
    #[must_use]
    pub fn memory_bytes(&self, table: TableId) -> usize {
        let scans = self.scans_of(table).map(Scan::memory_bytes);
        let listed = self.pages.iter().filter(|(_, page)| page.home() == Some(table));
        let pages = listed.count() * size_of::<Page>();
        self.table(table).memory_bytes() + pages + scans.sum::<usize>()
    }
}
