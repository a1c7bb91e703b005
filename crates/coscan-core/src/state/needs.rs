//! The transitions of needs: a scan needs more chunks, or fewer.

use crate::ids::{ChunkIndex, ScanId};
use crate::state::State;

impl State {
    /// Adds chunks in order to the needs of a scan, none of which it needs yet. One more scan then needs their pages.
    pub(crate) fn need(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        self.note_needed(scan, chunks);
        let Self { pages, tables, scans, pool, scan_index, changed, .. } = self;
        let scan = scans.get_mut(&scan).expect("the scan runs");
        changed.insert(scan.table);
        let table = tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        if scan.is_sparse() {
            chunks.iter().for_each(|&chunk| {
                table.sparse_needs.entry(chunk).or_default().insert(slot);
            });
        } else {
            table.classes.change_all(chunks.iter().copied(), |key| {
                key.scans.insert(slot);
            });
        }
        for &chunk in chunks {
            scan.needed.insert(chunk);
            if scan.is_sparse() {
                let residencies: Vec<_> =
                    scan.pages(table, chunk).map(|id| pages[id].residency).collect();
                scan.reindex_by_residency(chunk, residencies.into_iter());
            } else {
                scan.reindex(chunk, table.classes.class_of(chunk).key());
            }
            scan.reindex_decoded(chunk, &table.decoded);
            for id in scan.pages(table, chunk) {
                let page = &mut pages[id];
                page.needed_count += 1;
                if page.needed_count == 1 {
                    pool.reindex_needed(id, page);
                }
            }
        }
        scan_index.update(scan, &mut table.starvation);
    }

    /// Removes chunks from the needs of a scan. One scan fewer then needs their pages.
    pub(crate) fn remove_need(&mut self, id: ScanId, chunks: &[ChunkIndex]) {
        let Self { pages, tables, scans, pool, scan_index, changed, .. } = self;
        let scan = scans.get_mut(&id).expect("the scan runs");
        changed.insert(scan.table);
        let table = tables.get_mut(&scan.table).expect("a scan's table stays registered");
        let slot = scan.slot;
        if scan.is_sparse() {
            chunks.iter().for_each(|&chunk| table.remove_sparse_need(chunk, slot));
        } else {
            table.classes.change_all(chunks.iter().copied(), |key| {
                key.scans.remove(slot);
            });
        }
        for &chunk in chunks {
            scan.forget(chunk);
            for page_id in scan.pages(table, chunk) {
                let page = &mut pages[page_id];
                page.needed_count =
                    page.needed_count.checked_sub(1).expect("a needed page was wanted");
                if page.needed_count == 0 {
                    pool.reindex_needed(page_id, page);
                }
            }
        }
        scan_index.update(scan, &mut table.starvation);
        self.note_unneeded(id, chunks);
    }
}
