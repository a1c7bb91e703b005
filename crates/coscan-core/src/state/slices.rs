//! Decoded slices: which scans can use them, and which no scan needs any more.

use crate::ids::{ChunkIndex, GroupIndex, Index, ScanId, SliceId, TableId};
use crate::set::IndexSet;
use crate::state::State;
use crate::state::transitions::scan_at;
use crate::table::Table;

impl State {
    /// The number of scans that need a slice decoded: they read its column group and whole chunks, and have not been
    /// handed its chunk yet. The needs of other servers do not count. A scan that takes only some rows of the chunk
    /// counts if it reads all of its pages. Returns 0 if there is no such slice. Costs a step for each 64 scans of the
    /// table.
    #[must_use]
    pub fn slice_interest(&self, table: TableId, chunk: ChunkIndex, group: GroupIndex) -> usize {
        self.tables.get(&table).map_or(0, |table| table.slice_interest(chunk, group))
    }

    /// Notes that a column of a slice is decoded, and updates the scans that can use it.
    pub(crate) fn add_decoded(&mut self, slice: SliceId) {
        let SliceId { table: id, chunk, group } = slice;
        let exists = |table: &&mut Table| {
            table.chunks.contains(chunk) && group.as_usize() < table.group_count()
        };
        let Some(table) = self.tables.get_mut(&id).filter(exists) else { return };
        let is_first = table.decoded.add(chunk, group);
        if table.slice_interest(chunk, group) == 0 {
            self.unneeded_slices.insert(slice);
        }
        if is_first {
            self.recount_decoded(id, chunk);
        }
    }

    /// Notes that a decoded column of a slice was dropped.
    pub(crate) fn remove_decoded(&mut self, slice: SliceId) {
        let SliceId { table: id, chunk, group } = slice;
        let Some(table) = self.tables.get_mut(&id) else { return };
        if table.decoded.remove(chunk, group) {
            self.unneeded_slices.remove(&slice);
            self.recount_decoded(id, chunk);
        }
    }

    /// Forgets the decoded slices of a chunk that is removed.
    pub(crate) fn forget_decoded(&mut self, table: TableId, chunk: ChunkIndex) {
        if let Some(table) = self.tables.get_mut(&table) {
            table.decoded.forget(chunk);
        }
        let slice = |group| SliceId { table, chunk, group };
        let slices = slice(GroupIndex(0))..=slice(GroupIndex(u32::MAX));
        self.unneeded_slices.extract_if(slices, |_| true).for_each(drop);
    }

    /// Notes that a scan needs chunks now, in order: their decoded slices are needed again.
    pub(crate) fn note_needed(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        if self.unneeded_slices.is_empty() {
            return;
        }
        let Self { scans, unneeded_slices, .. } = self;
        let scan = &scans[&scan];
        if !scan.is_sparse() && scan.decodes() {
            unneeded_slices.retain(|slice| {
                let needs =
                    chunks.binary_search(&slice.chunk).is_ok() && scan.groups.contains(slice.group);
                slice.table != scan.table || !needs
            });
        }
    }

    /// Notes that a scan no longer needs chunks: their decoded slices may be unneeded now.
    pub(crate) fn note_unneeded(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        let Self { tables, scans, unneeded_slices, .. } = self;
        let scan = &scans[&scan];
        let table = &tables[&scan.table];
        if scan.is_sparse() || !scan.decodes() || table.decoded.is_empty() {
            return;
        }
        for &chunk in chunks {
            let read = table.decoded.groups_of(chunk).filter(|&group| scan.groups.contains(group));
            let unneeded = read.filter(|&group| table.slice_interest(chunk, group) == 0);
            unneeded_slices.extend(unneeded.map(|group| SliceId {
                table: scan.table,
                chunk,
                group,
            }));
        }
    }

    /// Updates the scans that can be handed a chunk after its decoded column groups have changed.
    fn recount_decoded(&mut self, id: TableId, chunk: ChunkIndex) {
        let Self { tables, scans, scan_index, .. } = self;
        let Some(table) = tables.get_mut(&id) else { return };
        let counted = table.classes.class_of(chunk).key().scans.iter();
        let sparse = table.sparse_needs.get(&chunk).into_iter().flat_map(IndexSet::iter);
        for slot in counted.chain(sparse).collect::<Vec<_>>() {
            let scan = scan_at(scans, table, slot);
            if scan.is_available(chunk) {
                scan.reindex_decoded(chunk, &table.decoded);
                scan_index.update(scan, &mut table.starvation);
            }
        }
    }
}
