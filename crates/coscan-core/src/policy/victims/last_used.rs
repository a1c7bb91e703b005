//! What scans in order come to, beside what scans in any order may take before [CS11 §4.4].

use crate::classes::Class;
use crate::ids::{GroupIndex, PageId, TableId};
use crate::policy::next_use::{NextUseIndex, Walk};
use crate::scan::Order;
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// Pages that scans in order come to, those used last in front; scans in any order may come to them before.
pub(super) struct LastUsed<'a> {
    next_use_index: &'a mut NextUseIndex,
    walk: Walk,
    next: Option<(u64, PageId)>,
}

/// When the first of a class' scans in any order is expected to come to one of its chunks, in nanoseconds.
pub(super) fn any_order_ns(state: &State, table: TableId, class: &Class) -> u64 {
    let scans = state.scans_at(state.table(table), &class.key().scans);
    let any = scans.filter(|scan| scan.order() == Order::Any);
    any.map(|scan| NextUseIndex::any_order_ns(state, scan)).min().unwrap_or(u64::MAX)
}

impl<'a> LastUsed<'a> {
    pub(super) fn new(state: &State, next_use_index: &'a mut NextUseIndex) -> Self {
        let walk = next_use_index.walk(state);
        Self { next_use_index, walk, next: None }
    }

    /// The next page, if no scan comes to it within so many nanoseconds, and when the first does.
    pub(super) fn next_after(&mut self, state: &State, ns: u64) -> Option<(u64, PageId)> {
        let (page_ns, id) = match self.next {
            Some(next) => next,
            None => {
                let (in_order_ns, id) = self.next_use_index.next_last(state, &mut self.walk)?;
                let any_order_ns = state.slices_of(id).iter().map(|slice| {
                    let classes = state.table(slice.table).classes();
                    any_order_ns(state, slice.table, classes.class_of(slice.chunk))
                });
                (any_order_ns.min().unwrap_or(u64::MAX).min(in_order_ns), id)
            }
        };
        let later = page_ns >= ns;
        self.next = (!later).then_some((page_ns, id));
        later.then_some((page_ns, id))
    }
}

/// The column groups that scans in order read of the chunks of a class: those pages go by themselves.
pub(super) fn in_order_groups(table: &Table, class: &Class) -> IndexSet<GroupIndex> {
    table.classes().groups_of(&table.in_order().intersection(&class.key().scans))
}
