//! The ledger: a shadow model of reads, evictions, deliveries and requests, kept from the actions alone. Every action is
//! checked against it, and the manager's records whenever no more actions come out.

mod audit;
mod scans;

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::{
    Action, ActiveBufferManager, ChunkIndex, Index, IndexSet, Layout, LoadId, PageId, ScanId,
    TableId, Time,
};

use crate::violation::{Broken, Rule, ensure};
use crate::workload::PageNumbers;
use scans::ShadowScan;

/// The place of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Cold,
    Reading,
    Cached,
}

/// A page, and the number of workers that use it.
#[derive(Clone, Copy, Debug)]
struct ShadowPage {
    place: Place,
    users: u32,
    bytes: u64,
}

/// Pages of a load that have not been reported.
#[derive(Clone, Debug)]
struct ShadowLoad {
    pages: Vec<PageId>,
    urgent: bool,
    /// The unreported pages that come from the device: while there are any, the load takes a slot.
    of_device: Vec<PageId>,
}

/// The ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    layouts: Vec<Arc<Layout>>,
    numbers: PageNumbers,
    /// The pages by their ids.
    pages: Vec<ShadowPage>,
    /// The pages that come from other machines.
    elsewhere: IndexSet<PageId>,
    loads: BTreeMap<LoadId, ShadowLoad>,
    scans: BTreeMap<ScanId, ShadowScan>,
    loads_in_flight_max: usize,
    limit_bytes: u64,
    held_bytes: u64,
    /// Workers that wait, and workers that work on a chunk.
    waiting: usize,
    busy: usize,
    /// Loads since the last delivery. Scans that evict each other's pages forever would let it grow.
    useless_loads: usize,
    /// The page that failed last. The next `Fail` is about it.
    failed: Option<PageId>,
    /// The bound on waits, in nanoseconds, above which a run counts as broken.
    wait_ns_max: u64,
}

impl Ledger {
    pub(crate) fn new(
        layouts: Vec<Arc<Layout>>,
        limit_bytes: u64,
        loads_in_flight_max: usize,
        wait_ns_max: u64,
    ) -> Self {
        let cold = |bytes| ShadowPage { place: Place::Cold, users: 0, bytes };
        Self {
            numbers: PageNumbers::of(&layouts),
            pages: layouts.iter().flat_map(|layout| layout.page_bytes()).map(cold).collect(),
            layouts,
            elsewhere: IndexSet::new(),
            loads: BTreeMap::new(),
            scans: BTreeMap::new(),
            loads_in_flight_max,
            limit_bytes,
            held_bytes: 0,
            waiting: 0,
            busy: 0,
            useless_loads: 0,
            failed: None,
            wait_ns_max,
        }
    }

    /// Enters whether a page comes from another machine, or from the device.
    pub(crate) fn set_elsewhere(&mut self, page: PageId, elsewhere: bool) {
        self.elsewhere.set(page, elsewhere);
    }

    /// Checks an action and enters it.
    pub(crate) fn acted(&mut self, now: Time, action: &Action) -> Result<(), Broken> {
        match action {
            Action::Load { load, scan, table, chunk, pages, urgent } => {
                let in_slots = self.loads.values().filter(|book| !book.of_device.is_empty());
                let of_kind = in_slots.filter(|book| book.urgent == *urgent).count();
                let takes_slot = pages.iter().any(|&page| !self.elsewhere.contains(page));
                let has_slot = of_kind < self.loads_in_flight_max || !takes_slot;
                ensure(has_slot, Rule::Protocol, || {
                    format!("{load:?} is one more load in flight than the limit")
                })?;
                self.check_load_helps(*scan, *table, *chunk, pages)?;
                self.load_started(*load, *table, *chunk, pages, *urgent)
            }
            Action::Escalate { load } => self.escalated(*load),
            Action::Evict { page } => self.evicted(*page),
            Action::Deliver { scan, worker, chunk } => self.delivered(now, *scan, *worker, *chunk),
            Action::Finish { scan, worker } => self.finished(now, *scan, *worker),
            Action::Fail { scan, page } => self.scan_failed(*scan, *page),
            // Nothing is decoded here. A scan without space is cancelled at once.
            Action::NoSpace { .. } | Action::Unneeded { .. } | Action::GrantMemory { .. } => Ok(()),
        }
    }

    /// Enters a page that arrived, or could not be read.
    pub(crate) fn page_reported(&mut self, load: LoadId, page: PageId, read: bool) {
        let book = self.loads.get_mut(&load).expect("a load that was started");
        book.pages.retain(|&unreported| unreported != page);
        book.of_device.retain(|&unreported| unreported != page);
        if book.pages.is_empty() {
            self.loads.remove(&load);
        }
        if !read {
            self.held_bytes -= self.page(page).bytes;
            self.failed = Some(page);
        }
        self.page_mut(page).place = if read { Place::Cached } else { Place::Cold };
    }

    /// Enters another limit of the pool. Evictions come later, as actions.
    pub(crate) fn pool_changed(&mut self, asked: u64, limit: u64) -> Result<(), Broken> {
        self.useless_loads = 0;
        let most = asked.max(self.limit_bytes);
        ensure(asked <= limit && limit <= most, Rule::PoolLimit, || {
            format!("the pool was asked to be {asked} bytes and made itself {limit}")
        })?;
        self.limit_bytes = limit;
        Ok(())
    }

    /// Enters the limit of the pool after it has moved for others.
    pub(crate) fn pool_moved(&mut self, manager: &ActiveBufferManager) {
        let limit_bytes = manager.state().pool_bytes();
        if limit_bytes != self.limit_bytes {
            self.useless_loads = 0;
            self.limit_bytes = limit_bytes;
        }
    }

    /// Checks what must hold when no more actions come out.
    pub(crate) fn check_settled(&self, manager: &ActiveBufferManager) -> Result<(), Broken> {
        let (held, limit) = (self.held_bytes, self.limit_bytes);
        ensure(held <= limit, Rule::PoolLimit, || format!("{held} bytes in a pool of {limit}"))?;
        let known = manager.state().held_bytes();
        ensure(known == held, Rule::Records, || {
            format!("the pool holds {held} bytes, the manager counts {known}")
        })?;
        let stuck = self.waiting > 0 && self.busy == 0 && self.loads.is_empty();
        ensure(!stuck, Rule::Progress, || {
            format!("{} workers wait, none is busy, nothing is being read", self.waiting)
        })
    }

    fn load_started(
        &mut self,
        load: LoadId,
        table: TableId,
        chunk: ChunkIndex,
        pages: &[PageId],
        urgent: bool,
    ) -> Result<(), Broken> {
        for &id in pages {
            let place = self.page(id).place;
            ensure(place == Place::Cold, Rule::Protocol, || {
                format!("{load:?} reads {id:?}, which is {place:?}")
            })?;
            let page = self.numbers.page(id);
            let chunks = self.layouts[page.table].chunks_of(page.page);
            let is_needed = page.table == table.as_usize() && chunks.contains(&chunk);
            ensure(is_needed, Rule::Protocol, || {
                format!("{load:?} reads {id:?} for {chunk:?}, which does not need it")
            })?;
            self.page_mut(id).place = Place::Reading;
            self.held_bytes += self.page(id).bytes;
        }
        let of_device = pages.iter().filter(|&&page| !self.elsewhere.contains(page));
        let of_device = of_device.copied().collect();
        self.loads.insert(load, ShadowLoad { pages: pages.to_vec(), urgent, of_device });
        let (held, limit) = (self.held_bytes, self.limit_bytes);
        ensure(held <= limit, Rule::PoolLimit, || {
            format!("{load:?} makes it {held} bytes in a pool of {limit}")
        })?;
        self.useless_loads += 1;
        let pages = self.pages.len();
        ensure(self.useless_loads <= 2 * pages + 8, Rule::NoStarving, || {
            format!("{} loads since the last delivery", self.useless_loads)
        })
    }

    fn escalated(&mut self, load: LoadId) -> Result<(), Broken> {
        let book = self.loads.get_mut(&load);
        let was_usual = book.is_some_and(|book| !std::mem::replace(&mut book.urgent, true));
        let what = || format!("{load:?} is escalated, but is not in flight, or is urgent");
        ensure(was_usual, Rule::Protocol, what)
    }

    fn evicted(&mut self, id: PageId) -> Result<(), Broken> {
        let ShadowPage { place, users, bytes } = *self.page(id);
        ensure(place == Place::Cached && users == 0, Rule::PagesInUseStay, || {
            format!("{id:?} is evicted while it is {place:?} and {users} workers use it")
        })?;
        self.page_mut(id).place = Place::Cold;
        self.held_bytes -= bytes;
        Ok(())
    }

    fn page(&self, id: PageId) -> &ShadowPage {
        &self.pages[id.as_usize()]
    }

    fn page_mut(&mut self, id: PageId) -> &mut ShadowPage {
        &mut self.pages[id.as_usize()]
    }
}
