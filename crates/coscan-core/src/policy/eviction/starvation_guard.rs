//! The scans that must not be starved when space is made for another.

use std::collections::BTreeMap;

use crate::ids::{
    ChunkIndex, ClassIndex, GroupIndex, Index, PageId, ScanPosition, SliceId, TableId,
};
use crate::policy::{EvictionRequest, Strictness};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// Whether a page may be a victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Evictable,
    /// The page stays.
    Kept,
    /// The page stays, and so do the pages of its column group in all chunks of the class.
    ClassKept,
}

/// The scans that may object to losing one more chunk.
#[derive(Default)]
struct Objectors {
    /// The table that was asked about last, and the slots of its scans in any order that losing another chunk may
    /// starve.
    table: Option<TableId>,
    of_table: IndexSet<ScanPosition>,
    /// The class that was asked about last, the objectors that need it and lack none of its pages, and the scan that
    /// the load is for.
    class: Option<(TableId, ClassIndex)>,
    of_class: IndexSet<ScanPosition>,
}

/// The chunks that scans lose by the victims chosen so far [CS07 Figure 3, `usefulForStarvedQuery`].
///
/// A load for a waiting scan may take from all scans that are not starved, since it ends in a delivery. A load that
/// reads ahead must not starve another scan. Otherwise that scan would read ahead at the first one's cost, and so on
/// without end.
pub(super) struct StarvationGuard<'a> {
    state: &'a State,
    strictness: Strictness,
    trigger: Option<&'a Scan>,
    trigger_waits: bool,
    /// Whether lost chunks do not count, see [`Self::most_lenient`].
    forgets: bool,
    objectors: Objectors,
    /// The pages that may be victims, with their column groups, by their chunks.
    lost: BTreeMap<TableId, BTreeMap<ChunkIndex, Vec<(GroupIndex, PageId)>>>,
}

impl<'a> StarvationGuard<'a> {
    pub(super) fn new(state: &'a State, request: &EvictionRequest<'_>) -> Self {
        let trigger = request.plan.and_then(|plan| state.scan(plan.scan));
        Self {
            state,
            strictness: request.strictness,
            trigger,
            trigger_waits: trigger.is_some_and(|scan| scan.starving_since().is_some()),
            forgets: false,
            objectors: Objectors::default(),
            lost: BTreeMap::new(),
        }
    }

    /// A guard that releases all pages that another guard releases, whichever scan the load is for and whatever was
    /// taken before: for it no scan has lost anything yet. (Of a chunk that it has lost, a scan keeps no page. But it
    /// would not have kept those before it lost anything either, or it would not have lost the first.)
    pub(super) fn most_lenient(state: &'a State, waits: bool) -> Self {
        let request = EvictionRequest { plan: None, bytes: 0, strictness: Strictness::Strict };
        Self { trigger_waits: waits, forgets: true, ..Self::new(state, &request) }
    }

    /// Whether a page may be a victim.
    pub(super) fn verdict(&mut self, id: PageId) -> Verdict {
        let kept = match self.state.slices_of(id) {
            _ if self.strictness == Strictness::MayEvictOwn => None,
            [slice] => self.verdict_of_slice(slice, id),
            // Other chunks of the class may share pages with other neighbours.
            _ => self.verdict_of_shared(id),
        };
        kept.unwrap_or(Verdict::Evictable)
    }

    /// Counts the chunks of a victim as lost.
    pub(super) fn count_lost(&mut self, id: PageId) {
        for slice in self.state.slices_of(id).iter().filter(|_| !self.forgets) {
            self.objectors = Objectors::default();
            let lost = self.lost.entry(slice.table).or_default().entry(slice.chunk).or_default();
            lost.push((slice.group, id));
        }
    }

    /// Whether a page of several slices stays.
    fn verdict_of_shared(&self, id: PageId) -> Option<Verdict> {
        let stays = self.state.readers(id).into_iter().any(|scan| {
            let chunks: Vec<_> = self.state.chunks_read(scan, id).collect();
            self.verdict_of(scan, &chunks).is_some()
        });
        stays.then_some(Verdict::Kept)
    }

    /// Whether the page of a slice stays.
    fn verdict_of_slice(&mut self, slice: &SliceId, id: PageId) -> Option<Verdict> {
        let table = self.state.table(slice.table);
        self.find_objectors(slice, table);
        let readers = &table.classes().readers()[slice.group.as_usize()];
        let of_class = IndexSet::common([&self.objectors.of_class, readers]);
        // However much of a scan in order is ready, it depends on its next chunks only.
        let next = table.starvation.next(slice.chunk);
        let next = next.filter(|_| self.strictness == Strictness::Strict).into_iter();
        let slots = of_class.chain(next.flat_map(|next| IndexSet::common([next, readers])));
        let mut counted = slots.filter_map(|slot| self.state.scan_at(table, slot));
        let chunks = [slice.chunk];
        counted.find_map(|scan| self.verdict_of(scan, &chunks)).or_else(|| {
            let sparse = self.state.sparse_interested(slice.table, slice.chunk);
            let mut sparse = sparse.filter(|scan| scan.reads(slice.group, id));
            // Other chunks of the class may not have selected pages.
            sparse.any(|scan| self.verdict_of(scan, &chunks).is_some()).then_some(Verdict::Kept)
        })
    }

    /// Finds the scans that may object to losing a chunk of the class of a slice. A scan that lacks a page of the chunk
    /// does not depend on it and loses nothing. The scan that the load is for is always asked.
    fn find_objectors(&mut self, slice: &SliceId, table: &Table) {
        let class = table.classes().class_of(slice.chunk);
        let key = (slice.table, class.index());
        if self.objectors.class == Some(key) {
            return;
        }
        if self.objectors.table != Some(slice.table) {
            self.objectors.of_table = self.objectors_of(slice.table, table);
            self.objectors.table = Some(slice.table);
        }
        let mut slots = class.key().scans.intersection(&self.objectors.of_table);
        let readers = table.classes().readers();
        for group in class.key().cold.iter() {
            slots.subtract(&readers[group.as_usize()]);
        }
        if let Some(trigger) = self.trigger
            && trigger.table() == slice.table
            && class.key().scans.contains(trigger.slot())
        {
            slots.insert(trigger.slot());
        }
        (self.objectors.class, self.objectors.of_class) = (Some(key), slots);
    }

    /// The slots of the scans in any order that losing one more chunk of a table may starve: all others have more
    /// chunks to spare than were lost. Empty unless [`Strictness::Strict`].
    fn objectors_of(&self, id: TableId, table: &Table) -> IndexSet<ScanPosition> {
        let mut slots = IndexSet::new();
        if self.strictness == Strictness::Strict {
            let lost = self.lost.get(&id).map_or(0, BTreeMap::len);
            match table.starvation.with_less(lost + usize::from(!self.trigger_waits)) {
                Some(starving) => slots.union_with(starving),
                None => slots = self.state.scans_of(id).map(Scan::slot).collect(),
            }
            slots.subtract(table.in_order());
        }
        slots
    }

    /// Whether a scan loses a chunk by the pages that may be victims.
    fn is_lost(&self, scan: &Scan, chunk: ChunkIndex) -> bool {
        let lost = self.lost.get(&scan.table()).and_then(|lost| lost.get(&chunk));
        lost.is_some_and(|pages| Self::loses(scan, chunk, pages))
    }

    /// The number of chunks that a scan loses.
    fn lost_by(&self, scan: &Scan) -> usize {
        let lost = self.lost.get(&scan.table()).into_iter().flatten();
        lost.filter(|(chunk, pages)| Self::loses(scan, **chunk, pages)).count()
    }

    fn loses(scan: &Scan, chunk: ChunkIndex, pages: &[(GroupIndex, PageId)]) -> bool {
        scan.depends_on(chunk) && pages.iter().any(|&(group, id)| scan.reads(group, id))
    }

    /// Whether a page of these chunks stays because of a scan that reads it.
    fn verdict_of(&self, scan: &Scan, chunks: &[ChunkIndex]) -> Option<Verdict> {
        if self.trigger.is_some_and(|trigger| trigger.id() == scan.id()) {
            // A scan in order uses most of its pages only after the chunk that space is needed for.
            let soon =
                || scan.needed().iter().take(scan.chunks_ahead()).any(|c| chunks.contains(&c));
            return match scan.order() {
                Order::Any => Some(Verdict::ClassKept),
                Order::InOrder => soon().then_some(Verdict::Kept),
            };
        }
        if self.strictness == Strictness::MayStarve || scan.is_interest() {
            return None;
        }
        // The only ready chunk of a worker that waits for a processor stays, or its scan would take another scan's next.
        if scan.waiting_since().is_some() {
            let mut next = scan.deliverable().filter(|&chunk| !self.is_lost(scan, chunk));
            let only = next.next().filter(|_| next.next().is_none());
            if only.is_some_and(|chunk| chunks.contains(&chunk)) {
                return Some(Verdict::Kept);
            }
        }
        let is_losing =
            |chunk: &&ChunkIndex| scan.depends_on(**chunk) && !self.is_lost(scan, **chunk);
        let losing = chunks.iter().filter(is_losing).count();
        let ready_chunks = scan.ready_chunks().saturating_sub(self.lost_by(scan));
        let losses = if self.trigger_waits { 0 } else { losing };
        match losing > 0 && ready_chunks < scan.chunks_ahead() + losses {
            false => None,
            // Other chunks of the class may be needed later by a scan in order.
            true if scan.order() == Order::InOrder => Some(Verdict::Kept),
            true => Some(Verdict::ClassKept),
        }
    }
}
