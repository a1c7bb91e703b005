//! Many clients of one server at once, with and without sharing:
//!
//! ```console
//! cargo bench -p coscan-server --bench clients -- --table lineitem.parquet --bandwidth 200MB
//! ```
//!
//! Each client runs TPC-H Q6 and Q1 over parts of lineitem, one query after another, over a connection of its own. Both
//! servers read through the same kind of device and must give the same answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use coscan_bench::clients::Clients;
use coscan_bench::engines::{Device, Source};
use coscan_bench::experiment::{Experiment, PoolSize, Prepared};
use coscan_bench::metrics::{EngineReport, Standalone, write_json};
use coscan_bench::runner::{Engine, EngineError, Run, run_streams, time_query};
use coscan_bench::workload::{ConstantChoice, Mix, Percent, StreamGroup, standalone_queries};
use coscan_runtime::units::parse_bytes;
use coscan_runtime::{BufferManager, Options};
use coscan_server::Server;
use coscan_server::config::{Config, Limits, Listen};
use coscan_storage::stores::{LimitedStore, Limits as DeviceLimits, MeteredStore, StoreMetrics};
use coscan_storage::table::FileOptions;

const TABLE: &str = "lineitem";

/// Many clients of one server at once, with and without sharing.
#[derive(Debug, Parser)]
struct Arguments {
    /// TPC-H lineitem: a file, directory, pattern or URL
    #[arg(long)]
    table: Option<String>,
    /// Clients, each with a connection
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Queries of each client, one after another
    #[arg(long, default_value_t = 8)]
    queries: usize,
    /// Kinds of queries, each letter equally likely: F is TPC-H Q6 (fast), S is Q1 (slow)
    #[arg(long, default_value = "FS")]
    mix: Mix,
    /// Percentages of the table that queries read, each equally likely
    #[arg(long, default_value = "1,10,50,100", value_delimiter = ',')]
    ranges: Vec<Percent>,
    /// Bandwidth of the device, in bytes per second [default: no limit]
    #[arg(long, value_parser = parse_bytes)]
    bandwidth: Option<u64>,
    /// The pool [default: a quarter of the bytes that the queries touch]
    #[arg(long, value_parser = parse_bytes)]
    pool_bytes: Option<u64>,
    /// Time between the starts of two clients, such as 100ms
    #[arg(long, value_parser = humantime::parse_duration, default_value = "0s")]
    stagger: Duration,
    /// Leave out the server without sharing, and with it the comparison
    #[arg(long)]
    only_sharing: bool,
    /// The seed of the queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write both reports as JSON
    #[arg(long)]
    json: Option<std::path::PathBuf>,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<(), EngineError> {
    let arguments = Arguments::parse();
    let Some(location) = &arguments.table else {
        println!("nothing to do: name the table with --table lineitem.parquet");
        return Ok(());
    };
    let prepared = arguments.experiment(location).prepare().await?;
    println!(
        "{} clients, {} queries each, on {:.2} GB; pool {:.2} GB",
        arguments.clients,
        arguments.queries,
        prepared.table_bytes as f64 / 1e9,
        prepared.pool_bytes() as f64 / 1e9
    );
    let plain = match arguments.only_sharing {
        true => None,
        false => Some(arguments.run(&prepared, location, "without sharing").await?.0),
    };
    let (shared, standalone) = arguments.run(&prepared, location, "with sharing").await?;
    let answers = plain.as_ref().map_or(Ok(()), |plain| shared.compare(plain));
    let mut reports = Vec::new();
    for (run, is_right) in [(plain.as_ref(), true), (Some(&shared), answers.is_ok())] {
        reports.extend(run.map(|run| run.report(&standalone, is_right)).transpose()?);
    }
    show(&reports);
    if let Some(path) = &arguments.json {
        write_json(path, &reports)?;
    }
    Ok(answers?)
}

impl Arguments {
    fn experiment(&self, location: &str) -> Experiment {
        let group =
            StreamGroup::once(self.mix.clone(), self.ranges.clone(), self.clients, self.queries);
        Experiment {
            source: Source { location: location.to_owned(), device: Device::default() },
            table: TABLE.to_owned(),
            orders: None,
            constants: ConstantChoice::Equal,
            groups: vec![group],
            seed: self.seed,
            stagger: Some(self.stagger),
            pool: self.pool_bytes.map_or(PoolSize::PartOfTouched(0.25), PoolSize::Bytes),
            decode_bytes: 256 << 20,
            operator_bytes: 0,
            table_options: FileOptions::default(),
            warm: false,
        }
    }

    /// One server and its clients: all streams, then the time that each kind of query takes alone.
    async fn run(
        &self,
        prepared: &Prepared,
        location: &str,
        name: &str,
    ) -> Result<(Run, Standalone), EngineError> {
        let options =
            Options::with_pool_bytes(prepared.pool_bytes(), prepared.experiment.decode_bytes);
        let manager = BufferManager::new(options)?;
        let listing = prepared.experiment.source.list().await?;
        let limits = DeviceLimits { bytes_per_second: self.bandwidth, latency: Duration::ZERO };
        let metrics = StoreMetrics::new();
        let device = LimitedStore::new(listing.store, limits);
        let device = MeteredStore::new(Arc::new(device), Arc::clone(&metrics));
        manager.stores().register(&listing.store_url, Arc::new(device));
        let config = Config {
            tables: BTreeMap::from([(TABLE.to_owned(), location.to_owned().into())]),
            listen: Listen { postgres: Some("127.0.0.1:0".parse()?), ..Listen::default() },
            // All at once, as the engines of `coscan bench streams`.
            limits: Limits { queries_running: self.clients, ..Limits::default() },
            insecure: true,
            ..Config::default()
        };
        let server = Server::start_on(&manager, &config).await?;
        let sharing = if name.starts_with("without") { "off" } else { "on" };
        // Results that are shared would make repeated queries cost nothing.
        let settings = format!("SET coscan.sharing = {sharing}; SET coscan.share_results = off");
        let at = server.postgres.ok_or("the server listens for PostgreSQL clients")?;
        let clients = Clients::connect(name, at, metrics, self.clients, &settings).await?;
        let engine: Arc<dyn Engine> = Arc::new(clients);
        let run = run_streams(Arc::clone(&engine), &prepared.streams, TABLE).await?;
        let mut standalone = Standalone::new();
        for query in standalone_queries(&prepared.streams) {
            manager.evict_unneeded();
            let time = time_query(engine.as_ref(), &query, TABLE).await?.as_secs_f64();
            standalone.insert((query.kind, query.percent), time);
        }
        drop(engine);
        server.stop(Duration::from_secs(5), std::future::pending()).await;
        Ok((run, standalone))
    }
}

fn show(reports: &[EngineReport]) {
    println!("                 total s    GB read   CPU s   answers");
    for report in reports {
        println!(
            "{:15}  {:7.1}  {:9.2}  {:6.1}   {}",
            report.engine,
            report.total_s,
            report.bytes_read as f64 / 1e9,
            report.cpu_s,
            if report.answers_equal { "equal" } else { "DIFFER" }
        );
    }
    if let [plain, shared] = reports {
        println!(
            "{:15}  {:7.2}  {:9.2}  {:6.2}",
            "ratio",
            shared.total_s / plain.total_s,
            shared.bytes_read as f64 / plain.bytes_read.max(1) as f64,
            shared.cpu_s / plain.cpu_s
        );
    }
    println!(
        "\nlatency as a multiple of the query alone, with sharing: average, 99th percentile, alone s"
    );
    for ((kind, percent), of_kind) in reports.last().into_iter().flat_map(EngineReport::kinds) {
        println!(
            "{}-{percent:3}  {:6.2}  {:6.2}  {:6.2}",
            kind.name(),
            of_kind.normalized_latency_avg,
            of_kind.normalized_latency_p99,
            of_kind.standalone_s
        );
    }
}
