//! The expected time of the next scan of a table, estimated from the intervals between its scans. It decides how long
//! pages that no running scan needs stay.
//!
//! Within a table, pages that running scans need still stay longer. Between tables, a small one that is read every few
//! seconds stays beside pages that a long scan needs in a minute.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use crate::ids::{TableId, Time};
use crate::policy::VictimList;
use crate::policy::merge::KWayMerge;
use crate::scan::Scan;
use crate::state::State;

/// The weight of a new scan in the averages of its table, which follow a change within a few scans.
const WEIGHT: f64 = 0.25;

/// The intervals between scans of each table, and the order that they give to unneeded pages.
#[derive(Clone, Debug, Default)]
pub(super) struct ReuseEstimator {
    arrivals: BTreeMap<TableId, Arrivals>,
    /// Tables to be indexed anew before the next choice.
    changed: BTreeSet<TableId>,
    /// Tables with unneeded pages, by the nanoseconds until a scan is expected that needs one of those pages.
    expected: KWayMerge<u64>,
    /// The other tables with unneeded pages, by the last use of their least recently used one (a count of uses).
    unexpected: KWayMerge<Reverse<u64>>,
    /// When tables are indexed anew although nothing changes, because a scan that is late is expected later and later.
    due: BTreeSet<(Time, TableId)>,
}

/// The arrivals of scans at a table.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    last: Time,
    /// Average nanoseconds between two of them; `None` after the first.
    interval_ns: Option<f64>,
    /// The average part of the chunks that a scan needs.
    part: f64,
    due: Option<Time>,
}

impl ReuseEstimator {
    /// Notes the start of a scan. Several that start at the same time count once.
    pub(super) fn note(&mut self, state: &State, scan: &Scan) {
        let chunks = state.table(scan.table()).chunk_count().max(1);
        let part = scan.needed().len() as f64 / chunks as f64;
        let known = self.arrivals.len();
        let first = Arrivals { last: state.now(), interval_ns: None, part, due: None };
        let arrivals = self.arrivals.entry(scan.table()).or_insert(first);
        if arrivals.last != state.now() {
            let interval_ns = state.now().since(arrivals.last) as f64;
            let known_ns = arrivals.interval_ns.unwrap_or(interval_ns);
            arrivals.interval_ns = Some(known_ns + (interval_ns - known_ns) * WEIGHT);
            arrivals.part += (part - arrivals.part) * WEIGHT;
            arrivals.last = state.now();
        }
        self.changed.insert(scan.table());
        self.recount(known);
    }

    /// Notes that the unneeded pages of a table have changed.
    pub(super) fn table_changed(&mut self, table: TableId) {
        self.changed.insert(table);
    }

    pub(super) fn forget(&mut self, table: TableId) {
        let known = self.arrivals.len();
        if let Some(due) = self.arrivals.remove(&table).and_then(|arrivals| arrivals.due) {
            self.due.remove(&(due, table));
        }
        self.changed.insert(table);
        self.recount(known);
    }

    /// Indexes all tables anew when a second one is added, or only one is left. With one table there is nothing to
    /// compare.
    fn recount(&mut self, before: usize) {
        if (before < 2) != (self.arrivals.len() < 2) {
            self.changed.extend(self.arrivals.keys());
        }
    }

    /// The unneeded pages of all tables.
    pub(super) fn unneeded(&mut self, state: &State) -> UnneededPages<'_> {
        while let Some(&(due, table)) = self.due.first().filter(|(due, _)| *due <= state.now()) {
            self.due.remove(&(due, table));
            self.changed.insert(table);
        }
        for table in std::mem::take(&mut self.changed) {
            self.reindex(state, table);
        }
        let expected: Box<dyn Iterator<Item = _>> = Box::new(self.expected.largest_first());
        UnneededPages {
            unexpected: Some(&self.unexpected),
            expected: Some(expected.peekable()),
            taken: BTreeSet::new(),
        }
    }

    fn reindex(&mut self, state: &State, table: TableId) {
        let oldest = state.unneeded_pages_of(table).next().map(|(used_at, _)| Reverse(used_at));
        let compares = self.arrivals.len() >= 2;
        let arrivals = self.arrivals.get_mut(&table).filter(|_| compares);
        let mut return_ns = None;
        if let Some(arrivals) = arrivals
            && let Some(interval_ns) = arrivals.interval_ns
        {
            let waited_ns = state.now().since(arrivals.last) as f64;
            let interval_ns = interval_ns.max(waited_ns).max(1.0);
            return_ns = Some((interval_ns / arrivals.part.max(f64::MIN_POSITIVE)) as u64);
            let due = Time(arrivals.last.0.saturating_add((interval_ns * 2.0) as u64));
            if let Some(before) = arrivals.due.replace(due) {
                self.due.remove(&(before, table));
            }
            self.due.insert((due, table));
        }
        self.expected.set(table, return_ns.filter(|_| oldest.is_some()));
        self.unexpected.set(table, oldest.filter(|_| return_ns.is_none()));
    }
}

/// The pages that no running scan needs, in the order in which they are evicted. By default no scan is expected.
#[derive(Default)]
pub(super) struct UnneededPages<'a> {
    unexpected: Option<&'a KWayMerge<Reverse<u64>>>,
    /// Tables at which scans are expected, the latest in front, and after how many nanoseconds.
    expected: Option<ExpectedTables<'a>>,
    /// Tables whose pages were taken.
    taken: BTreeSet<TableId>,
}

type ExpectedTables<'a> = Peekable<Box<dyn Iterator<Item = (u64, TableId)> + 'a>>;

impl UnneededPages<'_> {
    /// Whether no scan is expected at the tables that are left.
    pub(super) fn is_empty(&mut self) -> bool {
        self.expected.as_mut().is_none_or(|expected| expected.peek().is_none())
    }

    /// Takes pages that no table lists, then those of tables at which no scan is expected, least recently used first.
    pub(super) fn take_unexpected(&self, state: &State, victims: &mut VictimList<'_>) {
        let Some(unexpected) = self.unexpected else {
            return victims.take_all(state, state.unneeded_pages());
        };
        victims.take_all(state, state.unlisted_pages());
        let pages =
            |table| state.unneeded_pages_of(table).map(|(used_at, id)| (Reverse(used_at), id));
        victims.take_all(state, unexpected.merge(pages).map(|(_, id)| id));
    }

    /// Takes the unneeded pages of this table, and of tables at which a scan is expected in `ns` nanoseconds at the
    /// earliest.
    pub(super) fn take_before(
        &mut self,
        state: &State,
        victims: &mut VictimList<'_>,
        table: TableId,
        ns: u64,
    ) {
        if !self.is_empty() {
            self.take_table(state, victims, table);
        }
        self.take_expected(state, victims, ns);
    }

    /// Takes the remaining pages.
    pub(super) fn take_rest(&mut self, state: &State, victims: &mut VictimList<'_>) {
        self.take_expected(state, victims, 0);
    }

    fn take_expected(&mut self, state: &State, victims: &mut VictimList<'_>, ns: u64) {
        while !victims.enough()
            && let Some(expected) = &mut self.expected
            && let Some((_, table)) = expected.next_if(|(return_ns, _)| *return_ns >= ns)
        {
            self.take_table(state, victims, table);
        }
    }

    fn take_table(&mut self, state: &State, victims: &mut VictimList<'_>, table: TableId) {
        if self.taken.insert(table) {
            victims.take_all(state, state.unneeded_pages_of(table).map(|(_, id)| id));
        }
    }
}
