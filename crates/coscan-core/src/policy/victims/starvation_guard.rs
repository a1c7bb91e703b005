//! The scans that must not be starved when space is made for another.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ChunkIndex, PageId, ScanId};
use crate::policy::{EvictionRequest, Strictness};
use crate::scan::{Order, Scan};
use crate::state::State;

/// Whether a page may be a victim.
pub(super) enum Verdict {
    Evictable,
    /// The page stays.
    Kept,
    /// So do the pages of its column group in all chunks of the class.
    ClassKept,
}

/// The chunks that scans lose by the victims chosen so far [CS07 Figure 3, `usefulForStarvedQuery`].
///
/// A load for a waiting scan may take from all scans that are not starved, since it ends in a delivery. A load that reads
/// ahead must not starve another scan: that scan would then read ahead at the first one's cost, and so on without end.
pub(super) struct StarvationGuard<'a> {
    state: &'a State,
    strictness: Strictness,
    trigger: Option<ScanId>,
    trigger_waits: bool,
    lost: BTreeMap<ScanId, BTreeSet<ChunkIndex>>,
}

impl<'a> StarvationGuard<'a> {
    pub(super) fn new(state: &'a State, request: &EvictionRequest<'_>) -> Self {
        let trigger = request.plan.map(|plan| plan.scan);
        let scan = trigger.and_then(|id| state.scan(id));
        Self {
            state,
            strictness: request.strictness,
            trigger,
            trigger_waits: scan.is_some_and(|scan| scan.starving_since().is_some()),
            lost: BTreeMap::new(),
        }
    }

    /// Whether a page may be a victim; if so, its chunks count as lost.
    pub(super) fn judge(&mut self, id: PageId) -> Verdict {
        let is_shared = self.state.slices_of(id).len() > 1;
        let readers = self.state.readers(id);
        for scan in &readers {
            let chunks: Vec<_> = self.state.chunks_read(scan, id).collect();
            match self.verdict_of(scan, &chunks) {
                Verdict::Evictable => {}
                // Other chunks of the class may share pages with other neighbours, or not be of the selected pages.
                Verdict::ClassKept if is_shared || scan.is_sparse() => return Verdict::Kept,
                kept => return kept,
            }
        }
        for scan in readers {
            for chunk in self.state.chunks_read(scan, id).filter(|&chunk| scan.counts_on(chunk)) {
                self.lost.entry(scan.id()).or_default().insert(chunk);
            }
        }
        Verdict::Evictable
    }

    /// Whether a page of these chunks stays because of a scan that reads it.
    fn verdict_of(&self, scan: &Scan, chunks: &[ChunkIndex]) -> Verdict {
        if self.strictness == Strictness::MayEvictOwn {
            return Verdict::Evictable;
        }
        if Some(scan.id()) == self.trigger {
            // A scan in order uses most of its pages only after the chunk that space is needed for.
            let soon =
                || scan.needed().iter().take(scan.chunks_ahead()).any(|c| chunks.contains(&c));
            return match scan.order() {
                Order::Any => Verdict::ClassKept,
                Order::InOrder if soon() => Verdict::Kept,
                Order::InOrder => Verdict::Evictable,
            };
        }
        if self.strictness == Strictness::MayStarve {
            return Verdict::Evictable;
        }
        let lost = self.lost.get(&scan.id());
        let is_lost = |chunk: ChunkIndex| lost.is_some_and(|lost| lost.contains(&chunk));
        // The only ready chunk of a worker that waits for a processor stays, or its scan would take another scan's next.
        if scan.waiting_since().is_some() {
            let mut next = scan.deliverable().filter(|&chunk| !is_lost(chunk));
            let only = next.next().filter(|_| next.next().is_none());
            if only.is_some_and(|chunk| chunks.contains(&chunk)) {
                return Verdict::Kept;
            }
        }
        let losing =
            chunks.iter().filter(|&&chunk| scan.counts_on(chunk) && !is_lost(chunk)).count();
        let ready_chunks = scan.ready_chunks().saturating_sub(lost.map_or(0, BTreeSet::len));
        let losses = if self.trigger_waits { 0 } else { losing };
        match losing > 0 && ready_chunks < scan.chunks_ahead() + losses {
            false => Verdict::Evictable,
            // Other chunks of the class may be needed later by a scan in order.
            true if scan.order() == Order::InOrder => Verdict::Kept,
            true => Verdict::ClassKept,
        }
    }
}
