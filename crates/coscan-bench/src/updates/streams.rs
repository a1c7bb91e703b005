//! Streams of queries while their table is changed, appended to and checkpointed, beside the same streams at rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::try_join_all;

use crate::runner::EngineError;
use crate::updates::report::StreamsReport;
use crate::updates::{Opened, Updates, execute};

/// Rows of each update. One of half of them gains what one of the other half loses.
const UPDATED_ROWS: u64 = 100;

/// Updates in a second: 1,000 rows.
const UPDATES_PER_SECOND: u32 = 10;

/// Rows of each file that is appended, once a second.
const APPENDED_ROWS: u64 = 70_000;

/// Checkpoints beside the streams.
const CHECKPOINTS: u32 = 2;

/// Runs the streams at rest and beside changes, each on a database that was just opened.
pub(super) async fn measure(updates: &Updates) -> Result<StreamsReport, EngineError> {
    let open = || Opened::new(&updates.directory, updates.memory_bytes, updates.bandwidth);
    let opened = open().await?;
    let (rows, quantity) = sums(&opened).await?;
    let at_rest = run(updates, &opened, rows, &quantity).await?;
    drop(opened);
    let opened = Arc::new(open().await?);
    let is_done = Arc::new(AtomicBool::new(false));
    let (updated, appended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let changes = [
        tokio::spawn(update(Arc::clone(&opened), rows, Arc::clone(&updated), Arc::clone(&is_done))),
        tokio::spawn(append(Arc::clone(&opened), Arc::clone(&appended), Arc::clone(&is_done))),
        tokio::spawn(checkpoint(Arc::clone(&opened), at_rest.seconds, Arc::clone(&is_done))),
    ];
    let beside = run(updates, &opened, rows, &quantity).await?;
    is_done.store(true, Ordering::Relaxed);
    let mut checkpoints = 0;
    for change in changes {
        checkpoints = change.await??;
    }
    Ok(StreamsReport {
        streams: updates.streams,
        queries: updates.queries,
        at_rest_s: at_rest.seconds,
        beside_s: beside.seconds,
        at_rest_bytes: at_rest.bytes,
        beside_bytes: beside.bytes,
        updated_rows: updated.load(Ordering::Relaxed),
        appended_rows: appended.load(Ordering::Relaxed),
        checkpoints,
    })
}

/// The number of rows, and the sum that no change alters.
async fn sums(opened: &Opened) -> Result<(u64, String), EngineError> {
    let answer = opened.run("SELECT count(*), sum(l_quantity) FROM changed").await?;
    let text =
        |column: usize| arrow::util::display::array_value_to_string(answer[0].column(column), 0);
    Ok((text(0)?.parse()?, text(1)?))
}

struct Ran {
    seconds: f64,
    bytes: u64,
}

/// Runs the streams, and checks that each answer is that of a snapshot: updates keep the sum, files are there as a whole.
async fn run(
    updates: &Updates,
    opened: &Opened,
    rows: u64,
    quantity: &str,
) -> Result<Ran, EngineError> {
    let before = opened.manager.report().bytes_read;
    let start = Instant::now();
    let streams = (0..updates.streams).map(|stream| {
        let (context, queries) = (opened.session(), updates.queries);
        let quantity = quantity.to_owned();
        let running = tokio::spawn(async move {
            let context = context?;
            for query in 0..queries {
                if (stream + query) % 4 == 3 {
                    let sql = "SELECT l_shipmode, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_tax) \
                               FROM changed GROUP BY l_shipmode";
                    execute(&context, sql).await?;
                    continue;
                }
                let sql = "SELECT count(*), sum(l_quantity), sum(l_extendedprice), max(l_shipdate) FROM changed";
                let answer = execute(&context, sql).await?;
                let text = |column: usize| {
                    arrow::util::display::array_value_to_string(answer[0].column(column), 0)
                };
                let (count, sum) = (text(0)?.parse::<u64>()?, text(1)?);
                if sum != quantity || !(count - rows).is_multiple_of(APPENDED_ROWS) {
                    let what = format!("a query saw {count} rows with {sum}, instead of {rows} with {quantity}");
                    return Err(what.into());
                }
            }
            Ok::<(), EngineError>(())
        });
        async { running.await? }
    });
    try_join_all(streams).await?;
    let bytes = opened.manager.report().bytes_read - before;
    Ok(Ran { seconds: start.elapsed().as_secs_f64(), bytes })
}

/// Changes rows until the streams have ended.
async fn update(
    opened: Arc<Opened>,
    rows: u64,
    updated: Arc<AtomicU64>,
    is_done: Arc<AtomicBool>,
) -> Result<u32, EngineError> {
    let context = opened.session()?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / UPDATES_PER_SECOND);
    let mut first = 1;
    while !is_done.load(Ordering::Relaxed) {
        ticks.tick().await;
        // Line 1 of each order gains what line 2 loses, if there is one.
        let sql = format!(
            "UPDATE changed SET l_quantity = l_quantity + CASE WHEN l_linenumber = 1 THEN 1 ELSE -1 END \
             WHERE l_orderkey BETWEEN {first} AND {} AND l_linenumber <= 2 AND l_orderkey IN \
             (SELECT l_orderkey FROM changed WHERE l_linenumber = 2 AND l_orderkey BETWEEN {first} AND {})",
            first + 2 * UPDATED_ROWS,
            first + 2 * UPDATED_ROWS
        );
        let changed = execute(&context, &sql).await?;
        let count = arrow::util::display::array_value_to_string(changed[0].column(0), 0)?;
        updated.fetch_add(count.parse()?, Ordering::Relaxed);
        first = (first + 104_729) % (rows / 2).max(1) + 1;
    }
    Ok(0)
}

/// Appends a file each second until the streams have ended.
async fn append(
    opened: Arc<Opened>,
    appended: Arc<AtomicU64>,
    is_done: Arc<AtomicBool>,
) -> Result<u32, EngineError> {
    let context = opened.session()?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while !is_done.load(Ordering::Relaxed) {
        ticks.tick().await;
        let sql = format!(
            "INSERT INTO changed SELECT l_orderkey, l_partkey, l_suppkey, l_linenumber, 0 AS l_quantity, l_extendedprice, \
             l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, \
             l_shipmode, l_comment FROM rest LIMIT {APPENDED_ROWS}"
        );
        execute(&context, &sql).await?;
        appended.fetch_add(APPENDED_ROWS, Ordering::Relaxed);
    }
    Ok(0)
}

/// Checkpoints the table some times while the streams run.
async fn checkpoint(
    opened: Arc<Opened>,
    seconds: f64,
    is_done: Arc<AtomicBool>,
) -> Result<u32, EngineError> {
    let mut done = 0;
    for _ in 0..CHECKPOINTS {
        let pause = Duration::from_secs_f64(seconds / f64::from(CHECKPOINTS + 1));
        tokio::time::sleep(pause).await;
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        opened.checkpoint("changed").await?;
        done += 1;
    }
    Ok(done)
}
