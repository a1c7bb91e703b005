//! Escalation: loads for other scans become urgent when a tiny scan waits for their pages.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{ChunkIndex, PageId};
use crate::scan::{Order, PriorityBounds, PriorityClass, Scan};
use crate::state::Load;

impl ActiveBufferManager {
    /// Makes loads urgent that a tiny scan waits for.
    pub(super) fn escalate_loads(&mut self) {
        if self.state.scan_index.waiting.is_empty()
            || self.state.loads.values().all(|load| load.urgent)
        {
            return;
        }
        let bounds = self.policy.priority_bounds(&self.state);
        // Tiny scans of whole chunks are few, since each reads few chunks. Tiny scans of selected
        // pages are found by their chunks.
        let whole = self.state.tiny_scans(bounds).filter(|scan| !scan.is_sparse());
        let waiting: Vec<_> = whole.filter(|scan| scan.starving_since().is_some()).collect();
        let is_awaited = |load: &Load| {
            load.unreported.iter().any(|&page| self.is_awaited(page, &waiting, bounds))
        };
        let loads = self.state.loads.iter().filter(|(_, load)| !load.urgent && is_awaited(load));
        let awaited: Vec<_> = loads.map(|(&id, _)| id).collect();
        for load in awaited {
            self.state.loads.get_mut(&load).expect("found above").urgent = true;
            self.actions.push_back(Action::Escalate { load });
        }
    }

    /// Whether one of some waiting scans of whole chunks, or a tiny scan of selected pages, waits for a page.
    fn is_awaited(&self, page: PageId, waiting: &[&Scan], bounds: PriorityBounds) -> bool {
        let is_next = |scan: &Scan, chunk: ChunkIndex| {
            scan.needed().contains(chunk)
                && (scan.order() == Order::Any || scan.needed().first() == Some(chunk))
        };
        self.state.slices_of(page).iter().any(|slice| {
            let whole = waiting.iter().copied().filter(|scan| scan.table() == slice.table);
            let sparse = self.state.sparse_interested(slice.table, slice.chunk).filter(|scan| {
                let class = bounds.priority_of(scan.size(), scan.chunks_in_all());
                class == PriorityClass::Tiny && scan.starving_since().is_some()
            });
            let mut scans = whole.chain(sparse);
            scans.any(|scan| scan.reads(slice.group, page) && is_next(scan, slice.chunk))
        })
    }
}
