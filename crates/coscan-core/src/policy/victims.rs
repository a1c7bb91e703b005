//! What may go when scans are to be kept going: shared by the policies that score chunks.

mod last_used;

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::Class;
use crate::ids::{ChunkIndex, ClassIndex, GroupIndex, PageId, ScanId, SliceId, TableId};
use crate::policy::next_use::NextUseIndex;
use crate::policy::ranking::CLASSES_MAX;
use crate::policy::reuse::UnwantedPages;
use crate::policy::{Chosen, EvictionRequest, Strictness};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;
use last_used::{LastUsed, any_order_ns, in_order_groups};

/// Pages to evict: first what no scan will come to, then class by class, in the order given, what no scan will miss too
/// much. A page that serves several chunks goes with the last of their classes. What nobody wants of tables that scans
/// will come to before they come to a class goes after it.
pub(super) fn choose_victims<'a>(
    state: &'a State,
    room: &EvictionRequest<'_>,
    classes: impl Iterator<Item = (TableId, &'a Class)>,
    in_order: Option<&mut NextUseIndex>,
    mut unwanted: UnwantedPages<'_>,
) -> Vec<PageId> {
    let mut chosen = Chosen::new(*room);
    unwanted.take_others(state, &mut chosen);
    if chosen.enough() {
        return chosen.into_pages();
    }
    let mut in_order = in_order.map(|next_use_index| LastUsed::new(state, next_use_index));
    let compares = in_order.is_some() || !unwanted.is_empty();
    let losses = StarvationGuard::new(state, room);
    let mut victims = Victims { state, room, chosen, losses, unwanted };
    let mut passed = BTreeSet::new();
    for (table, class) in classes.take(CLASSES_MAX) {
        passed.insert((table, class.index()));
        let mut kept = IndexSet::new();
        let ns = if compares { any_order_ns(state, table, class) } else { u64::MAX };
        victims.unwanted.take_before(state, &mut victims.chosen, table, ns);
        if let Some(last_used) = &mut in_order {
            kept = in_order_groups(state.table(table), class);
            victims.take_used_after(last_used, ns);
        }
        if victims.chosen.enough() {
            break;
        }
        victims.take_from_class(&passed, table, class, kept);
        if victims.chosen.enough() {
            break;
        }
    }
    if let Some(last_used) = &mut in_order {
        victims.take_used_after(last_used, 0);
    }
    victims.unwanted.take_rest(state, &mut victims.chosen);
    victims.take_pages_of_sparse_scans();
    if room.strictness == Strictness::MayEvictOwn {
        // A page of many chunks may be kept by a class beyond those looked at; somebody waits for room.
        victims.chosen.take_all(state, state.cached_pages());
    }
    victims.chosen.into_pages()
}

struct Victims<'a, 'r, 't> {
    state: &'a State,
    room: &'r EvictionRequest<'r>,
    chosen: Chosen<'r>,
    losses: StarvationGuard<'a>,
    unwanted: UnwantedPages<'t>,
}

impl Victims<'_, '_, '_> {
    /// What is used later than in so many nanoseconds, of what scans in order come to.
    fn take_used_after(&mut self, last_used: &mut LastUsed<'_>, ns: u64) {
        while !self.chosen.enough()
            && let Some((page_ns, id)) = last_used.next_after(self.state, ns)
        {
            if let Some(table) = self.state.home(id) {
                self.unwanted.take_before(self.state, &mut self.chosen, table, page_ns);
            }
            let may_go = !self.chosen.enough() && self.chosen.may_take(self.state, id);
            if may_go && matches!(self.losses.judge(id), Verdict::Goes) {
                self.chosen.take(self.state, id);
            }
        }
    }

    /// What only scans want that read selected pages only, which no class counts. They come to it soon, so it goes last.
    fn take_pages_of_sparse_scans(&mut self) {
        let state = self.state;
        let evicts_of = match self.room.strictness {
            Strictness::Strict => return,
            Strictness::MayStarve => None,
            Strictness::MayEvictOwn => self.room.plan.map(|plan| plan.scan),
        };
        let trigger = self.room.plan.map(|plan| plan.scan).filter(|&id| evicts_of != Some(id));
        let trigger = trigger.and_then(|id| state.scan(id));
        for id in state.cached_pages() {
            if self.chosen.enough() {
                return;
            }
            let counted = |slice: &SliceId| {
                let class = state.table(slice.table).classes().class_of(slice.chunk);
                class.wanted().contains(slice.group)
            };
            let of_trigger =
                trigger.is_some_and(|scan| state.chunks_read(scan, id).next().is_some());
            if !of_trigger && !state.slices_of(id).iter().any(counted) {
                self.chosen.take(state, id);
            }
        }
    }

    /// Takes what may go of the chunks of a class, but for the column groups in `kept`: what one chunk keeps for a scan,
    /// all keep.
    fn take_from_class(
        &mut self,
        passed: &BTreeSet<(TableId, ClassIndex)>,
        table: TableId,
        class: &Class,
        mut kept: IndexSet<GroupIndex>,
    ) {
        let state = self.state;
        let classes = state.table(table).classes();
        for chunk in classes.chunks(class) {
            if self.chosen.enough() || kept == *class.wanted() {
                return;
            }
            let slices = class.wanted().iter().map(|group| SliceId { table, chunk, group });
            let pages = slices.flat_map(|slice| {
                let pages = state.table(table).slice(chunk, slice.group);
                pages.iter().map(move |&id| (slice.group, id))
            });
            for (group, id) in pages {
                let chosen = self.chosen.taken.contains(&id);
                if chosen
                    || kept.contains(group)
                    || self.chosen.enough()
                    || !self.room.may_go(state, id)
                {
                    continue;
                }
                let wanted_later = |slice: &SliceId| {
                    let other = state.table(slice.table).classes().class_of(slice.chunk);
                    other.wanted().contains(slice.group)
                        && !passed.contains(&(slice.table, other.index()))
                };
                if state.slices_of(id).iter().any(wanted_later) {
                    continue;
                }
                match self.losses.judge(id) {
                    Verdict::Goes => self.chosen.take(state, id),
                    Verdict::Stays => {}
                    Verdict::ClassStays => {
                        kept.insert(group);
                    }
                }
            }
        }
    }
}

/// Whether a page may be a victim too.
enum Verdict {
    Goes,
    /// This page stays.
    Stays,
    /// So do those of its column group in all chunks of the class.
    ClassStays,
}

/// What scans lose by the victims chosen so far [CS07 Figure 3, `usefulForStarvedQuery`].
///
/// A load for a scan that waits may take from all who are not starved, since it ends in a delivery. One that reads
/// ahead must not make another scan starved: that one would read ahead in its turn, and so on without end.
struct StarvationGuard<'a> {
    state: &'a State,
    strictness: Strictness,
    trigger: Option<ScanId>,
    trigger_waits: bool,
    lost: BTreeMap<ScanId, BTreeSet<ChunkIndex>>,
}

impl<'a> StarvationGuard<'a> {
    fn new(state: &'a State, room: &EvictionRequest<'_>) -> Self {
        let trigger = room.plan.map(|plan| plan.scan);
        let scan = trigger.and_then(|id| state.scan(id));
        Self {
            state,
            strictness: room.strictness,
            trigger,
            trigger_waits: scan.is_some_and(|scan| scan.starving_since().is_some()),
            lost: BTreeMap::new(),
        }
    }

    /// Whether this page may be a victim too; if so, it counts as lost.
    fn judge(&mut self, id: PageId) -> Verdict {
        let is_shared = self.state.slices_of(id).len() > 1;
        let readers = self.state.readers(id);
        for scan in &readers {
            let chunks: Vec<_> = self.state.chunks_read(scan, id).collect();
            match self.verdict_of(scan, &chunks) {
                Verdict::Goes => {}
                // Other chunks of the class may not share the page with the same neighbour, or be picked from.
                Verdict::ClassStays if is_shared || scan.is_sparse() => return Verdict::Stays,
                stays => return stays,
            }
        }
        for scan in readers {
            for chunk in self.state.chunks_read(scan, id).filter(|&chunk| scan.counts_on(chunk)) {
                self.lost.entry(scan.id()).or_default().insert(chunk);
            }
        }
        Verdict::Goes
    }

    /// Whether a page of these chunks stays because of a scan that reads it.
    fn verdict_of(&self, scan: &Scan, chunks: &[ChunkIndex]) -> Verdict {
        if self.strictness == Strictness::MayEvictOwn {
            return Verdict::Goes;
        }
        if Some(scan.id()) == self.trigger {
            // In order, it comes to most of what it needs later than it needs room.
            let soon =
                || scan.needed().iter().take(scan.chunks_ahead()).any(|c| chunks.contains(&c));
            return match scan.order() {
                Order::Any => Verdict::ClassStays,
                Order::InOrder if soon() => Verdict::Stays,
                Order::InOrder => Verdict::Goes,
            };
        }
        if self.strictness == Strictness::MayStarve {
            return Verdict::Goes;
        }
        let lost = self.lost.get(&scan.id());
        let is_lost = |chunk: ChunkIndex| lost.is_some_and(|lost| lost.contains(&chunk));
        // A worker that is only held back goes on with that chunk: without it, it would take another scan's in turn.
        if scan.waiting_since().is_some() {
            let mut next = scan.deliverable().filter(|&chunk| !is_lost(chunk));
            let only = next.next().filter(|_| next.next().is_none());
            if only.is_some_and(|chunk| chunks.contains(&chunk)) {
                return Verdict::Stays;
            }
        }
        let losing =
            chunks.iter().filter(|&&chunk| scan.counts_on(chunk) && !is_lost(chunk)).count();
        let ready_chunks = scan.ready_chunks().saturating_sub(lost.map_or(0, BTreeSet::len));
        let losses = if self.trigger_waits { 0 } else { losing };
        match losing > 0 && ready_chunks < scan.chunks_ahead() + losses {
            false => Verdict::Goes,
            // Other chunks of the class may lie further ahead of a scan in order.
            true if scan.order() == Order::InOrder => Verdict::Stays,
            true => Verdict::ClassStays,
        }
    }
}
