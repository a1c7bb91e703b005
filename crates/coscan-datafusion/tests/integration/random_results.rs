//! Random aggregations that run at once have the rows of plain DataFusion, or fail as there: of sessions with different
//! time zones, beside joins and top-k queries. A file is replaced between rounds, and some queries are given up.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use coscan_runtime::core::PolicyKind;
use coscan_testing::write_parquet;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use futures::future::join_all;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::results::{from_results_of, sharing};
use crate::support::{
    Seeded, assert_all_frees, create, manager, plain, plan, range_of, run, set_partitions, shared,
    write,
};

const ZONES: [&str; 2] = ["+00:00", "+05:30"];

/// The rounds after which a file is replaced.
const ROUNDS_PER_FILE: u64 = 10;

/// The queries that run at once.
const AT_ONCE: usize = 12;

/// Columns of all kinds, with NULLs, NaN, both zeros, decimals near overflow, texts and times. Column `row` has no NULLs.
fn varied(rows: usize, seed: u64) -> RecordBatch {
    let mut random = Seeded::new(seed);
    let shift = random.below(50) as usize;
    let mut nullable = |row: usize| !row.is_multiple_of(17) || random.below(2) == 0;
    let floats = [0.0, -0.0, f64::NAN, 1.5, -3.25, f64::INFINITY, 7.0];
    let number = |row: usize| ((row + shift) * 31 % 97) as i64;
    let time = |row: usize| 1_700_000_000_000_000 + number(row) * 3_600_000_000;
    let ints: Int64Array = (0..rows).map(|row| nullable(row).then(|| number(row))).collect();
    let float: Float64Array =
        (0..rows).map(|row| nullable(row).then(|| floats[row * 7 % floats.len()])).collect();
    let texts: StringArray = (0..rows)
        .map(|row| nullable(row).then(|| format!("a text of some length {}", row % 5)))
        .collect();
    // Short but for few.
    let key = |row: usize| {
        if row % 293 == 292 { "longer than others".to_owned() } else { format!("k{}", row % 4) }
    };
    let keys: StringArray = (0..rows).map(|row| nullable(row).then(|| key(row))).collect();
    let wide: Decimal128Array =
        (0..rows).map(|row| nullable(row).then(|| i128::from(number(row)) << (row % 60))).collect();
    let local: TimestampMicrosecondArray =
        (0..rows).map(|row| nullable(row).then(|| time(row))).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("row", Arc::new((0..rows as i64).collect::<Int64Array>()), false),
        ("n", Arc::new(ints), true),
        ("f", Arc::new(float), true),
        ("t", Arc::new(texts), true),
        ("k", Arc::new(keys), true),
        ("d", Arc::new(wide.with_precision_and_scale(30, 3).unwrap()), true),
        ("s", Arc::new(local.clone()), true),
        ("z", Arc::new(local.with_timezone("+00:00")), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Files of several sizes of chunks, one without statistics, and one without rows.
fn write_files(directory: &Path) {
    write(&directory.join("a.parquet"), &varied(700, 11), 100);
    write(&directory.join("single.parquet"), &varied(3, 12), 1);
    write(&directory.join("empty.parquet"), &varied(3, 12).slice(0, 0), 1);
    let without = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    write_parquet(&directory.join("unknown.parquet"), &varied(130, 13), without.build());
}

/// The file that is replaced again and again.
fn replace_file(directory: &Path, seed: u64) {
    let rows = 300 + seed as usize % 7 * 30;
    write(&directory.join("replaced.parquet"), &varied(rows, seed), 150);
}

fn one_of(random: &mut Seeded, texts: &[&str]) -> String {
    texts[random.below(texts.len() as u64) as usize].to_owned()
}

/// A random aggregation of few groups. Equal states of `random` give equal queries.
fn random_aggregation(random: &mut Seeded) -> String {
    let aggregates = [
        "count(*)",
        "count(n)",
        "sum(n)",
        "avg(n)",
        "min(t)",
        "max(t)",
        "sum(d)",
        "avg(d)",
        "min(f)",
        "max(f)",
        "min(row)",
        "sum(d * (1 - d))",
        "sum(row / n)",
        "count(*) FILTER (WHERE n > 40)",
        "bool_or(n = 5)",
        "min(upper(t))",
        "sum(CASE WHEN t LIKE '%3' THEN n ELSE -n END)",
        "sum(CAST(CASE WHEN n > 95 THEN t ELSE '5' END AS BIGINT))",
        "max(CAST(n AS VARCHAR))",
        "max(CAST(z AS VARCHAR))",
        "min(CAST(s AS TIMESTAMP WITH TIME ZONE))",
        "sum(date_part('hour', z))",
    ];
    let groups = [
        "t",
        "k",
        "k, n % 3",
        "t, k",
        "date_trunc('day', z), k",
        "n % 3",
        "f",
        "f > 1",
        "t IN ('x', 'a text of some length 2')",
        "n IS NULL",
        "date_trunc('day', z)",
        "date_part('hour', CAST(s AS TIMESTAMP WITH TIME ZONE)) > 12",
    ];
    let constant = random.below(4) * 250;
    let filters = [
        format!("row >= {constant}"),
        format!("row < {}", 1000 - constant),
        "n > 20".to_owned(),
        "n <> 0".to_owned(),
        "f < 3".to_owned(),
        "t IS NOT NULL".to_owned(),
        format!("n <> {}", random.below(2)),
        format!("row BETWEEN {constant} AND {}", constant + 300),
        "z >= '2023-11-15 12:00:00'".to_owned(),
    ];
    let chosen =
        (0..=random.below(3)).map(|at| format!("{} AS a{at}", one_of(random, &aggregates)));
    let chosen: Vec<_> = chosen.collect();
    let mut sql = format!("SELECT {}", chosen.join(", "));
    let group = (random.below(3) > 0).then(|| one_of(random, &groups));
    group.iter().for_each(|group| sql += &format!(", {group} AS g"));
    sql += " FROM t";
    let conditions: Vec<_> = (0..random.below(3))
        .map(|_| filters[random.below(filters.len() as u64) as usize].clone())
        .collect();
    if !conditions.is_empty() {
        sql += &format!(" WHERE {}", conditions.join(" AND "));
    }
    group.iter().for_each(|group| sql += &format!(" GROUP BY {group}"));
    sql
}

/// A top-k query, a join, or a query with a common subplan.
fn random_other(random: &mut Seeded) -> String {
    let constant = random.below(4) * 20;
    one_of(
        random,
        &[
            &format!("SELECT row, n FROM t ORDER BY n DESC NULLS LAST, row LIMIT {}", constant + 5),
            &format!(
                "SELECT count(*), sum(a.n), min(b.t) FROM t a JOIN t b ON a.row = b.row WHERE a.n > {constant}"
            ),
            "SELECT a.t, count(*), sum(b.c) FROM t a LEFT JOIN (SELECT n, count(*) AS c FROM t GROUP BY n) b \
             ON a.n = b.n GROUP BY a.t",
            &format!(
                "WITH g AS (SELECT n % 7 AS k, sum(d) AS s FROM t WHERE row >= {constant} GROUP BY n % 7) \
                 SELECT k, s FROM g WHERE s = (SELECT max(s) FROM g)"
            ),
        ],
    )
}

/// A session with coscan or without, in each time zone.
async fn sessions(
    directory: &Path,
    new: impl Fn() -> SessionContext,
) -> [SessionContext; ZONES.len()] {
    let sessions = ZONES.map(|_| new());
    for (context, zone) in sessions.iter().zip(ZONES) {
        run(context, &format!("SET datafusion.execution.time_zone = '{zone}'")).await;
        create(context, "t", directory).await;
    }
    sessions
}

fn sorted_text(batches: &[RecordBatch]) -> Vec<String> {
    let text = arrow::util::pretty::pretty_format_batches(batches).unwrap();
    let mut lines: Vec<_> = text.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The first batches of a query, and the chunks that it has taken from others.
async fn taken(
    context: SessionContext,
    sql: String,
    batches: usize,
) -> (Result<Vec<RecordBatch>>, usize) {
    let plan = plan(&context, &sql).await;
    let merged = CoalescePartitionsExec::new(Arc::clone(&plan));
    let rows = merged.execute(0, context.task_ctx()).unwrap().take(batches);
    let rows: Vec<_> = rows.collect().await;
    let from_results = sharing(&plan).iter().map(from_results_of).sum();
    (rows.into_iter().collect(), from_results)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_at_once_give_the_rows_of_the_engine() {
    let data = tempfile::tempdir().unwrap();
    write_files(data.path());
    replace_file(data.path(), 0);
    let manager = manager(PolicyKind::Relevance);
    let contexts = sessions(data.path(), || shared(&manager)).await;
    let mut engines = sessions(data.path(), plain).await;
    for context in &contexts {
        run(context, "SET coscan.refresh_interval = '0s'").await;
    }
    // A seed is for twelve queries.
    let (mut from_results, mut failed) = (0, 0);
    for seed in range_of("COSCAN_RESULT_SEEDS", 0..40) {
        let mut random = Seeded::new(seed);
        if seed > 0 && seed.is_multiple_of(ROUNDS_PER_FILE) {
            replace_file(data.path(), seed);
            engines = sessions(data.path(), plain).await;
        }
        for context in &contexts {
            set_partitions(context, 1 + random.below(4) as usize).await;
            let batch_rows = [8_192, 16][random.below(2) as usize];
            run(context, &format!("SET datafusion.execution.batch_size = {batch_rows}")).await;
        }
        let mut queries: Vec<_> = (0..3).map(|_| random_aggregation(&mut random)).collect();
        queries.push(random_other(&mut random));
        // Each several times at once, in both time zones, some of them given up on the way.
        let running = (0..AT_ONCE).map(|index| {
            let (sql, zone) = (queries[index % queries.len()].clone(), index / queries.len() % 2);
            // The last four repeat others.
            let is_given_up = index >= 2 * queries.len() && index % 2 == 0;
            let batches = if is_given_up { 1 } else { usize::MAX };
            let context = contexts[zone].clone();
            tokio::spawn(async move {
                let (rows, from_results) = taken(context, sql.clone(), batches).await;
                (sql, zone, is_given_up, rows, from_results)
            })
        });
        for ran in join_all(running).await {
            let (sql, zone, is_given_up, rows, chunks) = ran.unwrap();
            from_results += chunks;
            if is_given_up {
                continue;
            }
            let expected = engines[zone].sql(&sql).await.unwrap().collect().await;
            match (rows, expected) {
                (Ok(rows), Ok(expected)) => {
                    assert_eq!(sorted_text(&rows), sorted_text(&expected), "seed {seed}: {sql}");
                }
                (Err(_), Err(_)) => failed += 1,
                (rows, expected) => {
                    panic!("seed {seed}: {sql}: {rows:?}, but in the engine {expected:?}")
                }
            }
        }
    }
    assert!(from_results > 100, "{from_results} chunks came from results");
    assert!(failed > 10, "{failed} queries failed");
    assert_all_frees(&manager).await;
}
