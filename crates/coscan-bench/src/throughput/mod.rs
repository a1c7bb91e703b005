//! The throughput test of TPC-H, with streams that run at the same time, each with all 22 queries in an order of its
//! own.
//!
//! Orders and parameters are drawn from a seed, and are the same for every engine. Engines run one after another, each
//! starting with nothing in memory. Unlike in TPC-H, no rows change meanwhile.

mod metrics;
mod sharing_potential;

use crate::engines::EngineKind;
use crate::metrics::Compared;
use crate::runner::{EngineError, Run};
use crate::tpch::Parameters;
use crate::tpch::queries::TEMPLATES;
use crate::tpch::setup::Setup;
use crate::workload::{Stream, StreamQuery};
use sharing_potential::run_watched;

pub use metrics::{ThroughputQueryReport, ThroughputReport};
pub use sharing_potential::SharingMoment;

/// The experiment: workload, data and device.
#[derive(Debug, Clone)]
pub struct Throughput {
    /// The tables and the device.
    pub setup: Setup,
    /// The number of simultaneous streams.
    pub streams: usize,
    /// The seed of orders and parameters.
    pub seed: u64,
}

/// A query with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughputQuery {
    /// The number of the query, from 1 to 22.
    pub number: u8,
    /// The text of the query.
    pub sql: String,
    /// The columns that sort its rows.
    pub order_columns: Vec<&'static str>,
}

impl StreamQuery for ThroughputQuery {
    fn label(&self) -> String {
        format!("Q{}", self.number)
    }

    fn sql(&self, _: &str) -> String {
        self.sql.clone()
    }

    fn order_columns(&self) -> &[&'static str] {
        &self.order_columns
    }
}

impl Throughput {
    /// Runs all streams on each engine in turn. `on_answer` gets the engine and the number of its answered queries,
    /// starting with 0.
    ///
    /// # Errors
    /// If a table cannot be opened or a query fails.
    pub async fn run(
        &self,
        kinds: &[EngineKind],
        on_answer: &dyn Fn(EngineKind, usize),
    ) -> Result<Compared<ThroughputReport>, EngineError> {
        let streams = draw(&mut self.parameters(), self.streams);
        let streams: Vec<_> = streams.into_iter().map(Stream::once).collect();
        let mut parameters = self.parameters();
        let one_of_each = TEMPLATES.map(|template| template.sql(&parameters.draw(&template)));
        let mut first: Option<Run<ThroughputQuery>> = None;
        let (mut reports, mut differences) = (Vec::new(), Vec::new());
        for &kind in kinds {
            on_answer(kind, 0);
            let engine = self.setup.engine(kind, &one_of_each).await?;
            let on_answer = |answered| on_answer(kind, answered);
            let (run, sharing) = run_watched(&engine, &streams, &on_answer).await?;
            let difference = first.as_ref().and_then(|first| run.compare(first).err());
            let (scale_factor, is_equal) = (self.setup.scale_factor, difference.is_none());
            reports.push(ThroughputReport::new(&run, sharing, scale_factor, is_equal));
            differences.extend(difference.map(|difference| format!("{kind}: {difference}")));
            first.get_or_insert(run);
        }
        Ok(Compared { reports, differences })
    }

    fn parameters(&self) -> Parameters {
        Parameters::new(self.seed, self.setup.scale_factor)
    }
}

/// The queries of each stream.
pub(crate) fn draw(parameters: &mut Parameters, streams: usize) -> Vec<Vec<ThroughputQuery>> {
    let mut stream = || {
        let templates = parameters.shuffled(&TEMPLATES);
        let queries = templates.into_iter().map(|template| ThroughputQuery {
            number: template.number,
            sql: template.sql(&parameters.draw(&template)),
            order_columns: template.order_columns(),
        });
        queries.collect()
    };
    (0..streams).map(|_| stream()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_all_queries_in_an_order_of_its_own() {
        let draw = |seed| draw(&mut Parameters::new(seed, 1.0), 3);
        let streams = draw(7);
        assert_eq!(streams, draw(7));
        assert_ne!(streams, draw(8));
        let orders: Vec<Vec<u8>> = streams
            .iter()
            .map(|stream| stream.iter().map(|query| query.number).collect())
            .collect();
        for (index, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (1..=22).collect::<Vec<u8>>());
            assert!(!orders[..index].contains(order), "{orders:?}");
        }
    }
}
