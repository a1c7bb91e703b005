//! Streams of small queries on small tables, including joins. Sharing gains little for them, so that coscan must not
//! cost anything.
//!
//! Each round draws new queries and runs them on each engine. Engines are kept for all rounds, as in a server. Ratios
//! are computed within a round, so that disturbances of the machine affect both sides.

mod metrics;
mod queries;

use std::sync::Arc;

use crate::engines::EngineKind;
use crate::metrics::Compared;
use crate::rounds::in_turn;
use crate::runner::{EngineError, run_streams};
use crate::tpch::setup::Setup;
use crate::workload::Stream;
use metrics::Tally;

pub use metrics::{SmallKindReport, SmallRatios, SmallReport};
pub use queries::{SmallQueries, SmallQuery};

/// The experiment: workload, data and device.
#[derive(Debug, Clone)]
pub struct Small {
    /// The tables and the device.
    pub setup: Setup,
    /// The number of simultaneous streams.
    pub streams: usize,
    /// The number of queries of each stream in a round, one after another.
    pub queries_per_stream: usize,
    /// The number of runs of all streams on each engine.
    pub rounds: usize,
    /// The seed of the queries.
    pub seed: u64,
}

impl Small {
    /// Runs all rounds on all engines. `on_run` gets the round and the engine before each run.
    ///
    /// # Errors
    /// If a table cannot be opened or a query fails.
    pub async fn run(
        &self,
        kinds: &[EngineKind],
        on_run: &dyn Fn(usize, &str),
    ) -> Result<Compared<SmallReport>, EngineError> {
        let one_of_each = self.queries(0).one_of_each();
        let one_of_each: Vec<_> = one_of_each.into_iter().map(|query| query.sql).collect();
        let mut engines = Vec::new();
        for &kind in kinds {
            engines.push(self.setup.engine(kind, &one_of_each).await?);
        }
        let mut tallies: Vec<_> = kinds.iter().map(|_| Tally::default()).collect();
        for round in 0..self.rounds {
            let streams = self.draw(round);
            let runs = in_turn(round, &engines, async |engine| {
                on_run(round, engine.name());
                Ok(run_streams(Arc::clone(engine), &streams, "").await?)
            });
            let runs = runs.await?;
            for (tally, run) in tallies.iter_mut().zip(&runs) {
                tally.add(run, &runs[0]);
            }
        }
        let reports = tallies.iter().zip(&engines);
        Ok(Compared {
            reports: reports.map(|(tally, engine)| tally.report(engine.as_ref())).collect(),
            differences: tallies.iter().zip(kinds).filter_map(Tally::difference).collect(),
        })
    }

    fn queries(&self, round: usize) -> SmallQueries {
        SmallQueries::new(self.seed.wrapping_add(round as u64), self.setup.scale_factor)
    }

    fn draw(&self, round: usize) -> Vec<Stream<SmallQuery>> {
        let mut queries = self.queries(round);
        let mut stream = || (0..self.queries_per_stream).map(|_| queries.draw()).collect();
        (0..self.streams).map(|_| Stream::once(stream())).collect()
    }
}
