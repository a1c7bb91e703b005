//! The refresh functions of TPC-H beside the streams of its throughput test.
//!
//! RF1 inserts orders with their lines, RF2 deletes as many others, each in one transaction, one pair of them for each stream,
//! one pair after the other. New orders are copies of old ones under keys that TPC-H leaves free.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::SessionContext;
use futures::future::try_join_all;

use crate::runner::EngineError;
use crate::throughput::{ThroughputQuery, draw};
use crate::tpch::Parameters;
use crate::updates::report::RefreshReport;
use crate::updates::{Opened, Updates, execute};
use crate::workload::StreamQuery;

/// The streams of queries, as many as TPC-H asks for at scale 1.
const STREAMS: usize = 2;

/// The seed of the queries' parameters and orders.
const SEED: u64 = 1;

/// The range of keys of a refresh function at scale 1: about 1,500 orders, since TPC-H uses eight of each 32 keys.
const KEYS_AT_SCALE_1: f64 = 6000.0;

/// The tables that are refreshed, with the number of the order.
const REFRESHED: [(&str, &str); 2] = [("orders", "o_orderkey"), ("lineitem", "l_orderkey")];

/// The first free key after a used one.
const FREE_KEYS: u64 = 8;

/// Counts the orders without lines, and the lines without an order. In TPC-H there are none.
const UNMATCHED: &str = "SELECT count(*) FROM orders FULL JOIN (SELECT DISTINCT l_orderkey FROM lineitem) AS l \
                         ON o_orderkey = l_orderkey WHERE o_orderkey IS NULL OR l_orderkey IS NULL";

/// Loads the tables of TPC-H, and runs the streams at rest and beside the refresh functions, each on a database that was just
/// opened.
pub(super) async fn measure(
    updates: &Updates,
    on_step: &dyn Fn(&str),
) -> Result<RefreshReport, EngineError> {
    let open = || Opened::new(&updates.directory, updates.memory_bytes, None);
    on_step("loading TPC-H");
    let opened = open().await?;
    for (name, path) in &updates.tables {
        opened.run(&format!("CREATE TABLE {name} AS SELECT * FROM '{}'", path.display())).await?;
    }
    drop(opened);
    on_step("TPC-H at rest");
    let opened = open().await?;
    let at_rest_s = streams(updates, &opened).await?;
    drop(opened);
    on_step("TPC-H beside refresh functions");
    let opened = Arc::new(open().await?);
    let refreshing = SpawnedTask::spawn(refresh(Arc::clone(&opened), updates.scale_factor));
    let beside_s = streams(updates, &opened).await?;
    let Refreshed { insert_s, delete_s, inserted, deleted } = refreshing.join().await??;
    match count(&opened.run(UNMATCHED).await?)? {
        0 => {}
        unmatched => {
            return Err(format!("{unmatched} orders or lines lack their counterpart").into());
        }
    }
    let (streams, pairs) = (STREAMS, STREAMS as f64);
    Ok(RefreshReport {
        streams,
        at_rest_s,
        beside_s,
        insert_s: insert_s / pairs,
        delete_s: delete_s / pairs,
        inserted_rows: inserted,
        deleted_rows: deleted,
    })
}

/// Runs all streams. Returns the time in seconds.
async fn streams(updates: &Updates, opened: &Opened) -> Result<f64, EngineError> {
    let queries = draw(&mut Parameters::new(SEED, updates.scale_factor), STREAMS);
    let start = Instant::now();
    let streams = queries.into_iter().map(|queries| {
        let context = opened.session();
        let running = SpawnedTask::spawn(async move { stream(&context?, &queries).await });
        async { running.join().await? }
    });
    try_join_all(streams).await?;
    Ok(start.elapsed().as_secs_f64())
}

async fn stream(context: &SessionContext, queries: &[ThroughputQuery]) -> Result<(), EngineError> {
    for query in queries {
        let sql = query.sql("");
        execute(context, &sql).await.map_err(|error| format!("{}: {error}", query.label()))?;
    }
    Ok(())
}

#[derive(Default)]
struct Refreshed {
    insert_s: f64,
    delete_s: f64,
    inserted: u64,
    deleted: u64,
}

/// Runs the pairs of refresh functions.
async fn refresh(opened: Arc<Opened>, scale_factor: f64) -> Result<Refreshed, EngineError> {
    let context = opened.session()?;
    let width = ((KEYS_AT_SCALE_1 * scale_factor) as u64).max(32) / 32 * 32;
    let mut refreshed = Refreshed::default();
    for pair in 0..STREAMS as u64 {
        let (copied, deleted) = (2 * pair * width, (2 * pair + 1) * width);
        let keys = |first: u64| format!("BETWEEN {first} AND {}", first + width - 1);
        let start = Instant::now();
        execute(&context, "BEGIN").await?;
        for (table, key) in REFRESHED {
            let columns = context.table(table).await?;
            let values = columns.schema().fields().iter().map(|field| match field.name() == key {
                true => format!("{key} + {FREE_KEYS}"),
                false => field.name().clone(),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            let old = format!("{table} WHERE {key} {}", keys(copied));
            let insert = format!("INSERT INTO {table} SELECT {values} FROM {old}");
            refreshed.inserted += count(&execute(&context, &insert).await?)?;
        }
        execute(&context, "COMMIT").await?;
        refreshed.insert_s += start.elapsed().as_secs_f64();
        let start = Instant::now();
        execute(&context, "BEGIN").await?;
        for (table, key) in REFRESHED {
            let delete = format!("DELETE FROM {table} WHERE {key} {}", keys(deleted));
            refreshed.deleted += count(&execute(&context, &delete).await?)?;
        }
        execute(&context, "COMMIT").await?;
        refreshed.delete_s += start.elapsed().as_secs_f64();
    }
    Ok(refreshed)
}

/// The number that a statement returns.
fn count(batches: &[RecordBatch]) -> Result<u64, EngineError> {
    let batch = batches.first().ok_or("a statement returned nothing")?;
    Ok(array_value_to_string(batch.column(0), 0)?.parse()?)
}
