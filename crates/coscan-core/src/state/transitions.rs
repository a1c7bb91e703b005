//! The transitions of the state, which keep its counts right.

use std::sync::Arc;

use crate::ids::{ChunkIndex, Index, LoadId, PageId, ScanId};
use crate::pool::{Page, Place, Pool};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Places;

impl State {
    fn page_mut(&mut self, id: PageId) -> (&mut Page, &mut Pool) {
        let table = self.tables.get_mut(&id.table).expect("a page's table stays registered");
        (&mut table.pages[id.page.as_usize()], &mut self.pool)
    }

    /// Moves a page to another place: room, orders and the counts of every scan that needs it follow.
    pub(crate) fn move_page(&mut self, id: PageId, to: Place) {
        let bytes = self.bytes_of(id);
        let (page, pool) = self.page_mut(id);
        let from = std::mem::replace(&mut page.place, to);
        assert!(to != Place::Cold || page.pins == 0, "I2: a page in use is not evicted");
        match (from, to) {
            (Place::Cold, Place::Reading(_)) => pool.take(bytes),
            (Place::Reading(_), Place::Cached) => pool.file(id, page),
            (Place::Reading(_), Place::Cold) => pool.give(bytes),
            (Place::Cached, Place::Cold) => {
                pool.unfile(id, page);
                pool.give(bytes);
                page.read_for = None;
            }
            _ => unreachable!("I2: no page goes from {from:?} to {to:?}"),
        }
        self.recount(id, from, to);
    }

    /// Follows a page with its slices, the classes of its chunks and what the scans that need them have.
    fn recount(&mut self, id: PageId, from: Place, to: Place) {
        let table = self.tables.get_mut(&id.table).expect("a page's table stays registered");
        let group = table.layout.group_of(id.page);
        for &scan in &table.picking {
            let scan = self.scans.get_mut(&scan).expect("a table lists running scans");
            for &chunk in table.layout.chunks_of(id.page) {
                if scan.needed.contains(chunk) && scan.reads(&table.layout, id.page) {
                    table.refile_picks(scan, chunk);
                }
            }
        }
        for &chunk in table.layout.chunks_of(id.page) {
            let slice = chunk.as_usize() * table.layout.group_count() + group.as_usize();
            let places = &mut table.slices[slice];
            let before = *places;
            *places.count(from) -= 1;
            *places.count(to) += 1;
            let any = |places: &Places| (places.cold > 0, places.reading > 0, places.cached > 0);
            if any(places) == any(&before) {
                continue;
            }
            let (cold, reading, cached) = any(places);
            table.classes.change(chunk, |key| {
                key.cold.set(group, cold);
                key.reading.set(group, reading);
                key.cached.set(group, cached);
            });
            let key = table.classes.class_of(chunk).key();
            for slot in key.scans.iter() {
                let scan = table.slots[slot.as_usize()].and_then(|id| self.scans.get_mut(&id));
                let scan = scan.expect("a class lists running scans");
                if scan.groups.contains(group) {
                    scan.refile(chunk, key);
                }
            }
        }
    }

    /// Files chunks that a scan did not need before, and says that their pages are wanted.
    pub(crate) fn need(&mut self, scan: ScanId, chunks: &IndexSet<ChunkIndex>) {
        let scan = self.scans.get_mut(&scan).expect("the scan runs");
        let table = self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        table.classes.set_groups(slot, &scan.groups);
        if !scan.picks() {
            table.classes.change_all(chunks.iter(), |key| {
                key.scans.insert(slot);
            });
        }
        for chunk in chunks.iter() {
            scan.needed.insert(chunk);
            match scan.picks() {
                true => table.refile_picks(scan, chunk),
                false => scan.refile(chunk, table.classes.class_of(chunk).key()),
            }
            let layout = Arc::clone(&table.layout);
            for page in scan.pages(&layout, chunk) {
                let id = PageId { table: scan.table, page };
                let page = &mut table.pages[page.as_usize()];
                page.wanted += 1;
                self.pool.refile(id, page);
            }
        }
    }

    /// Takes chunks off what a scan needs; their pages are wanted by one less.
    pub(crate) fn unneed(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        let scan = self.scans.get_mut(&scan).expect("the scan runs");
        let table = self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        if !scan.picks() {
            table.classes.change_all(chunks.iter().copied(), |key| {
                key.scans.remove(slot);
            });
        }
        let layout = Arc::clone(&table.layout);
        for &chunk in chunks {
            scan.forget(chunk);
            for page in scan.pages(&layout, chunk) {
                let id = PageId { table: scan.table, page };
                let page = &mut table.pages[page.as_usize()];
                page.wanted = page.wanted.checked_sub(1).expect("a needed page was wanted");
                self.pool.refile(id, page);
            }
        }
    }

    pub(crate) fn pin(&mut self, id: PageId) {
        let (page, _) = self.page_mut(id);
        assert_ne!(page.place, Place::Cold, "I2: only a page in the pool, or on its way, is held");
        page.pins += 1;
    }

    pub(crate) fn unpin(&mut self, id: PageId) {
        let (page, pool) = self.page_mut(id);
        page.pins = page.pins.checked_sub(1).expect("I2: a page released was in use");
        pool.file(id, page);
    }

    /// A page that could not be read: no load can hold it.
    pub(crate) fn give_up_holds(&mut self, id: PageId) {
        let (page, pins) = (id.page, self.page(id).pins);
        for load in self.loads.values_mut().filter(|load| load.table == id.table) {
            load.held.retain(|&held| held != page);
        }
        for _ in 0..pins {
            self.unpin(id); // Only loads hold a page that is not in the pool.
        }
    }

    /// Takes a load off: what it held may go, and the time it took enters the average.
    pub(crate) fn end_load(&mut self, load: LoadId) {
        let record = self.loads.remove(&load).expect("only a load under way ends");
        for page in record.held {
            self.unpin(PageId { table: record.table, page });
        }
        let load_ns = self.now.since(record.started).max(1);
        self.load_ns = if self.load_ns == 0 { load_ns } else { (self.load_ns * 7 + load_ns) / 8 };
    }

    /// Remembers for whom a page is read, or takes that back.
    pub(crate) fn set_read_for(&mut self, id: PageId, scan: Option<ScanId>) -> Option<ScanId> {
        std::mem::replace(&mut self.page_mut(id).0.read_for, scan)
    }
}
