//! When scans will come to a table again, from how often they came: what its pages are worth while nobody wants them.
//!
//! Among pages of one table nothing changes: those that somebody comes to stay longer. Between tables, a small one that
//! is read every few seconds stays beside what a long scan comes to in a minute.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{TableId, Time};
use crate::policy::Chosen;
use crate::scan::Scan;
use crate::state::State;

/// The part of a new scan in what is known of a table.
const WEIGHT: f64 = 0.25;

/// How often scans come to tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    tables: BTreeMap<TableId, Visits>,
}

/// The scans that came to a table.
#[derive(Clone, Copy, Debug)]
struct Visits {
    last: Time,
    /// Nanoseconds from one to the next, on average. `None` after the first.
    interval_ns: Option<f64>,
    /// The part of the chunks that one needs, on average.
    part: f64,
}

impl Returns {
    /// A scan starts.
    pub(super) fn note(&mut self, state: &State, scan: &Scan) {
        let chunks = state.table(scan.table()).chunk_count().max(1);
        let part = scan.needed().len() as f64 / chunks as f64;
        let first = Visits { last: state.now(), interval_ns: None, part };
        let visits = self.tables.entry(scan.table()).or_insert(first);
        if visits.last == state.now() {
            return;
        }
        let interval_ns = state.now().since(visits.last) as f64;
        let known_ns = visits.interval_ns.unwrap_or(interval_ns);
        visits.interval_ns = Some(known_ns + (interval_ns - known_ns) * WEIGHT);
        visits.part += (part - visits.part) * WEIGHT;
        visits.last = state.now();
    }

    pub(super) fn forget(&mut self, table: TableId) {
        self.tables.remove(&table);
    }

    /// Nanoseconds until a scan is expected that comes to some page of a table; `None` if nothing is known. The longer
    /// none came, the longer it is expected to take.
    fn return_ns(&self, now: Time, table: TableId) -> Option<u64> {
        let visits = self.tables.get(&table)?;
        let interval_ns = visits.interval_ns?.max(now.since(visits.last) as f64);
        Some((interval_ns / visits.part.max(f64::MIN_POSITIVE)) as u64)
    }

    /// The tables whose unwanted pages are worth something. With one table there is nothing to compare.
    pub(super) fn returning(&self, state: &State) -> Returning {
        if self.tables.len() < 2 {
            return Returning::default();
        }
        let known = self.tables.keys();
        let mut tables: Vec<_> =
            known.filter_map(|&table| Some((self.return_ns(state.now(), table)?, table))).collect();
        tables.sort_unstable();
        Returning { tables }
    }
}

/// Tables whose unwanted pages have not gone yet, those that scans come to first in front.
#[derive(Clone, Debug, Default)]
pub(super) struct Returning {
    tables: Vec<(u64, TableId)>,
}

impl Returning {
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Takes what nobody wants of other tables, least recently used first.
    pub(super) fn take_others(&self, state: &State, chosen: &mut Chosen<'_>) {
        let known: BTreeSet<_> = self.tables.iter().map(|&(_, table)| table).collect();
        let is_other = |id| !known.contains(&id);
        chosen.take_all(state, state.unwanted_pages_where(is_other));
    }

    /// Takes what nobody wants of this table, and of those that scans come to only after so many nanoseconds.
    pub(super) fn take_before(
        &mut self,
        state: &State,
        chosen: &mut Chosen<'_>,
        table: TableId,
        ns: u64,
    ) {
        if let Some(position) = self.tables.iter().position(|(_, own)| *own == table) {
            chosen.take_all(state, state.unwanted_pages_where(|it| it == table));
            self.tables.remove(position);
        }
        while !chosen.enough()
            && let Some((_, id)) = self.tables.pop_if(|(return_ns, _)| *return_ns >= ns)
        {
            chosen.take_all(state, state.unwanted_pages_where(|it| it == id));
        }
    }

    /// Takes the rest.
    pub(super) fn take_rest(&mut self, state: &State, chosen: &mut Chosen<'_>) {
        while !chosen.enough()
            && let Some((_, id)) = self.tables.pop()
        {
            chosen.take_all(state, state.unwanted_pages_where(|it| it == id));
        }
    }
}
