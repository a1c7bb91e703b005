//! When scans will come to a table again, from how often they came: what its pages are worth while nobody wants them.
//!
//! Among pages of one table nothing changes: those that somebody comes to stay longer. Between tables, a small one that
//! is read every few seconds stays beside what a long scan comes to in a minute.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use crate::ids::{TableId, Time};
use crate::policy::Chosen;
use crate::policy::merge::Heads;
use crate::scan::Scan;
use crate::state::State;

/// The part of a new scan in what is known of a table.
const WEIGHT: f64 = 0.25;

/// How often scans come to tables, and what that says of the pages that nobody wants now.
#[derive(Clone, Debug, Default)]
pub(super) struct ReuseEstimator {
    arrivals: BTreeMap<TableId, Arrivals>,
    /// Tables to be indexed anew before the next choice.
    changed: BTreeSet<TableId>,
    /// Tables with unwanted pages, by the nanoseconds until a scan is expected that needs one of those pages.
    unwanted: Heads<u64>,
    /// The other tables with unwanted pages, by the last use of their least recently used one (a count of uses).
    others: Heads<Reverse<u64>>,
    /// When tables are indexed anew although nothing happens: the longer no scan comes, the later it is expected.
    due: BTreeSet<(Time, TableId)>,
}

/// The scans that came to a table.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    last: Time,
    /// Nanoseconds from one to the next, on average. `None` after the first.
    interval_ns: Option<f64>,
    /// The part of the chunks that one needs, on average.
    part: f64,
    due: Option<Time>,
}

impl ReuseEstimator {
    /// A scan starts.
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

    /// Pages of a table are wanted no more, or again, or came and went.
    pub(super) fn changed(&mut self, table: TableId) {
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

    /// With one table there is nothing to compare: files all anew when a second one comes, or only one is left.
    fn recount(&mut self, before: usize) {
        if (before < 2) != (self.arrivals.len() < 2) {
            self.changed.extend(self.arrivals.keys());
        }
    }

    /// What is known now.
    pub(super) fn unwanted(&mut self, state: &State) -> UnwantedPages<'_> {
        while let Some(&(due, table)) = self.due.first().filter(|(due, _)| *due <= state.now()) {
            self.due.remove(&(due, table));
            self.changed.insert(table);
        }
        for table in std::mem::take(&mut self.changed) {
            self.reindex(state, table);
        }
        let farthest: Box<dyn Iterator<Item = _>> = Box::new(self.unwanted.largest_first());
        UnwantedPages {
            others: Some(&self.others),
            farthest: Some(farthest.peekable()),
            taken: BTreeSet::new(),
        }
    }

    fn reindex(&mut self, state: &State, table: TableId) {
        let oldest = state.unwanted_pages_of(table).next().map(|(used_at, _)| Reverse(used_at));
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
        self.unwanted.set(table, return_ns.filter(|_| oldest.is_some()));
        self.others.set(table, oldest.filter(|_| return_ns.is_none()));
    }
}

/// Tables whose unwanted pages have not gone yet.
#[derive(Default)]
pub(super) struct UnwantedPages<'a> {
    others: Option<&'a Heads<Reverse<u64>>>,
    /// Those that scans come to last in front.
    farthest: Option<Farthest<'a>>,
    taken: BTreeSet<TableId>,
}

type Farthest<'a> = Peekable<Box<dyn Iterator<Item = (u64, TableId)> + 'a>>;

impl UnwantedPages<'_> {
    /// Whether no scan is expected.
    pub(super) fn is_empty(&mut self) -> bool {
        self.farthest.as_mut().is_none_or(|farthest| farthest.peek().is_none())
    }

    /// Takes pages that no table lists, then what nobody wants of tables that no scan is expected to come to, least
    /// recently used first.
    pub(super) fn take_others(&self, state: &State, chosen: &mut Chosen<'_>) {
        let Some(others) = self.others else {
            return chosen.take_all(state, state.unwanted_pages());
        };
        chosen.take_all(state, state.unlisted_pages());
        let unwanted =
            |table| state.unwanted_pages_of(table).map(|(used_at, id)| (Reverse(used_at), id));
        chosen.take_all(state, others.merge(unwanted).map(|(_, id)| id));
    }

    /// Takes what nobody wants of this table, and of those that scans come to only after so many nanoseconds.
    pub(super) fn take_before(
        &mut self,
        state: &State,
        chosen: &mut Chosen<'_>,
        table: TableId,
        ns: u64,
    ) {
        if !self.is_empty() {
            self.take(state, chosen, table);
        }
        self.take_from(state, chosen, ns);
    }

    /// Takes the rest.
    pub(super) fn take_rest(&mut self, state: &State, chosen: &mut Chosen<'_>) {
        self.take_from(state, chosen, 0);
    }

    fn take_from(&mut self, state: &State, chosen: &mut Chosen<'_>, ns: u64) {
        while !chosen.enough()
            && let Some(farthest) = &mut self.farthest
            && let Some((_, table)) = farthest.next_if(|(return_ns, _)| *return_ns >= ns)
        {
            self.take(state, chosen, table);
        }
    }

    fn take(&mut self, state: &State, chosen: &mut Chosen<'_>, table: TableId) {
        if self.taken.insert(table) {
            chosen.take_all(state, state.unwanted_pages_of(table).map(|(_, id)| id));
        }
    }
}
