//! The form of a workload file. The files beside this one interpret it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::units::{
    Bytes, BytesPerSecond, CostText, Figure, Hertz, InterarrivalTime, Nanoseconds, PoolSize,
};

/// The form of a whole file.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// Its name.
    pub(super) name: String,
    /// One line about its content.
    pub(super) title: String,
    /// The experiment whose workload and machine it takes over, see `extends.rs`.
    #[serde(default, rename = "extends")]
    pub(super) _extends: Option<String>,
    /// The source, such as `[CS07 §5.2, Table 2]`.
    #[serde(default)]
    pub(super) source: String,
    /// Assumptions where the source is silent.
    #[serde(default)]
    pub(super) assumed: Vec<String>,
    /// Parameters fitted to figures of the source, and the figures.
    #[serde(default)]
    pub(super) fitted: Vec<String>,
    /// The reasons why results may differ from the source's.
    #[serde(default)]
    pub(super) remarks: Vec<String>,
    pub(super) machine: MachineForm,
    #[serde(deserialize_with = "named")]
    pub(super) table: Vec<(String, TableForm)>,
    #[serde(deserialize_with = "named")]
    pub(super) query: Vec<(String, QueryForm)>,
    #[serde(deserialize_with = "named")]
    pub(super) streams: Vec<(String, StreamsForm)>,
    #[serde(default)]
    pub(super) sweep: Vec<SweepForm>,
    #[serde(default)]
    pub(super) paper: Vec<PaperForm>,
    #[serde(default)]
    pub(super) claim: Vec<ClaimForm>,
}

/// The form of `[machine]`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineForm {
    pub(super) cores: usize,
    /// The clock, only needed if a cost is in cycles.
    pub(super) clock: Option<Hertz>,
    pub(super) pool: PoolSize,
    #[serde(default)]
    pub(super) pool_changes: Vec<PoolChangeForm>,
    pub(super) disk: DiskForm,
    pub(super) loads_in_flight: Option<usize>,
    /// The most bytes that a device reads before it turns to urgent requests.
    pub(super) quantum: Option<Bytes>,
    /// The bound for policies that schedule processors; one for each core if not given. (The runtime allows three.)
    pub(super) active_workers: Option<usize>,
    pub(super) space_timeout: Option<Nanoseconds>,
    pub(super) wait_max: Option<Nanoseconds>,
}

/// The form of `{ at = "10 s", pool = "256 MiB" }`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PoolChangeForm {
    pub(super) at: Nanoseconds,
    pub(super) pool: PoolSize,
}

/// The form of `[machine.disk.…]`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum DiskForm {
    /// Every chunk takes the same time.
    Perfect { chunk: Nanoseconds },
    /// One head: a seek unless a request continues where the last one ended, then the transfer.
    SeekTransfer { seek: Nanoseconds, bandwidth: BytesPerSecond },
    /// Several heads. A request is spread over them in stripes.
    Raid { devices: usize, seek: Nanoseconds, bandwidth: BytesPerSecond, stripe: Bytes },
    /// Requests in parallel, each with a latency and a bandwidth of its own.
    ObjectStore {
        latency: Nanoseconds,
        request_bandwidth: BytesPerSecond,
        bandwidth: BytesPerSecond,
        requests: usize,
    },
}

/// The form of `[table.…]`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableForm {
    pub(super) rows: u64,
    /// The number of chunks, unless `chunk_rows` is given.
    pub(super) chunks: Option<u64>,
    /// The number of rows of a chunk.
    pub(super) chunk_rows: Option<u64>,
    /// The table whose chunks hold the same keys, instead of both.
    pub(super) clustered_with: Option<String>,
    /// The bytes of the whole table, for a row layout; `columns` otherwise.
    pub(super) size: Option<Bytes>,
    /// The bytes per row of each column, for a column layout.
    #[serde(default, deserialize_with = "named")]
    pub(super) columns: Vec<(String, f64)>,
    /// Bytes of a page; one page for each column of each chunk if not given.
    pub(super) page: Option<Bytes>,
    /// The part of the chunks, the last ones, that the newest version at the start has instead of those of the version
    /// before it.
    pub(super) local_percent: Option<f64>,
    /// Files that are appended.
    pub(super) appends: Option<AppendsForm>,
    /// Checkpoints.
    pub(super) checkpoints: Option<CheckpointsForm>,
}

/// The form of `appends = { every = "1 s", rows = 100_000, count = 60 }`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AppendsForm {
    /// The time before the first file and between two of them.
    pub(super) every: Nanoseconds,
    /// The rows of a file.
    pub(super) rows: u64,
    /// The number of files.
    pub(super) count: u64,
}

/// The form of `checkpoints = { start = "10 s", every = "20 s", count = 2, percent = 50, cost = "20 ns/row" }`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointsForm {
    /// The start of the first one.
    pub(super) start: Nanoseconds,
    /// The time between the end of one and the start of the next.
    #[serde(default)]
    pub(super) every: Nanoseconds,
    /// The number of checkpoints; one if not given.
    pub(super) count: Option<u64>,
    /// The part of the table that they replace; all of it if not given.
    pub(super) percent: Option<f64>,
    /// The start of that part, in percent of the table; its begin if not given.
    pub(super) begin_percent: Option<f64>,
    pub(super) cost: CostText,
}

/// The form of `[query.…]`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryForm {
    /// The table. It may be omitted if there is only one.
    pub(super) table: Option<String>,
    /// The columns; all if not given. `TABLE.COLUMN` is a column of a table clustered with it.
    pub(super) columns: Option<Vec<String>>,
    /// The part of the table; all of it if not given. A name such as `F-10` overrides it.
    pub(super) percent: Option<f64>,
    /// The start of its range, in percent of the table; random if not given.
    pub(super) begin_percent: Option<f64>,
    /// Row ranges instead of `percent`: first row and the row after the last.
    pub(super) rows: Option<Vec<[u64; 2]>>,
    /// Chunk ranges instead of `percent`.
    pub(super) chunks: Option<Vec<[u64; 2]>>,
    /// The number of random rows of that part that an index finds.
    pub(super) index_rows: Option<u64>,
    pub(super) cost: CostText,
    #[serde(default)]
    pub(super) in_order: bool,
    pub(super) workers: Option<usize>,
    pub(super) weight: Option<u32>,
    pub(super) computation: Option<u64>,
    /// The time after its start at which it is cancelled.
    pub(super) cancel_after: Option<Nanoseconds>,
}

/// The form of `[streams.…]`: one or more streams that are made the same way.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamsForm {
    /// The number of streams; one if not given.
    pub(super) count: Option<usize>,
    /// The start of the first one.
    #[serde(default)]
    pub(super) start: Nanoseconds,
    /// The time between the starts of two streams.
    pub(super) apart: Option<InterarrivalTime>,
    /// The time between the end of a query and the start of the next.
    pub(super) think: Option<InterarrivalTime>,
    /// The percentage of the queries that need their rows in order; as their templates say if not given.
    pub(super) in_order_percent: Option<f64>,
    /// The version of their tables that their queries see; the newest when a query starts if not given.
    pub(super) version: Option<usize>,
    /// Whether they run only as long as other streams do.
    #[serde(default)]
    pub(super) while_others_run: bool,
    /// The queries, one after another.
    pub(super) queries: Option<Vec<String>>,
    /// The number of queries in each stream, drawn at random from `from`.
    pub(super) draw: Option<usize>,
    /// The names to draw from; one that is listed twice is drawn twice as often.
    pub(super) from: Option<Vec<String>>,
    /// The parts of the table to draw from, in percent.
    pub(super) percent: Option<Vec<f64>>,
    /// Queries that are all in each stream, in a random order. Those of one list follow one another.
    pub(super) shuffle: Option<Vec<Vec<String>>>,
    /// The number of each query for all streams together, shuffled and dealt to them.
    #[serde(default, deserialize_with = "named")]
    pub(super) deal: Vec<(String, usize)>,
}

/// The form of `[[sweep]]`: one case for each value of a key of this file.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepForm {
    /// The key, such as `machine.pool`.
    pub(super) key: String,
    /// Its name in reports, with its unit; the key if not given.
    pub(super) name: Option<String>,
    /// A list of values, or values with names for them.
    pub(super) values: toml::Value,
}

/// The form of `[[paper]]`: published results.
#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct PaperForm {
    pub(super) policy: String,
    /// The case of a sweep. It may be omitted if there is only one.
    #[serde(default)]
    pub(super) case: String,
    /// The query that the results are of; all of them if not given.
    pub(super) query: Option<String>,
    /// Whether the source computed it for an ideal schedule instead of measuring it.
    #[serde(default)]
    pub(super) ideal: bool,
    #[serde(flatten)]
    pub(super) figures: BTreeMap<String, Figure>,
}

/// The form of `[[claim]]`: a claim of the source about its results.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimForm {
    /// The claim, in our words.
    pub(crate) says: String,
    /// Its source, if not that of the whole file.
    pub(crate) source: Option<String>,
    pub(crate) metric: String,
    /// The query that is measured; all of them if not given.
    pub(crate) query: Option<String>,
    /// Policies, the one with the smallest value first.
    pub(crate) smallest_first: Option<Vec<String>>,
    /// The policy that is measured, instead of an order.
    pub(crate) policy: Option<String>,
    /// The policy that it is relative to.
    pub(crate) to: Option<String>,
    /// The case that it is relative to.
    pub(crate) to_case: Option<String>,
    /// The least value with which the claim holds.
    pub(crate) at_least: Option<f64>,
    /// The greatest value with which the claim holds. Without either bound, it holds within a quarter of the printed
    /// figure.
    pub(crate) at_most: Option<f64>,
    /// The cases that it is about; all if not given.
    pub(crate) cases: Option<Vec<String>>,
    /// The reason why it does not hold here, if it does not.
    pub(crate) why: Option<String>,
}

/// A table of named things, in the order of the file.
fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(String, T)>, D::Error> {
    deserializer.deserialize_map(NamedVisitor(PhantomData))
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of named things, such as [query.F]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = map.next_entry()? {
            items.push(item);
        }
        Ok(items)
    }
}
