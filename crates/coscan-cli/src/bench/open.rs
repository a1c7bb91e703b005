//! `coscan bench open`: queries that arrive at random times.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use coscan_bench::engines::EngineKind;
use coscan_bench::experiment::Experiment;
use coscan_bench::metrics::write_json;
use coscan_bench::open::Rates;
use coscan_bench::report::open as report;

use super::drawn_queries::DrawnQueries;
use super::tpch::check;
use super::{DEFAULT_SEED, EngineArguments, write};
use crate::Failure;
use crate::compare::{prepare, spinner};

/// Queries that arrive at random times, whether or not earlier queries have finished: how many a second an engine can answer before they pile up.
///
/// Arrivals are a Poisson process, at the same times for every engine. Times count from the moment at which a query was due to
/// arrive. An answer is late after five times the average time that the queries take alone on plain DataFusion. Shows the
/// times at each rate, and the highest of the rates at which 95 % of the answers are not late.
#[derive(Debug, Args)]
#[command(
    mut_arg("engines", |engines| engines.default_value("datafusion,relevance,coscan")),
    after_help = "\
Examples:
  coscan bench open --table lineitem=lineitem.parquet --bandwidth 200MB
  coscan bench open --table lineitem=lineitem.parquet --bandwidth 200MB --loads 1,2,4,8 --constants distinct
                                          beyond what the first engine answers, without equal computations
  coscan bench open --table lineitem=lineitem.parquet --warm --rates 2,5,10 --queries 200
                                          queries a second, with all data in memory"
)]
pub(super) struct Open {
    #[command(flatten)]
    common: EngineArguments,
    /// Queries in each run
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = at_least_one())]
    queries: usize,
    /// Rates of arrival, one run for each, as multiples of the queries a second that the first engine answers in a closed
    /// loop, which is measured first
    #[arg(long, default_value = "0.5,0.8,1", value_delimiter = ',', value_name = "N", value_parser = parse_rate)]
    loads: Vec<f64>,
    /// Clients of the closed loop; each sends its next query when it has the answer to the last one
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = at_least_one())]
    clients: usize,
    /// Rates of arrival in queries per second, instead of loads
    #[arg(long, value_delimiter = ',', value_name = "N", conflicts_with_all = ["loads", "clients"], value_parser = parse_rate)]
    rates: Vec<f64>,
    #[command(flatten)]
    drawn: DrawnQueries,
    /// The seed of queries and arrivals
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Write the reports as JSON, one object per engine
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Open {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let bar = spinner();
        let (prepared, standalone) = prepare(self.experiment(), &bar).await?;
        let rates = match self.rates.is_empty() {
            true => Rates::Loads { loads: self.loads.clone(), clients: self.clients },
            false => Rates::PerSecond(self.rates.clone()),
        };
        let on_run = |engine: EngineKind, per_s: Option<f64>| {
            bar.set_message(match per_s {
                Some(per_s) => format!("{per_s:.2} queries a second on {engine}"),
                None => format!("{} clients in a closed loop on {engine}", self.clients),
            });
        };
        let run = prepared.open(&self.common.engines, &rates, &standalone, &on_run).await?;
        bar.finish_and_clear();
        println!("{}", report::table(&run));
        write(&self.json, |path| write_json(path, &run.compared.reports))?;
        check(&run.compared.differences)
    }

    fn experiment(&self) -> Experiment {
        let group = self.drawn.group(self.queries, 1);
        let (constants, seed, stagger) = (self.drawn.constants, self.seed, Some(Duration::ZERO));
        Experiment { constants, seed, stagger, ..self.common.experiment(vec![group]) }
    }
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// A rate above zero, or a multiple of one.
fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.trim().parse().ok();
    let rate = rate.filter(|rate| rate.is_finite() && *rate >= 0.001);
    rate.ok_or_else(|| format!("{text:?} is not usable; give numbers from 0.001, such as 0.5,1,2"))
}
