//! A query: its pins, and the operators that release them.

use std::collections::BTreeSet;

use super::setup::Queries;
use crate::random::Random;

/// A pin of a query, in the order in which requests become eligible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pin {
    pub(super) fragment: u32,
    /// The operator that packs it.
    pub(super) operator: usize,
    /// Whether it stays pinned until that operator has run: the select has made a view of it.
    pub(super) is_kept: bool,
}

/// A query: joins, each of which needs the one before and packs of its own columns, then the projection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Query {
    pub(super) pins: Vec<Pin>,
    pub(super) operators: usize,
}

impl Query {
    /// A random query.
    pub(super) fn random(queries: &Queries, random: &mut Random) -> Self {
        let mut columns: Vec<usize> = (0..queries.columns).collect();
        let count = queries.columns_per_query.min(columns.len());
        let (low, high) = queries.kept;
        let part = low + (high - low) * random.unit();
        let joined = count.saturating_sub(queries.projected);
        let fragments = count * queries.partitions;
        let kept = (fragments as f64 * part).round() as usize;
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        while chosen.len() < kept {
            chosen.insert(random.count(0, fragments - 1));
        }
        let mut pins = Vec::with_capacity(fragments);
        for place in 0..count {
            let other = random.count(place, columns.len() - 1);
            columns.swap(place, other);
            let operator = match place < joined {
                true => place * queries.joins / joined,
                false => queries.joins,
            };
            for partition in 0..queries.partitions {
                let fragment = (columns[place] * queries.partitions + partition) as u32;
                let is_kept = chosen.contains(&pins.len());
                pins.push(Pin { fragment, operator, is_kept });
            }
        }
        Self { pins, operators: queries.joins + 1 }
    }
}

/// A running query.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) query: Query,
    /// For each operator, the selects that it waits for.
    missing: Vec<usize>,
    /// Operators that have run.
    done: usize,
    is_operator_running: bool,
}

impl Running {
    pub(super) fn new(query: Query) -> Self {
        let mut missing = vec![0; query.operators];
        for pin in &query.pins {
            missing[pin.operator] += 1;
        }
        Self { query, missing, done: 0, is_operator_running: false }
    }

    /// Notes that a select has run.
    pub(super) fn selected(&mut self, pin: usize) {
        self.missing[self.query.pins[pin].operator] -= 1;
    }

    /// Whether the next operator can run now. It then counts as running.
    pub(super) fn start_operator(&mut self) -> bool {
        let is_ready = !self.is_operator_running && self.missing.get(self.done) == Some(&0);
        self.is_operator_running |= is_ready;
        is_ready
    }

    /// Notes that the operator has run. Returns the fragments that it releases.
    pub(super) fn operated(&mut self) -> Vec<u32> {
        let kept = self.query.pins.iter().filter(|pin| pin.is_kept && pin.operator == self.done);
        let kept = kept.map(|pin| pin.fragment).collect();
        (self.done, self.is_operator_running) = (self.done + 1, false);
        kept
    }

    pub(super) fn is_over(&self) -> bool {
        self.done == self.query.operators
    }
}
