//! Aggregations by leading columns of a table's order are executed chunk by chunk, and return the groups of plain
//! DataFusion.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use crate::support::{
    Seeded, assert_all_frees, create_ordered, explain, manager, plain, plan, run, set_partitions,
    shared, write,
};

/// Rows in the order of `a` (with `nulls` NULLs last) and `b`: runs of keys that end within chunks or at their ends, or
/// span several.
fn clustered(rows: usize, nulls: usize) -> RecordBatch {
    let mut random = Seeded::new(7);
    let lengths = [1, 1, 2, 3, 7, 40, 99, 100, 101, 350];
    let (mut a, mut b) = (Vec::new(), Vec::new());
    while a.len() < rows {
        let run = lengths[random.below(lengths.len() as u64) as usize];
        let key = a.last().map_or(0, |last: &i64| last + 1 + random.below(60) as i64);
        b.extend((0..run).map(|row| row / 3));
        a.extend(vec![key; run as usize]);
    }
    let key = |index: usize| (index + nulls < rows).then(|| a[index]);
    let numbers = 0..rows;
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("a", Arc::new(numbers.clone().map(key).collect::<Int64Array>()), true),
        ("b", Arc::new(b[..rows].iter().copied().collect::<Int32Array>()), true),
        ("float", Arc::new(numbers.clone().map(|n| n as f64).collect::<Float64Array>()), true),
        (
            "text",
            Arc::new(
                numbers
                    .map(|n| (!n.is_multiple_of(7)).then(|| format!("{}", n % 13)))
                    .collect::<StringArray>(),
            ),
            true,
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Creates table `t`, in chunks of a hundred rows.
async fn create_table(context: &SessionContext, location: &Path) {
    // The bounds of files cover one column only.
    let keys = if location.is_file() { "a ASC NULLS LAST, b" } else { "a" };
    create_ordered(context, "t", keys, location).await;
}

const ORDERED: &[&str] = &[
    "SELECT a, count(*), sum(float), min(text) FROM t GROUP BY a",
    "SELECT a, b, count(text), avg(float) FROM t GROUP BY a, b",
    "SELECT b, a FROM t GROUP BY b, a",
    "SELECT text, a, max(float) FROM t GROUP BY text, a",
    "SELECT DISTINCT a FROM t",
    "SELECT a % 5, a, count(*) FROM t GROUP BY a % 5, a",
    "SELECT a, count(*) FROM t WHERE b = 0 AND float > 150 GROUP BY a",
    "SELECT a, count(*) FROM t WHERE a > 400 AND a < 1900 GROUP BY a",
    "SELECT a AS key, count(*) AS n FROM t WHERE text <> '3' GROUP BY a HAVING count(*) > 5",
    "SELECT a, count(DISTINCT text), count(*) FILTER (WHERE b > 2) FROM t GROUP BY a",
    "SELECT a, round(stddev(float), 6), median(b) FROM t GROUP BY a",
    // Bounds do not rule this out, so there are chunks to group.
    "SELECT a, count(*) FROM t WHERE float * 2 < 0 GROUP BY a",
    "SELECT n, count(*) FROM (SELECT a, count(*) AS n FROM t GROUP BY a) GROUP BY n",
    "SELECT l.a, n, m FROM (SELECT a, count(*) AS n FROM t GROUP BY a) l \
     JOIN (SELECT a, max(b) AS m FROM t GROUP BY a) r ON l.a = r.a",
    "SELECT a, count(*) FROM (SELECT a + 0 AS z, a, float FROM t) GROUP BY a",
    "SELECT a, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) ORDER BY n DESC, a LIMIT 7",
];

const NOT_ORDERED: &[&str] = &[
    "SELECT b, count(*) FROM t GROUP BY b",
    "SELECT a + 1, count(*) FROM t GROUP BY a + 1",
    "SELECT count(*), sum(float) FROM t",
    "SELECT a, array_agg(float ORDER BY float DESC) FROM t GROUP BY a",
    "SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_those_of_plain_datafusion() {
    let data = tempfile::tempdir().unwrap();
    let (file, directory) = (data.path().join("t.parquet"), data.path().join("files"));
    // Files with NULLs in the key do not prove that one continues the other, so there is one file.
    write(&file, &clustered(5000, 130), 100);
    std::fs::create_dir(&directory).unwrap();
    let rows = clustered(6000, 0);
    for (start, end) in [(0, 2950), (2950, 3000), (3000, 6000)] {
        write(&directory.join(format!("{start}.parquet")), &rows.slice(start, end - start), 100);
    }
    let manager = manager(PolicyKind::Relevance);
    for location in [&file, &directory] {
        for partitions in [1, 4] {
            let (context, reference) = (shared(&manager), plain());
            for context in [&context, &reference] {
                create_table(context, location).await;
                set_partitions(context, partitions).await;
            }
            for sql in ORDERED.iter().chain(NOT_ORDERED) {
                let (mut given, mut expected) =
                    (run(&context, sql).await, run(&reference, sql).await);
                given.sort();
                expected.sort();
                assert_eq!(given, expected, "{sql}, {partitions} partitions");
                let text = explain(&context, &format!("EXPLAIN {sql}")).await;
                let is_ordered = ORDERED.contains(sql);
                assert_eq!(text.contains("OrderedAggregateExec"), is_ordered, "{sql}: {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_can_be_executed_again_and_dropped_halfway() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("t.parquet");
    write(&file, &clustered(5000, 130), 100);
    let manager = manager(PolicyKind::Relevance);
    let context = shared(&manager);
    create_table(&context, &file).await;
    let sql = "SELECT a, count(*) FROM t GROUP BY a";
    let plan = plan(&context, sql).await;
    let count =
        |batches: Vec<RecordBatch>| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    let (first, second) = (
        plan.execute(0, context.task_ctx()).unwrap(),
        plan.execute(0, context.task_ctx()).unwrap(),
    );
    let (first, second) = tokio::join!(
        tokio::spawn(first.try_collect::<Vec<_>>()),
        tokio::spawn(second.try_collect::<Vec<_>>())
    );
    let (first, second) = (count(first.unwrap().unwrap()), count(second.unwrap().unwrap()));
    assert!(first > 50);
    assert_eq!(first, second);
    let mut dropped = plan.execute(0, context.task_ctx()).unwrap();
    assert!(dropped.try_next().await.unwrap().is_some());
    drop(dropped);
    let again = plan.execute(0, context.task_ctx()).unwrap().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(count(again), first);
    drop(plan);
    assert_all_frees(&manager).await;
}
