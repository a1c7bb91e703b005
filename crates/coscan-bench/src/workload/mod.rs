//! The streams of queries of CS07 §5.1, drawn from a seed.
//!
//! This module is pure: the same options give the same streams on every machine. In call order: [`Kind`] and [`Mix`]
//! determine which queries may be drawn, [`Percent`] how much of the table a query reads, and a [`StreamGroup`] how its
//! streams run. [`WorkloadOptions::streams`] draws [`Stream`]s of [`Query`]s. [`standalone_queries`] lists the queries
//! to time alone so that latencies can be normalized.

mod constants;
mod percent;
mod query;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use coscan_sim::Random;

pub use constants::{ConstantChoice, Constants, FastConstants, SlowConstants};
pub use percent::Percent;
pub use query::{KEY, Kind, ORDERS, Query, StreamQuery, in_order_table, label};
pub(crate) use query::{ORDERS_KEY, used_key};

/// The kinds that queries are drawn from, each letter equally likely. `FFS` draws two fast queries for every slow one
/// (CS07 §5.2.1). Mixes of the papers have names ([`Mix::NAMED`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(Vec<Kind>);

impl Mix {
    /// The queries of CS11 Figure 6.6: merge joins alone, and merge joins with scans of each table.
    pub const NAMED: [(&'static str, &'static [Kind]); 2] = [
        ("cs11-6.6-joins", &[Kind::JoinByPriority, Kind::JoinByMode]),
        ("cs11-6.6", &[Kind::JoinByPriority, Kind::JoinByMode, Kind::Lines, Kind::Orders]),
    ];

    /// The kinds, each repeated in proportion to its probability.
    pub fn kinds(&self) -> &[Kind] {
        &self.0
    }
}

impl FromStr for Mix {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if let Some((_, kinds)) = Self::NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(Mix(kinds.to_vec()));
        }
        let kinds = text.chars().map(|letter| {
            let name = letter.to_ascii_uppercase().to_string();
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
            kind.ok_or_else(|| WorkloadError::Mix(text.to_string()))
        });
        let kinds: Vec<Kind> = kinds.collect::<Result<_, _>>()?;
        if kinds.is_empty() { Err(WorkloadError::Mix(text.to_string())) } else { Ok(Mix(kinds)) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.into_iter().find(|(_, kinds)| *kinds == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.iter().try_for_each(|kind| f.write_str(kind.name())),
        }
    }
}

/// A group of streams with the same mix of queries and settings.
#[derive(Debug, Clone)]
pub struct StreamGroup {
    /// The name of the group in reports.
    pub name: String,
    /// The kinds of queries.
    pub mix: Mix,
    /// The parts of the table that a query may read, each equally likely.
    pub percents: Vec<Percent>,
    /// The number of streams that run at the same time.
    pub streams: usize,
    /// The number of queries that each stream draws and runs, one after another.
    pub queries_per_stream: usize,
    /// The time between the end of a query and the start of the next one of its stream.
    pub think: Duration,
    /// Whether a stream starts over after its last query, until all streams that do not repeat have ended.
    pub repeats: bool,
}

impl StreamGroup {
    /// A group of streams as in the papers. Each runs its queries once, one directly after another.
    pub fn once(mix: Mix, percents: Vec<Percent>, streams: usize, queries: usize) -> Self {
        Self {
            name: "streams".to_owned(),
            mix,
            percents,
            streams,
            queries_per_stream: queries,
            think: Duration::ZERO,
            repeats: false,
        }
    }

    /// Draws the streams of the group, from a sequence of random numbers of its own.
    fn draw(&self, group: usize, random: &mut Random, keys: &RangeInclusive<i64>) -> Vec<Stream> {
        let mut draw_query = || {
            let (kind, drawn) = (*random.choose(&self.mix.0), *random.choose(&self.percents));
            let percent = if kind == Kind::Point { Percent::ONE_KEY } else { drawn };
            Query::new(kind, percent, draw_keys(random, keys, percent))
        };
        let mut queries = || (0..self.queries_per_stream).map(|_| draw_query()).collect();
        let (think, repeats) = (self.think, self.repeats);
        let stream = |_| Stream { group, think, repeats, ..Stream::once(queries()) };
        (0..self.streams).map(stream).collect()
    }
}

/// The workload that streams are drawn from.
#[derive(Debug, Clone)]
pub struct WorkloadOptions {
    /// The groups of streams, which run at the same time.
    pub groups: Vec<StreamGroup>,
    /// The constants of the queries of all groups.
    pub constants: ConstantChoice,
    /// The seed. Equal seeds give equal streams.
    pub seed: u64,
    /// The time between the starts of two streams (3 s in CS07).
    pub stagger: Duration,
    /// The smallest and the largest `l_orderkey` of the table.
    pub keys: RangeInclusive<i64>,
}

/// The reason why no streams can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The mix has unknown letters, or none.
    #[error(
        "mix {0:?} is not usable; give letters F (fast), S (slow), O (in order) and P (one key), such as FS or FFSO, or \
         a name: {names}",
        names = Mix::NAMED.map(|(name, _)| name).join(", ")
    )]
    Mix(String),
    /// The range is not a whole number of percent.
    #[error("range {0:?} is not usable; give whole percents from 1 to 100")]
    Percent(String),
    /// Constants are not drawn in this way.
    #[error(
        "constants {0:?} are not usable; give equal, tpch, distinct, or the percentage of distinct ones, such as 50%"
    )]
    Constants(String),
    /// There are not so many constants that select about the same rows.
    #[error(
        "there are too few dates for {0} queries with constants of their own; run fewer queries, or give a smaller \
         percentage of distinct ones"
    )]
    DistinctConstants(usize),
    /// There are no streams, no queries or no ranges.
    #[error(
        "there is nothing to run; give at least one stream, one query per stream and one range"
    )]
    Empty,
    /// The table has no keys.
    #[error("the table has no keys from {0} to {1}; is it empty?")]
    Keys(i64, i64),
}

impl WorkloadOptions {
    /// Draws the streams, group after group. The streams of a group, except for their constants, do not depend on the
    /// others.
    ///
    /// # Errors
    /// If there is nothing to run, the table has no keys, or there are too few distinct constants.
    pub fn streams(&self) -> Result<Vec<Stream>, WorkloadError> {
        let draws_nothing = |group: &StreamGroup| {
            group.streams == 0 || group.queries_per_stream == 0 || group.percents.is_empty()
        };
        if self.groups.is_empty() || self.groups.iter().any(draws_nothing) {
            return Err(WorkloadError::Empty);
        }
        if self.keys.is_empty() {
            return Err(WorkloadError::Keys(*self.keys.start(), *self.keys.end()));
        }
        let groups = self.groups.iter().enumerate().flat_map(|(index, group)| {
            let mut random = Random::new(self.seed.wrapping_add(index as u64));
            group.draw(index, &mut random, &self.keys)
        });
        let mut streams: Vec<_> = groups.collect();
        self.constants.assign(&mut streams, self.seed)?;
        stagger(&mut streams, self.stagger);
        Ok(streams)
    }
}

/// Makes the streams start one after another, this long apart.
pub fn stagger(streams: &mut [Stream], stagger: Duration) {
    for (index, stream) in streams.iter_mut().enumerate() {
        stream.start_delay = stagger * u32::try_from(index).unwrap_or(u32::MAX);
    }
}

/// A range of `percent` of the keys at a random place. It never wraps around the end.
fn draw_keys(
    random: &mut Random,
    keys: &RangeInclusive<i64>,
    percent: Percent,
) -> Option<RangeInclusive<i64>> {
    if percent == Percent::WHOLE {
        return None;
    }
    let (first, last) = (i128::from(*keys.start()), i128::from(*keys.end()));
    let keys_total = last - first + 1;
    let keys_read = ((keys_total * i128::from(percent.get()) + 50) / 100).max(1);
    let places = u64::try_from(keys_total - keys_read + 1).unwrap_or(u64::MAX);
    let mut low = first + i128::from(random.below(places));
    if percent == Percent::ONE_KEY {
        low = used_key(low).max(first);
    }
    let key = |value: i128| i64::try_from(value).expect("a key between two keys");
    Some(key(low)..=key(low + keys_read - 1))
}

/// The queries of one user, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream<Q = Query> {
    /// The index of its group.
    pub group: usize,
    /// The time from the start of the run to the start of the stream.
    pub start_delay: Duration,
    /// The time between the end of a query and the start of the next one.
    pub think: Duration,
    /// Whether it starts over after its last query, until all streams that do not repeat have ended.
    pub repeats: bool,
    /// Its queries.
    pub queries: Vec<Q>,
}

impl<Q> Stream<Q> {
    /// A stream that starts at once and runs its queries once, one directly after another.
    pub fn once(queries: Vec<Q>) -> Self {
        let (start_delay, think) = (Duration::ZERO, Duration::ZERO);
        Self { group: 0, start_delay, think, repeats: false, queries }
    }
}

/// The queries to time alone: one of each kind and range that occurs in the streams, in the order F-01 … S-100. There
/// are several of each kind that reads one percent or less, since their times differ. Of many with different keys, the
/// first drawn is used.
pub fn standalone_queries(streams: &[Stream]) -> Vec<Query> {
    let mut distinct: BTreeMap<_, Vec<Query>> = BTreeMap::new();
    for query in streams.iter().flat_map(|stream| &stream.queries) {
        let samples = if query.percent.get() <= 1 { SHORT_SAMPLES } else { 1 };
        let queries = distinct.entry((query.kind, query.percent)).or_default();
        if queries.len() < samples && !queries.contains(query) {
            queries.push(query.clone());
        }
    }
    distinct.into_values().flatten().collect()
}

/// The number of short queries of one kind that are timed alone.
const SHORT_SAMPLES: usize = 5;
