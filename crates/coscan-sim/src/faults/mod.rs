//! Faults that follow from a seed: slow, failing and cancelled loads; cancelled and pruned scans; changing pools.

mod cluster_reads;
mod random_case;
mod random_changes;
mod random_cluster;
mod random_table;

use coscan_core::{ChunkIndex, IndexSet, PageIndex};

pub use cluster_reads::{ClusterReads, cluster_reads, read_too_often};
pub use random_case::{RandomCase, broken, random_case};
pub use random_cluster::{RandomCluster, broken_cluster, random_cluster};

use crate::random::Random;

/// The faults of a run and their rates. The same seed and rates give the same faults as long as the run is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// The seed.
    pub seed: u64,
    /// The rates.
    pub rates: Rates,
}

/// The rates of faults, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Loads whose pages arrive late, each by its own time.
    pub slow_load_percent: u64,
    /// Loads of which some pages cannot be read.
    pub failing_load_percent: u64,
    /// Loads that are cancelled: pages that have not arrived by then fail.
    pub cancelled_load_percent: u64,
    /// Queries that are cancelled.
    pub cancelled_query_percent: u64,
    /// Queries that are pruned of some chunks that they still need.
    pub pruned_query_percent: u64,
    /// Chunks whose pages are released before the work on them is done.
    pub early_release_percent: u64,
    /// Queries after whose start the limit of the pool changes, to between nothing and twice its first value. Every
    /// other time the first value returns later.
    pub pool_change_percent: u64,
    /// The bound, in nanoseconds after the start of the load or query, within which each of these happens.
    pub within_ns: u64,
}

impl Faults {
    /// `None`, and these rates without one kind of fault, for each kind with a rate above 0.
    fn fewer(self) -> Vec<Option<Self>> {
        let kinds: [fn(&mut Rates) -> &mut u64; 7] = [
            |rates| &mut rates.slow_load_percent,
            |rates| &mut rates.failing_load_percent,
            |rates| &mut rates.cancelled_load_percent,
            |rates| &mut rates.cancelled_query_percent,
            |rates| &mut rates.pruned_query_percent,
            |rates| &mut rates.early_release_percent,
            |rates| &mut rates.pool_change_percent,
        ];
        let without = kinds.into_iter().filter_map(|kind| {
            let mut fewer = self;
            let percent = std::mem::take(kind(&mut fewer.rates));
            (percent > 0).then_some(Some(fewer))
        });
        std::iter::once(None).chain(without).collect()
    }
}

impl Rates {
    /// Some faults of every kind, within `within_ns` nanoseconds.
    #[must_use]
    pub fn some(within_ns: u64) -> Self {
        Self {
            slow_load_percent: 20,
            failing_load_percent: 2,
            cancelled_load_percent: 3,
            cancelled_query_percent: 10,
            pruned_query_percent: 20,
            early_release_percent: 20,
            pool_change_percent: 20,
            within_ns,
        }
    }
}

/// The faults of a load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LoadFate {
    /// Pages that cannot be read.
    pub(crate) failing: IndexSet<PageIndex>,
    /// Whether its pages are late.
    pub(crate) slow: bool,
    pub(crate) cancelled_after_ns: Option<u64>,
}

/// The faults of a query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct QueryFate {
    pub(crate) cancelled_after_ns: Option<u64>,
    pub(crate) pruned_after_ns: Option<u64>,
    /// When the limit of the pool changes, and to how many percent of its first value.
    pub(crate) pool_changes: Vec<(u64, u64)>,
}

/// Draws the faults of loads and queries.
#[derive(Clone, Debug)]
pub(crate) struct FaultInjector {
    rates: Rates,
    random: Random,
}

impl FaultInjector {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { rates: faults.rates, random: Random::new(faults.seed) }
    }

    pub(crate) fn of_load(&mut self, pages: &[PageIndex]) -> LoadFate {
        let mut fate = LoadFate {
            slow: self.random.percent(self.rates.slow_load_percent),
            cancelled_after_ns: self.maybe_later(self.rates.cancelled_load_percent),
            ..LoadFate::default()
        };
        if self.random.percent(self.rates.failing_load_percent) {
            fate.failing.insert(*self.random.choose(pages));
            for &page in pages.iter().filter(|_| self.random.percent(30)) {
                fate.failing.insert(page);
            }
        }
        fate
    }

    pub(crate) fn of_query(&mut self) -> QueryFate {
        QueryFate {
            cancelled_after_ns: self.maybe_later(self.rates.cancelled_query_percent),
            pruned_after_ns: self.maybe_later(self.rates.pruned_query_percent),
            pool_changes: self.pool_changes(),
        }
    }

    fn pool_changes(&mut self) -> Vec<(u64, u64)> {
        let Some(after_ns) = self.maybe_later(self.rates.pool_change_percent) else {
            return Vec::new();
        };
        let mut changes = vec![(after_ns, self.random.below(200))];
        changes.extend(self.maybe_later(50).map(|more_ns| (after_ns + more_ns, 100)));
        changes
    }

    /// The delay of a page of a slow load, in nanoseconds.
    pub(crate) fn delay_ns(&mut self) -> u64 {
        self.random.between(1, self.rates.within_ns.max(1))
    }

    /// The time, in nanoseconds, after which a worker releases the pages of its chunk, if that is before its work ends.
    pub(crate) fn early_release_ns(&mut self, work_ns: u64) -> Option<u64> {
        let early = self.random.percent(self.rates.early_release_percent);
        early.then(|| self.random.below(work_ns.max(1)))
    }

    /// The chunks to prune: about half, and some that were never needed.
    pub(crate) fn chunks_to_prune(
        &mut self,
        chunks: impl Iterator<Item = ChunkIndex>,
    ) -> Vec<ChunkIndex> {
        chunks.filter(|_| self.random.percent(50)).collect()
    }

    fn maybe_later(&mut self, percent: u64) -> Option<u64> {
        let happens = self.random.percent(percent);
        happens.then(|| self.random.between(1, self.rates.within_ns.max(1)))
    }
}
