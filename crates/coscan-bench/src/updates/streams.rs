//! Streams of queries while their table is changed, appended to and checkpointed, beside the same streams at rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::util::display::array_value_to_string;
use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::SessionContext;
use futures::future::try_join_all;

use crate::runner::EngineError;
use crate::updates::report::StreamsReport;
use crate::updates::{Opened, Updates, execute};

/// Rows of each update: half gain what the other half lose.
const UPDATED_ROWS: u64 = 100;

/// Updates in a second: 1,000 rows.
const UPDATES_PER_SECOND: u32 = 10;

/// Rows of each file that is appended, once a second, if the table at rest has as many.
const APPENDED_ROWS: u64 = 70_000;

/// How often it is asked whether a checkpoint is due.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the streams at rest and beside changes, each on a database that was just opened.
pub(super) async fn measure(updates: &Updates) -> Result<StreamsReport, EngineError> {
    let open = || Opened::new(&updates.directory, updates.memory_bytes, updates.bandwidth);
    let opened = open().await?;
    let expected = Expected::of(&opened).await?;
    let at_rest = run(updates, &opened, &expected).await?;
    drop(opened);
    let opened = Arc::new(open().await?);
    let is_done = Arc::new(AtomicBool::new(false));
    let (updated, appended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let changes = [
        SpawnedTask::spawn(update(
            Arc::clone(&opened),
            expected.rows,
            Arc::clone(&updated),
            Arc::clone(&is_done),
        )),
        SpawnedTask::spawn(append(
            with_new_rows(&opened, expected.appended_rows).await?,
            expected.appended_rows,
            Arc::clone(&appended),
            Arc::clone(&is_done),
        )),
        SpawnedTask::spawn(checkpoint(Arc::clone(&opened), Arc::clone(&is_done))),
    ];
    let beside = run(updates, &opened, &expected).await?;
    is_done.store(true, Ordering::Relaxed);
    let mut checkpoints = 0;
    for change in changes {
        checkpoints = change.join().await??;
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

/// What each snapshot has.
#[derive(Clone)]
struct Expected {
    /// The rows at rest.
    rows: u64,
    /// The sum of a column, which no change alters.
    quantity: String,
    /// The rows of each file that is appended.
    appended_rows: u64,
}

impl Expected {
    async fn of(opened: &Opened) -> Result<Self, EngineError> {
        let sql =
            "SELECT count(*), sum(l_quantity), (SELECT count(*) FROM rest) AS of_rest FROM changed";
        let answer = opened.run(sql).await?;
        let text = |column: usize| array_value_to_string(answer[0].column(column), 0);
        let appended_rows = text(2)?.parse::<u64>()?.min(APPENDED_ROWS);
        Ok(Self { rows: text(0)?.parse()?, quantity: text(1)?, appended_rows })
    }
}

struct Ran {
    seconds: f64,
    bytes: u64,
}

/// Runs the streams, and checks that each answer is that of a snapshot: updates keep the sum, files are there as a whole.
async fn run(updates: &Updates, opened: &Opened, expected: &Expected) -> Result<Ran, EngineError> {
    let before = opened.manager.report().bytes_read;
    let start = Instant::now();
    let streams = (0..updates.streams).map(|stream| {
        let (context, queries) = (opened.session(), updates.queries);
        let Expected { rows, quantity, appended_rows } = expected.clone();
        let running = SpawnedTask::spawn(async move {
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
                let text = |column: usize| array_value_to_string(answer[0].column(column), 0);
                let (count, sum) = (text(0)?.parse::<u64>()?, text(1)?);
                let appended = count.checked_sub(rows);
                let is_whole = appended.is_some_and(|rows| rows.is_multiple_of(appended_rows));
                if sum != quantity || !is_whole {
                    let what = format!("a query saw {count} rows with {sum}, instead of {rows} with {quantity}");
                    return Err(what.into());
                }
            }
            Ok::<(), EngineError>(())
        });
        async { running.join().await? }
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
        let count = array_value_to_string(changed[0].column(0), 0)?;
        updated.fetch_add(count.parse()?, Ordering::Relaxed);
        first = (first + 104_729) % (rows / 2).max(1) + 1;
    }
    Ok(0)
}

/// A session with rows to append as `new_rows`, in memory: they come from outside.
async fn with_new_rows(opened: &Opened, rows: u64) -> Result<SessionContext, EngineError> {
    let context = opened.session()?;
    let sql = format!(
        "SELECT l_orderkey, l_partkey, l_suppkey, l_linenumber, 0 AS l_quantity, l_extendedprice, l_discount, l_tax, \
         l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment \
         FROM rest LIMIT {rows}"
    );
    let new_rows = context.sql(&sql).await?.cache().await?.into_view();
    context.register_table("new_rows", new_rows)?;
    Ok(context)
}

/// Appends a file each second until the streams have ended.
async fn append(
    context: SessionContext,
    rows: u64,
    appended: Arc<AtomicU64>,
    is_done: Arc<AtomicBool>,
) -> Result<u32, EngineError> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while !is_done.load(Ordering::Relaxed) {
        ticks.tick().await;
        execute(&context, "INSERT INTO changed SELECT * FROM new_rows").await?;
        appended.fetch_add(rows, Ordering::Relaxed);
    }
    Ok(0)
}

/// Runs the checkpoints that become due while the streams run, as a server does. Returns how many wrote something.
async fn checkpoint(opened: Arc<Opened>, is_done: Arc<AtomicBool>) -> Result<u32, EngineError> {
    let mut done = 0;
    let mut ticks = tokio::time::interval(CHECKPOINT_INTERVAL);
    while !is_done.load(Ordering::Relaxed) {
        ticks.tick().await;
        let Some(table) = opened.database.table("changed")? else {
            return Err("the table is gone".into());
        };
        let counts = opened.database.checkpoint_due(&table).await?;
        done += u32::from(counts.files_written + counts.files_replaced > 0);
    }
    Ok(done)
}
