//! The throughput test of TPC-H, with streams that run at the same time, each with all 22 queries in an order of its
//! own.
//!
//! Orders and parameters are drawn from a seed, and are the same for every engine. Engines run one after another, each
//! starting with nothing in memory. Unlike in TPC-H, no rows change meanwhile.

mod report;
mod sharing;
mod streams;

use std::path::PathBuf;
use std::sync::Arc;

use coscan_runtime::Options;
use coscan_storage::table::FileOptions;

use crate::engines::{Device, EngineKind, SqlEngine, Tables};
use crate::runner::{Engine, EngineError};
use crate::tpch::Parameters;
use crate::tpch::queries::TEMPLATES;
use report::compare;
use streams::{Run, run_streams};

pub use report::{ThroughputQueryReport, ThroughputReport};
pub use sharing::SharingMoment;

/// The experiment: workload, data and device.
#[derive(Debug, Clone)]
pub struct Throughput {
    /// The name and the file of each table.
    pub tables: Vec<(&'static str, PathBuf)>,
    /// The TPC-H scale factor of all tables.
    pub scale_factor: f64,
    /// The device that they are read from.
    pub device: Device,
    /// coscan's pool, in bytes.
    pub pool_bytes: u64,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// coscan's memory for joins, aggregates and sorts, in bytes, in addition to both. Plain DataFusion has no limit.
    pub operator_bytes: u64,
    /// The options of coscan's tables: the size of chunks and the layout of pages.
    pub table_options: FileOptions,
    /// Whether every query runs once on each engine before it is measured.
    pub warm: bool,
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

/// The reports of all engines, and the differences between answers.
#[derive(Debug)]
pub struct ThroughputRun {
    /// One report per engine, in the requested order.
    pub reports: Vec<ThroughputReport>,
    /// The first difference of each engine from the first one.
    pub differences: Vec<String>,
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
    ) -> Result<ThroughputRun, EngineError> {
        let streams = self.draw();
        let mut first: Option<Run> = None;
        let (mut reports, mut differences) = (Vec::new(), Vec::new());
        for &kind in kinds {
            on_answer(kind, 0);
            let engine: Arc<dyn Engine> = Arc::new(self.engine(kind).await?);
            let run = run_streams(&engine, &streams, &|answers| on_answer(kind, answers)).await?;
            let difference = first.as_ref().and_then(|first| compare(&run, first).err());
            reports.push(run.report(engine.name(), self.scale_factor, difference.is_none()));
            differences.extend(difference.map(|difference| format!("{kind}: {difference}")));
            first.get_or_insert(run);
        }
        Ok(ThroughputRun { reports, differences })
    }

    /// The queries of each stream.
    pub fn draw(&self) -> Vec<Vec<ThroughputQuery>> {
        let mut parameters = Parameters::new(self.seed, self.scale_factor);
        let mut stream = || {
            let templates = parameters.shuffled(&TEMPLATES);
            let queries = templates.into_iter().map(|template| ThroughputQuery {
                number: template.number,
                sql: template.sql(&parameters.draw(&template)),
                order_columns: template.order_columns(),
            });
            queries.collect()
        };
        (0..self.streams).map(|_| stream()).collect()
    }

    async fn engine(&self, kind: EngineKind) -> Result<SqlEngine, EngineError> {
        let usual = Options::with_pool_bytes(self.pool_bytes, self.decode_bytes);
        let memory_bytes = usual.memory_bytes.saturating_add(self.operator_bytes);
        let (device, table_options) = (&self.device, self.table_options);
        let tables = Tables { files: &self.tables, device, options: table_options };
        let engine = tables.engine(kind, Options { memory_bytes, ..usual }).await?;
        if self.warm {
            let mut parameters = Parameters::new(self.seed, self.scale_factor);
            for template in TEMPLATES {
                engine.query(&template.sql(&parameters.draw(&template))).await?;
            }
        }
        Ok(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throughput(streams: usize, seed: u64) -> Throughput {
        Throughput {
            tables: Vec::new(),
            scale_factor: 1.0,
            device: Device::default(),
            pool_bytes: 1,
            decode_bytes: 1,
            operator_bytes: 0,
            table_options: FileOptions::default(),
            warm: false,
            streams,
            seed,
        }
    }

    #[test]
    fn each_stream_has_all_queries_in_an_order_of_its_own() {
        let streams = throughput(3, 7).draw();
        assert_eq!(streams, throughput(3, 7).draw());
        assert_ne!(streams, throughput(3, 8).draw());
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
