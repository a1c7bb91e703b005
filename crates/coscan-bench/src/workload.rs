//! Which queries run when: the streams of CS07 §5.1, drawn from a seed.
//!
//! Pure: the same options give the same streams on every machine. In call order: [`Kind`] and
//! [`Mix`] say which queries may be drawn, [`Percent`] how much of the table one reads,
//! [`WorkloadOptions::streams`] draws [`Stream`]s of [`Query`]s, [`standalone_queries`] lists what
//! has to be timed alone so that latencies can be normalized.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The two queries of CS07 §5.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// TPC-H Q6: three comparisons and one sum, limited by I/O.
    #[serde(rename = "F")]
    Fast,
    /// TPC-H Q1: eight aggregates in four groups, limited by the processor.
    #[serde(rename = "S")]
    Slow,
}

impl Kind {
    /// The letter that stands for the kind in mixes, labels and JSON: `F` or `S`.
    pub fn letter(self) -> char {
        match self {
            Kind::Fast => 'F',
            Kind::Slow => 'S',
        }
    }
}

/// How much of the table a query reads: 1 to 100 percent of the range of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Percent(u32);

impl Percent {
    /// The whole table: queries have no predicate on the key.
    pub const WHOLE: Percent = Percent(100);

    /// The number, 1 to 100.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Percent> for u32 {
    fn from(percent: Percent) -> u32 {
        percent.0
    }
}

impl TryFrom<u32> for Percent {
    type Error = WorkloadError;

    fn try_from(percent: u32) -> Result<Self, WorkloadError> {
        match percent {
            1..=100 => Ok(Percent(percent)),
            _ => Err(WorkloadError::Percent(percent.to_string())),
        }
    }
}

impl FromStr for Percent {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let number: u32 =
            text.trim().parse().map_err(|_| WorkloadError::Percent(text.to_string()))?;
        number.try_into()
    }
}

/// The kinds that queries are drawn from, each letter equally likely: `FFS` draws two fast
/// queries for every slow one (CS07 §5.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(Vec<Kind>);

impl FromStr for Mix {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let kinds = text.chars().map(|letter| match letter {
            'F' | 'f' => Ok(Kind::Fast),
            'S' | 's' => Ok(Kind::Slow),
            _ => Err(WorkloadError::Mix(text.to_string())),
        });
        let kinds: Vec<Kind> = kinds.collect::<Result<_, _>>()?;
        if kinds.is_empty() { Err(WorkloadError::Mix(text.to_string())) } else { Ok(Mix(kinds)) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|kind| write!(f, "{}", kind.letter()))
    }
}

/// What the streams are drawn from.
#[derive(Debug, Clone)]
pub struct WorkloadOptions {
    /// Which kinds of queries.
    pub mix: Mix,
    /// How much of the table a query may read; each entry equally likely.
    pub percents: Vec<Percent>,
    /// How many streams run at the same time.
    pub streams: usize,
    /// How many queries each stream runs, one after another.
    pub queries_per_stream: usize,
    /// Where the drawing starts: equal seeds give equal streams.
    pub seed: u64,
    /// The time between the starts of two streams (3 s in CS07).
    pub stagger: Duration,
    /// The smallest and the largest `l_orderkey` of the table.
    pub keys: RangeInclusive<i64>,
}

/// Why no streams can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A mix with other letters than F and S, or none.
    #[error("mix {0:?} is not usable; give letters F (fast) and S (slow), such as FS or FFS")]
    Mix(String),
    /// A range that is not a whole number of percent.
    #[error("range {0:?} is not usable; give whole percents from 1 to 100")]
    Percent(String),
    /// No streams, no queries or no ranges.
    #[error(
        "there is nothing to run; give at least one stream, one query per stream and one range"
    )]
    Empty,
    /// A table without keys.
    #[error("the table has no keys from {0} to {1}; is it empty?")]
    Keys(i64, i64),
}

impl WorkloadOptions {
    /// Draws the streams.
    ///
    /// # Errors
    /// Nothing to run, or a table without keys.
    pub fn streams(&self) -> Result<Vec<Stream>, WorkloadError> {
        if self.streams == 0 || self.queries_per_stream == 0 || self.percents.is_empty() {
            return Err(WorkloadError::Empty);
        }
        if self.keys.is_empty() {
            return Err(WorkloadError::Keys(*self.keys.start(), *self.keys.end()));
        }
        let mut random = SplitMix64(self.seed);
        let mut draw_query = || {
            let kind = self.mix.0[random.below(self.mix.0.len() as u64) as usize];
            let percent = self.percents[random.below(self.percents.len() as u64) as usize];
            Query { kind, percent, keys: draw_keys(&mut random, &self.keys, percent) }
        };
        let streams = (0..self.streams).map(|index| Stream {
            start_delay: self.stagger * u32::try_from(index).unwrap_or(u32::MAX),
            queries: (0..self.queries_per_stream).map(|_| draw_query()).collect(),
        });
        Ok(streams.collect())
    }
}

/// A range of `percent` of the keys at a random place; it never wraps around the end.
fn draw_keys(
    random: &mut SplitMix64,
    keys: &RangeInclusive<i64>,
    percent: Percent,
) -> Option<RangeInclusive<i64>> {
    if percent == Percent::WHOLE {
        return None;
    }
    let (first, last) = (i128::from(*keys.start()), i128::from(*keys.end()));
    let keys_total = last - first + 1;
    let keys_read = ((keys_total * i128::from(percent.0) + 50) / 100).max(1);
    let places = u64::try_from(keys_total - keys_read + 1).unwrap_or(u64::MAX);
    let low = first + i128::from(random.below(places));
    let key = |value: i128| i64::try_from(value).expect("a key between two keys");
    Some(key(low)..=key(low + keys_read - 1))
}

/// Queries that one user runs, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// How long after the start of the run the stream starts.
    pub start_delay: Duration,
    /// What it runs.
    pub queries: Vec<Query>,
}

/// One query: what it computes and which part of the table it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What it computes.
    pub kind: Kind,
    /// How much of the table it reads.
    pub percent: Percent,
    /// The keys it reads; `None` reads the whole table, without a predicate.
    pub keys: Option<RangeInclusive<i64>>,
}

impl Query {
    /// The name of the kind of query as in CS07 §5.1: `F-01`, `S-100`.
    pub fn label(&self) -> String {
        label(self.kind, self.percent)
    }

    /// The text of the query over `table`.
    ///
    /// FAST is TPC-H Q6 and SLOW is TPC-H Q1 with the validation parameters of the specification.
    /// CS07 adds further arithmetic to Q1 to slow it down; this one is Q1 as it is.
    pub fn sql(&self, table: &str) -> String {
        let keys = self.keys.as_ref().map_or_else(String::new, |keys| {
            format!("\n  AND l_orderkey BETWEEN {} AND {}", keys.start(), keys.end())
        });
        match self.kind {
            Kind::Fast => format!(
                "SELECT sum(l_extendedprice * l_discount) AS revenue
FROM {table}
WHERE l_shipdate >= DATE '1994-01-01'
  AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07
  AND l_quantity < 24{keys}"
            ),
            Kind::Slow => format!(
                "SELECT l_returnflag, l_linestatus,
  sum(l_quantity) AS sum_qty,
  sum(l_extendedprice) AS sum_base_price,
  sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
  avg(l_quantity) AS avg_qty,
  avg(l_extendedprice) AS avg_price,
  avg(l_discount) AS avg_disc,
  count(*) AS count_order
FROM {table}
WHERE l_shipdate <= DATE '1998-09-02'{keys}
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus"
            ),
        }
    }
}

/// `F-01`, `S-100`: a kind of query and how much it reads, as CS07 writes it.
pub fn label(kind: Kind, percent: Percent) -> String {
    format!("{}-{:02}", kind.letter(), percent.0)
}

/// One query of each kind and range that occurs in the streams, in the order F-01 … S-100. Of
/// several with different keys, the first that was drawn.
pub fn standalone_queries(streams: &[Stream]) -> Vec<Query> {
    let mut distinct = BTreeMap::new();
    for query in streams.iter().flat_map(|stream| &stream.queries) {
        distinct.entry((query.kind, query.percent)).or_insert_with(|| query.clone());
    }
    distinct.into_values().collect()
}

/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `limit - 1`. The bias is below `limit / 2^64`.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}
