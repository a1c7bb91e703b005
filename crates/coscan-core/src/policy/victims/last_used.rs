//! What scans in order come to, beside what scans in any order may take before [CS11 §4.4].

use std::collections::BTreeMap;

use crate::classes::Class;
use crate::ids::{GroupIndex, PageId, SlotIndex, TableId};
use crate::policy::next_use::{NextUses, Walk};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;

/// Pages that scans in order come to, those used last in front; scans in any order may come to them before.
pub(super) struct LastUsed<'a> {
    next_uses: &'a mut NextUses,
    walk: Walk,
    next: Option<(u64, PageId)>,
    /// For each table, the slots of its scans in order.
    in_order: BTreeMap<TableId, IndexSet<SlotIndex>>,
}

/// When scans in any order are expected to come to what they need.
#[derive(Debug, Default)]
pub(super) struct AnyOrder {
    /// For each table, nanoseconds by the slots of its scans.
    ns: BTreeMap<TableId, BTreeMap<SlotIndex, u64>>,
}

impl AnyOrder {
    pub(super) fn new(state: &State) -> Self {
        let mut ns: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        let any = |scan: &&Scan| scan.order() == Order::Any && !scan.picks();
        for scan in state.scans().filter(any) {
            let scan_ns = NextUses::any_order_ns(state, scan);
            ns.entry(scan.table()).or_default().insert(scan.slot(), scan_ns);
        }
        Self { ns }
    }

    /// When the first of a class' scans comes to one of its chunks, in nanoseconds.
    pub(super) fn ns(&self, table: TableId, class: &Class) -> u64 {
        let Some(known) = self.ns.get(&table) else { return u64::MAX };
        let scans = class.key().scans.iter().filter_map(|slot| known.get(&slot));
        scans.min().copied().unwrap_or(u64::MAX)
    }
}

impl<'a> LastUsed<'a> {
    pub(super) fn new(state: &State, next_uses: &'a mut NextUses) -> Self {
        let walk = next_uses.walk(state);
        let mut in_order: BTreeMap<_, IndexSet<_>> = BTreeMap::new();
        let ordered = |scan: &&Scan| scan.order() == Order::InOrder && !scan.picks();
        for scan in state.scans().filter(ordered) {
            in_order.entry(scan.table()).or_default().insert(scan.slot());
        }
        Self { next_uses, walk, next: None, in_order }
    }

    /// The next page, if no scan comes to it within so many nanoseconds, and when the first does.
    pub(super) fn next_after(
        &mut self,
        state: &State,
        any_order: &AnyOrder,
        ns: u64,
    ) -> Option<(u64, PageId)> {
        let (page_ns, id) = match self.next {
            Some(next) => next,
            None => {
                let (in_order_ns, id) = self.next_uses.next_last(state, &mut self.walk)?;
                let any_order_ns = state.slices_of(id).iter().map(|slice| {
                    let classes = state.table(slice.table).classes();
                    any_order.ns(slice.table, classes.class_of(slice.chunk))
                });
                (any_order_ns.min().unwrap_or(u64::MAX).min(in_order_ns), id)
            }
        };
        let later = page_ns >= ns;
        self.next = (!later).then_some((page_ns, id));
        later.then_some((page_ns, id))
    }

    /// The column groups that scans in order read of the chunks of a class: those pages go by themselves.
    pub(super) fn in_order_groups(
        &self,
        state: &State,
        id: TableId,
        class: &Class,
    ) -> IndexSet<GroupIndex> {
        let table = state.table(id);
        let scans = self.in_order.get(&id).map(|slots| slots.intersection(&class.key().scans));
        scans.map_or_else(IndexSet::new, |scans| table.classes().groups_of(&scans))
    }
}
