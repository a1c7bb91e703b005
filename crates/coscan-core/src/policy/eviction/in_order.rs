//! Pages that scans in order need, merged with the classes of scans in any order by their next use [CS11 §4.4].

use crate::classes::Class;
use crate::ids::{GroupIndex, PageId};
use crate::policy::eviction::any_order::AnyOrderScans;
use crate::policy::next_use::{NextUseIndex, Walk};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// The pages that scans in order need, latest next use first. Scans in any order may use them earlier.
pub(super) struct InOrderPages<'a> {
    next_use_index: &'a mut NextUseIndex,
    walk: Walk,
    /// The page that the walk has reached, if it was not taken yet, and the nanoseconds until its next use.
    reached: Option<(u64, PageId)>,
}

impl<'a> InOrderPages<'a> {
    pub(super) fn new(state: &State, next_use_index: &'a mut NextUseIndex) -> Self {
        let walk = next_use_index.walk(state);
        Self { next_use_index, walk, reached: None }
    }

    /// The next page that `admits` accepts, and the nanoseconds until its next use, if they are at least `ns`. A page that
    /// an earlier call held back is not asked about again.
    pub(super) fn next_after(
        &mut self,
        state: &State,
        any_order: &mut AnyOrderScans<'_>,
        ns: u64,
        admits: impl FnMut(PageId) -> bool,
    ) -> Option<(u64, PageId)> {
        let (page_ns, id) = match self.reached {
            Some(reached) => reached,
            None => {
                let (in_order_ns, id) =
                    self.next_use_index.next_last(state, &mut self.walk, ns, admits)?;
                let any_order_ns = state.slices_of(id).iter().map(|slice| {
                    let classes = state.table(slice.table).classes();
                    any_order.next_use_ns(slice.table, classes.class_of(slice.chunk))
                });
                (any_order_ns.min().unwrap_or(u64::MAX).min(in_order_ns), id)
            }
        };
        let is_later = page_ns >= ns;
        self.reached = (!is_later).then_some((page_ns, id));
        is_later.then_some((page_ns, id))
    }
}

/// The column groups that scans in order read of the chunks of a class: their pages are [`InOrderPages`].
pub(super) fn in_order_groups(table: &Table, class: &Class) -> IndexSet<GroupIndex> {
    table.classes().groups_of(&table.in_order().intersection(&class.key().scans))
}
