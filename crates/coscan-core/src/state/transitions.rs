//! The transitions of the state, which keep its counts and indexes right.

use std::collections::BTreeMap;

use crate::chunks::ChunkSpec;
use crate::ids::{
    ChunkIndex, GroupIndex, Index, LoadId, PageId, ScanId, ScanPosition, SliceId, TableId,
};
use crate::pages::{Place, Residency, Source};
use crate::scan::{Scan, Ticket};
use crate::set::IndexSet;
use crate::state::{LoadOrigin, State};
use crate::table::{ResidencyCounts, Table};

impl State {
    pub(crate) fn add_table(&mut self, id: TableId, table: Table) {
        *self.devices.entry(table.device).or_default() += 1;
        self.tables.insert(id, table);
    }

    /// Removes a table that has no chunks any more.
    pub(crate) fn remove_table(&mut self, id: TableId) {
        self.changed.insert(id);
        let table = self.tables.remove(&id).expect("looked up before");
        let tables = self.devices.get_mut(&table.device).expect("its tables are counted");
        *tables -= 1;
        if *tables == 0 {
            self.devices.remove(&table.device);
        }
    }

    /// Adds a chunk to a table. Its pages that are in the pool already count at once.
    pub(crate) fn add_chunk(&mut self, table_id: TableId, spec: &ChunkSpec) -> ChunkIndex {
        self.changed.insert(table_id);
        let table = self.tables.get_mut(&table_id).expect("looked up before");
        let counts =
            |slice: &Vec<PageId>| ResidencyCounts::of(slice.iter().map(|&page| &self.pages[page]));
        let counts: Vec<_> = spec.slices.iter().map(counts).collect();
        let chunk = table.add_chunk(spec, &counts);
        for (group, slice) in spec.slices.iter().enumerate() {
            let group = GroupIndex::from_usize(group);
            for &id in slice {
                let page = &mut self.pages[id];
                self.pool.unindex(id, page); // It may count for a table from now on.
                page.join(SliceId { table: table_id, chunk, group });
                self.pool.reindex(id, page);
            }
        }
        chunk
    }

    /// Removes a chunk that no scan needs from its table. Its pages stay.
    pub(crate) fn remove_chunk(&mut self, table_id: TableId, chunk: ChunkIndex) {
        self.changed.insert(table_id);
        let table = self.tables.get_mut(&table_id).expect("looked up before");
        for group in (0..table.group_count()).map(GroupIndex::from_usize) {
            for &id in table.slice(chunk, group) {
                let page = &mut self.pages[id];
                self.pool.unindex(id, page); // It may count for another table from now on.
                page.leave(SliceId { table: table_id, chunk, group });
                self.pool.reindex(id, page);
            }
        }
        table.remove_chunk(chunk);
        self.forget_decoded(table_id, chunk);
    }

    /// Changes the residency of a page, and with it the bytes held, the orders of eviction and the counts of its scans.
    pub(crate) fn move_page(&mut self, id: PageId, to: Residency) {
        let (page, pool) = (&mut self.pages[id], &mut self.pool);
        let place = page.place();
        let (bytes, from) = (page.bytes, std::mem::replace(&mut page.residency, to));
        assert!(to != Residency::Cold || page.pins == 0, "I2: a page in use is not evicted");
        match (from, to) {
            (Residency::Cold, Residency::Reading) => pool.take(bytes),
            (Residency::Reading, Residency::Cached) => pool.touch(id, page),
            (Residency::Cold, Residency::Cached) => {
                pool.take(bytes);
                pool.touch(id, page);
            }
            (Residency::Reading, Residency::Cold) => pool.give(bytes),
            (Residency::Cached, Residency::Cold) => {
                pool.unindex(id, page);
                pool.give(bytes);
                page.read_for = None;
            }
            _ => unreachable!("I2: no page goes from {from:?} to {to:?}"),
        }
        if page.pins == 0 && from == Residency::Cached {
            pool.unpinned_bytes -= bytes;
        } else if page.pins == 0 && to == Residency::Cached {
            pool.unpinned_bytes += bytes;
        }
        self.recount(id, place);
    }

    /// Sets where a page comes from.
    pub(crate) fn set_source(&mut self, id: PageId, source: Source) {
        let page = &mut self.pages[id];
        if page.source == source {
            return;
        }
        let place = page.place();
        self.pool.unindex(id, page);
        page.source = source;
        self.pool.reindex(id, page);
        self.recount(id, place);
    }

    /// Updates the slices of a page that was at `from` before, the classes of their chunks, and the scans that need
    /// those chunks.
    fn recount(&mut self, id: PageId, from: Place) {
        let Self { pages, tables, scans, scan_index, changed, .. } = self;
        let to = pages[id].place();
        for slice in pages[id].slices() {
            changed.insert(slice.table);
            let table = tables.get_mut(&slice.table).expect("a page's table stays registered");
            let sparse_scans = table.sparse_needs.get(&slice.chunk).into_iter();
            for slot in sparse_scans.flat_map(IndexSet::iter).collect::<Vec<_>>() {
                let scan = scan_at(scans, table, slot);
                if scan.reads(slice.group, id) {
                    let residencies: Vec<_> =
                        scan.pages(table, slice.chunk).map(|page| pages[page].residency).collect();
                    scan.reindex_by_residency(slice.chunk, residencies.into_iter());
                    scan.reindex_decoded(slice.chunk, &table.decoded);
                    scan_index.update(scan, &mut table.starvation);
                }
            }
            let position = table.slice_position(slice.chunk, slice.group);
            let page_count = table.slice(slice.chunk, slice.group).len();
            let counts = &mut table.slices[position];
            let before = counts.kinds(page_count);
            counts.remove(from);
            counts.add(to);
            let now = counts.kinds(page_count);
            if now == before {
                continue;
            }
            table.classes.change(slice.chunk, |key| now.write_to(key, slice.group));
            for slot in table.affected(slice.chunk, slice.group, before, now).iter() {
                let scan = scan_at(scans, table, slot);
                scan.reindex(slice.chunk, table.classes.class_of(slice.chunk).key());
                scan.reindex_decoded(slice.chunk, &table.decoded);
                scan_index.update(scan, &mut table.starvation);
            }
        }
    }

    /// Changes a running scan and indexes it anew; `None` if it does not run.
    pub(crate) fn change_scan<R>(
        &mut self,
        id: ScanId,
        change: impl FnOnce(&mut Scan) -> R,
    ) -> Option<R> {
        let scan = self.scans.get_mut(&id)?;
        let changed = change(scan);
        let table = self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        self.scan_index.update(scan, &mut table.starvation);
        self.changed.insert(scan.table);
        Some(changed)
    }

    /// The next ticket in the queue of waiting workers.
    pub(crate) fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub(crate) fn pin(&mut self, id: PageId) {
        let page = &mut self.pages[id];
        assert_ne!(
            page.residency,
            Residency::Cold,
            "I2: only a page in the pool, or being read, is pinned"
        );
        page.pins += 1;
        if page.pins == 1 && page.residency == Residency::Cached {
            self.pool.unpinned_bytes -= page.bytes;
        }
    }

    pub(crate) fn unpin(&mut self, id: PageId) {
        let page = &mut self.pages[id];
        page.pins = page.pins.checked_sub(1).expect("I2: a page released was in use");
        if page.pins == 0 && page.residency == Residency::Cached {
            self.pool.unpinned_bytes += page.bytes;
        }
        self.pool.touch(id, page);
    }

    /// Releases a page that could not be read from the loads that hold it.
    pub(crate) fn give_up_holds(&mut self, id: PageId) {
        for load in self.loads.values_mut() {
            load.held.retain(|&held| held != id);
        }
        for _ in 0..self.page(id).pins {
            self.unpin(id); // Only loads hold a page that is not in the pool.
        }
    }

    /// Removes a load: its pages may be evicted, and its time enters the average.
    pub(crate) fn end_load(&mut self, load: LoadId) {
        let record = self.loads.remove(&load).expect("only a load in flight ends");
        for page in record.held {
            self.unpin(page);
        }
        if record.origin == LoadOrigin::PeerPools {
            self.change_scan(record.scan, |scan| scan.nearby_loads -= 1);
            return; // It takes far less time than others, for which average times count.
        }
        let load_ns = self.now.since(record.started).max(1);
        self.load_ns = if self.load_ns == 0 { load_ns } else { (self.load_ns * 7 + load_ns) / 8 };
    }

    /// Sets the scan that a page is read for. Returns the one before.
    pub(crate) fn set_read_for(&mut self, id: PageId, scan: Option<ScanId>) -> Option<ScanId> {
        std::mem::replace(&mut self.pages[id].read_for, scan)
    }

    /// Adds a scan to its table.
    pub(crate) fn add_scan(&mut self, scan: Scan) {
        let table = self.tables.get_mut(&scan.table).expect("looked up before");
        table.scans.insert(scan.id);
        if scan.is_sparse() {
            table.sparse_scans.insert(scan.id);
        }
        table.in_order.set(scan.slot, scan.goes_in_order());
        table.for_others.set(scan.slot, !scan.decodes());
        table.classes.add_scan(scan.slot, &scan.groups);
        self.scans.insert(scan.id, scan);
    }

    /// Removes a scan that needs no chunk any more.
    pub(crate) fn remove_scan(&mut self, scan: ScanId) {
        let mut scan = self.scans.remove(&scan).expect("looked up before");
        let table: &mut Table =
            self.tables.get_mut(&scan.table).expect("a scan's table stays registered");
        self.scan_index.remove(&mut scan, &mut table.starvation);
        table.scans.remove(&scan.id);
        table.sparse_scans.remove(&scan.id);
        table.in_order.remove(scan.slot);
        table.for_others.remove(scan.slot);
        table.classes.remove_scan(scan.slot);
        table.free_slot(scan.slot);
    }
}

/// The running scan of a table at a slot.
pub(super) fn scan_at<'a>(
    scans: &'a mut BTreeMap<ScanId, Scan>,
    table: &Table,
    slot: ScanPosition,
) -> &'a mut Scan {
    let scan = table.slots[slot.as_usize()].and_then(|id| scans.get_mut(&id));
    scan.expect("a class lists running scans")
}
