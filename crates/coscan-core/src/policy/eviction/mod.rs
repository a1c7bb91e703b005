//! The choice of victims, shared by the policies that score chunks.
//!
//! Copies of pages that another server has in its pool go first, unless the [`StarvationGuard`] keeps them. The rest
//! come from six sources. The first goes before the others. The next three are merged by their next use, latest first.
//! The last two go only when scans wait for space:
//!
//! 1. *unexpected*: pages that no running scan needs, of tables at which no scan is expected ([`UnneededPages`]);
//! 2. *expected back*: pages that no running scan needs, of tables at which scans are expected;
//! 3. *in order*: pages that scans in order need ([`InOrderPages`]);
//! 4. *classes*: pages that scans in any order need, class by class in the order of the policy's scores, unless the
//!    [`StarvationGuard`] keeps them;
//! 5. *sparse*: pages that only scans of selected pages need;
//! 6. *any*: all other pages.

mod any_order;
mod in_order;
mod starvation_guard;

use std::collections::BTreeSet;

use crate::classes::Class;
use crate::ids::{ClassIndex, PageId, SliceId, TableId};
use crate::policy::next_use::NextUseIndex;
use crate::policy::ranking::CLASSES_MAX;
use crate::policy::reuse::UnneededPages;
use crate::policy::{EvictionRequest, Strictness, VictimList};
use crate::set::IndexSet;
use crate::state::State;
use any_order::AnyOrderScans;
use in_order::{InOrderPages, in_order_groups};
use starvation_guard::{StarvationGuard, Verdict};

/// The pages to evict, see above. `classes` are those of all tables, the ones to go first in front.
pub(super) fn choose_victims<'a, 'n>(
    state: &'a State,
    request: &EvictionRequest<'_>,
    classes: impl Iterator<Item = (TableId, &'a Class)>,
    next_uses: Option<&'n mut NextUseIndex>,
    unneeded: UnneededPages<'n>,
) -> Vec<PageId> {
    let mut victims = VictimList::new(*request);
    let mut guard = StarvationGuard::new(state, request);
    take_copies(state, &mut victims, &mut guard);
    unneeded.take_unexpected(state, &mut victims);
    if victims.enough() {
        return victims.into_pages();
    }
    let mut sources = Sources::new(state, request, victims, guard, next_uses, unneeded);
    sources.take_by_next_use(classes);
    sources.take_sparse();
    if request.strictness == Strictness::MayEvictOwn {
        // A page of many chunks may be kept by a class beyond those looked at, while a scan waits for space.
        sources.victims.take_all(state, state.cached_pages());
    }
    sources.victims.into_pages()
}

/// The most bytes of victims that [`choose_victims`] finds at [`Strictness::Strict`] for any load of a scan that waits,
/// or of one that does not; or at least `enough`. The other arguments are those of [`choose_victims`].
pub(super) fn victim_bytes_max<'a, 'n>(
    state: &'a State,
    (waits, enough): (bool, u64),
    classes: impl Iterator<Item = (TableId, &'a Class)>,
    next_uses: Option<&'n mut NextUseIndex>,
    unneeded: UnneededPages<'n>,
) -> u64 {
    let request = EvictionRequest { plan: None, bytes: enough, strictness: Strictness::Strict };
    let mut victims = VictimList::new(request);
    let mut guard = StarvationGuard::most_lenient(state, waits);
    take_copies(state, &mut victims, &mut guard);
    unneeded.take_unexpected(state, &mut victims);
    if !victims.enough() {
        let mut sources = Sources::new(state, &request, victims, guard, next_uses, unneeded);
        sources.take_by_next_use(classes);
        victims = sources.victims;
    }
    victims.bytes
}

/// Takes copies of what is in the pools of other servers, which cost less to get again than anything else.
fn take_copies(state: &State, victims: &mut VictimList<'_>, guard: &mut StarvationGuard<'_>) {
    for id in state.copies().take(CLASSES_MAX) {
        if victims.enough() {
            return;
        }
        if victims.may_take(state, id) && guard.verdict(id) == Verdict::Evictable {
            guard.count_lost(id);
            victims.take(state, id);
        }
    }
}

/// The sources of victims, and the victims that were taken from them.
struct Sources<'a, 'r, 'n> {
    state: &'a State,
    request: &'r EvictionRequest<'r>,
    victims: VictimList<'r>,
    guard: StarvationGuard<'a>,
    expected_back: UnneededPages<'n>,
    in_order: Option<InOrderPages<'n>>,
    any_order: AnyOrderScans<'a>,
    /// Classes that were taken from.
    visited: BTreeSet<(TableId, ClassIndex)>,
}

impl<'a, 'r, 'n> Sources<'a, 'r, 'n> {
    fn new(
        state: &'a State,
        request: &'r EvictionRequest<'r>,
        victims: VictimList<'r>,
        guard: StarvationGuard<'a>,
        next_uses: Option<&'n mut NextUseIndex>,
        expected_back: UnneededPages<'n>,
    ) -> Self {
        let in_order = next_uses.map(|next_uses| InOrderPages::new(state, next_uses));
        let (any_order, visited) = (AnyOrderScans::new(state), BTreeSet::new());
        Self { state, request, victims, guard, expected_back, in_order, any_order, visited }
    }

    /// Merges the classes with the two other sources whose next use is known: before each class go the pages that are
    /// used later than its chunks are expected to be.
    fn take_by_next_use<'c>(&mut self, classes: impl Iterator<Item = (TableId, &'c Class)>) {
        let compares = self.in_order.is_some() || !self.expected_back.is_empty();
        for (table, class) in classes.take(CLASSES_MAX) {
            let class_ns =
                if compares { self.any_order.next_use_ns(table, class) } else { u64::MAX };
            self.expected_back.take_before(self.state, &mut self.victims, table, class_ns);
            self.take_in_order(class_ns);
            if self.victims.enough() {
                return;
            }
            self.visited.insert((table, class.index()));
            self.take_class(table, class);
            if self.victims.enough() {
                return;
            }
        }
        self.take_in_order(0);
        self.expected_back.take_rest(self.state, &mut self.victims);
    }

    /// Takes pages that scans in order need, and no scan within `ns`. Pages of their tables that no scan needs go before.
    fn take_in_order(&mut self, ns: u64) {
        let Self { state, victims, guard, expected_back, in_order, any_order, .. } = self;
        let Some(in_order) = in_order else { return };
        while !victims.enough()
            && let Some((page_ns, id)) = in_order.next_after(state, any_order, ns, |id| {
                // The guard never releases a page that it keeps now, so its next use need not be
                // computed.
                victims.may_take(state, id) && guard.verdict(id) == Verdict::Evictable
            })
        {
            if let Some(table) = state.home(id) {
                expected_back.take_before(state, victims, table, page_ns);
            }
            // This is checked again, since pages may have been taken since the walk reached this
            // one.
            let may_take = !victims.enough() && victims.may_take(state, id);
            if may_take && guard.verdict(id) == Verdict::Evictable {
                guard.count_lost(id);
                victims.take(state, id);
            }
        }
    }

    /// Takes pages from the chunks of a class. If the guard keeps a column group of one chunk, it keeps that of all.
    fn take_class(&mut self, table: TableId, class: &Class) {
        let state = self.state;
        let classes = state.table(table).classes();
        let mut kept = match self.in_order {
            Some(_) => in_order_groups(state.table(table), class),
            None => IndexSet::new(),
        };
        for chunk in classes.chunks(class) {
            if self.victims.enough() || kept == *class.needed_groups() {
                return;
            }
            let pages = class.needed_groups().iter().flat_map(|group| {
                let pages = state.table(table).slice(chunk, group);
                pages.iter().map(move |&id| (group, id))
            });
            for (group, id) in pages {
                if kept.contains(group) || self.victims.enough() {
                    continue;
                }
                if !self.victims.may_take(state, id) || self.is_of_later_class(id) {
                    continue;
                }
                match self.guard.verdict(id) {
                    Verdict::Evictable => {
                        self.guard.count_lost(id);
                        self.victims.take(state, id);
                    }
                    Verdict::Kept => {}
                    Verdict::ClassKept => {
                        kept.insert(group);
                    }
                }
            }
        }
    }

    /// Whether a page serves chunks of a class that was not visited yet. It is evicted with the last of its classes.
    fn is_of_later_class(&self, id: PageId) -> bool {
        self.state.slices_of(id).iter().any(|slice| {
            let class = self.state.table(slice.table).classes().class_of(slice.chunk);
            class.needed_groups().contains(slice.group)
                && !self.visited.contains(&(slice.table, class.index()))
        })
    }

    /// Takes pages that only scans of selected pages need, which no class counts. They are used soon, so they are taken
    /// late.
    fn take_sparse(&mut self) {
        let state = self.state;
        let spared = match self.request.strictness {
            Strictness::Strict => return,
            Strictness::MayStarve => self.request.plan.and_then(|plan| state.scan(plan.scan)),
            Strictness::MayEvictOwn => None,
        };
        for id in state.cached_pages() {
            if self.victims.enough() {
                return;
            }
            let is_counted = |slice: &SliceId| {
                let class = state.table(slice.table).classes().class_of(slice.chunk);
                class.needed_groups().contains(slice.group)
            };
            let is_spared = spared.is_some_and(|scan| state.chunks_read(scan, id).next().is_some());
            if !is_spared && !state.slices_of(id).iter().any(is_counted) {
                self.victims.take(state, id);
            }
        }
    }
}
