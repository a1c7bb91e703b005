//! Joins of tables that are clustered on the join key are executed joint chunk by joint chunk, and return the rows of
//! plain DataFusion.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use tempfile::TempDir;

use crate::support::{
    Seeded, TABLE_OPTIONS, assert_all_frees, counted, create, explain, manager, metric, plain,
    plan, run, set_partitions, shared, write,
};

fn assert_rows(mut given: Vec<String>, mut expected: Vec<String>, what: &str) {
    given.sort();
    expected.sort();
    let (rows, all) = (given.len(), expected.len());
    let first = given.iter().zip(&expected).find(|(given, expected)| given != expected);
    assert!(given == expected, "{rows} rows for {all}, the first other ones {first:?}: {what}");
}

fn count(batches: Vec<RecordBatch>) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The columns `key` and `value` of rows with these keys.
fn rows(keys: &[i64], prefix: char) -> RecordBatch {
    let numbers = 0..keys.len();
    let text = |n: usize| (!n.is_multiple_of(11)).then(|| format!("{prefix}{}", n % 17));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(keys.iter().copied().collect::<Int64Array>())),
        ("value", Arc::new(numbers.clone().map(|n| (n * 31 % 101) as i64).collect::<Int64Array>())),
        ("text", Arc::new(numbers.map(text).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes `parent` (each key once, with gaps), `child` (up to eight rows of a key, in two files, some of them without a
/// parent) and `other` (few keys, up to 300 rows each), each in the order of its key; and `label`, a small table for most
/// of the values.
fn write_tables() -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path();
    let mut random = Seeded::new(3);
    let (mut parents, mut children, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for key in 0..2600 {
        if random.below(5) > 0 {
            parents.push(key);
        }
        children.extend(vec![key; random.below(9) as usize]);
        if random.below(40) == 0 {
            others.extend(vec![key; random.below(300) as usize]);
        }
    }
    write(&directory.join("parent.parquet"), &rows(&parents, 'p'), 100);
    let children = rows(&children, 'c');
    std::fs::create_dir(directory.join("child")).unwrap();
    let first = 4321;
    write(&directory.join("child/0.parquet"), &children.slice(0, first), 100);
    let rest = children.slice(first, children.num_rows() - first);
    write(&directory.join("child/1.parquet"), &rest, 100);
    write(&directory.join("other.parquet"), &rows(&others, 'o'), 100);
    let labels: Vec<_> = (0..80).collect();
    write(&directory.join("label.parquet"), &rows(&labels, 'l'), 100);
    // `falling_parent` and `falling_child`: keys in the opposite order.
    parents.reverse();
    write(&directory.join("falling_parent.parquet"), &rows(&parents, 'p'), 100);
    let keys: Vec<_> = (0..2600).rev().flat_map(|key| vec![key; key as usize % 5]).collect();
    write(&directory.join("falling_child.parquet"), &rows(&keys, 'c'), 100);
    data
}

/// A session in which every scan is shared, with the tables.
async fn shared_tables() -> (TempDir, BufferManager, SessionContext) {
    let (data, manager) = (write_tables(), manager(PolicyKind::Relevance));
    let context = shared(&manager);
    create_tables(&context, data.path()).await;
    (data, manager, context)
}

async fn create_tables(context: &SessionContext, directory: &Path) {
    for (table, location) in [
        ("parent", "parent.parquet"),
        ("child", "child"),
        ("other", "other.parquet"),
        ("label", "label.parquet"),
        ("falling_parent", "falling_parent.parquet"),
        ("falling_child", "falling_child.parquet"),
    ] {
        create(context, table, &directory.join(location)).await;
    }
    without_thresholds(context).await;
}

/// Removes thresholds, since all tables are small here.
async fn without_thresholds(context: &SessionContext) {
    for setting in ["", "_rows"] {
        let name = format!("datafusion.optimizer.hash_join_single_partition_threshold{setting}");
        run(context, &format!("SET {name} = 0")).await;
    }
}

const COOPERATIVE: &[&str] = &[
    "SELECT p.key, p.value, c.value, c.text FROM parent p JOIN child c ON p.key = c.key",
    "SELECT p.key, c.key, c.value FROM parent p LEFT JOIN child c ON p.key = c.key",
    "SELECT p.key, c.key, c.value FROM parent p RIGHT JOIN child c ON p.key = c.key",
    "SELECT p.key, c.key, c.value FROM parent p FULL JOIN child c ON p.key = c.key",
    "SELECT key, value FROM parent p WHERE EXISTS (SELECT 1 FROM child c WHERE c.key = p.key)",
    "SELECT key, value FROM child c WHERE EXISTS (SELECT 1 FROM parent p WHERE c.key = p.key)",
    "SELECT key, text FROM parent p WHERE NOT EXISTS (SELECT 1 FROM child c WHERE c.key = p.key)",
    "SELECT key, text FROM child c WHERE NOT EXISTS (SELECT 1 FROM parent p WHERE c.key = p.key)",
    "SELECT key, value FROM parent p WHERE value > 90 OR EXISTS \
     (SELECT 1 FROM child c WHERE c.key = p.key AND c.value < 9)",
    // Conditions on one side and on both.
    "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key WHERE p.value < 20 AND c.value > 50",
    "SELECT p.key, c.value FROM parent p LEFT JOIN child c ON p.key = c.key AND c.value > p.value",
    "SELECT p.key, c.key FROM parent p FULL JOIN child c ON p.key = c.key AND c.value = p.value",
    "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key AND p.value = c.value",
    "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key WHERE p.key BETWEEN 700 AND 1900",
    "SELECT p.key, c.value FROM parent p LEFT JOIN child c ON p.key = c.key AND c.key > 900",
    "SELECT p.key, c.key FROM parent p RIGHT JOIN child c ON p.key = c.key AND p.key > 900",
    "SELECT p.key, p.value, c.value FROM falling_parent p JOIN falling_child c ON p.key = c.key",
    "SELECT p.key, c.key, c.value FROM falling_parent p FULL JOIN falling_child c ON p.key = c.key AND c.value > 9",
    // More than two tables, and a table with itself.
    "SELECT p.key, c.value, o.value FROM parent p JOIN child c ON p.key = c.key JOIN other o ON c.key = o.key",
    "SELECT p.key, c.value, o.value FROM parent p LEFT JOIN child c ON p.key = c.key LEFT JOIN other o ON p.key = o.key",
    "SELECT a.key, a.value, b.value FROM child a JOIN child b ON a.key = b.key AND a.value < b.value",
    "SELECT key, value FROM child a WHERE EXISTS (SELECT 1 FROM child b WHERE a.key = b.key AND a.value <> b.value) \
     AND NOT EXISTS (SELECT 1 FROM child b WHERE a.key = b.key AND a.value < b.value)",
    // Aggregations by the key, below and above.
    "SELECT p.key, count(*), sum(c.value), min(c.text) FROM parent p JOIN child c ON p.key = c.key GROUP BY p.key",
    "SELECT p.text, p.key, sum(c.value) FROM parent p LEFT JOIN child c ON p.key = c.key GROUP BY p.text, p.key",
    "SELECT p.key, n FROM parent p JOIN (SELECT key, count(*) AS n FROM child GROUP BY key) c ON p.key = c.key",
    "SELECT key, value FROM parent WHERE key IN (SELECT key FROM child GROUP BY key HAVING sum(value) > 200)",
    "SELECT p.text, count(*), sum(c.value) FROM parent p JOIN child c ON p.key = c.key GROUP BY p.text",
    // A small table on another key between them, and above.
    "SELECT p.key, l.text, c.value FROM parent p JOIN label l ON p.value = l.key JOIN child c ON p.key = c.key",
    "SELECT l.text, count(*), sum(c.value) FROM label l JOIN parent p ON p.value = l.key JOIN child c ON p.key = c.key \
     GROUP BY l.text",
    "SELECT c.key, l.text, p.value FROM child c JOIN parent p ON p.key = c.key JOIN label l ON c.value = l.key \
     WHERE l.value < 60",
    "SELECT c.key, l.text, p.value FROM child c JOIN parent p ON p.key = c.key LEFT JOIN label l ON c.value = l.key",
    "SELECT c.key, c.value FROM child c JOIN parent p ON p.key = c.key WHERE c.value IN (SELECT key FROM label)",
    "SELECT c.key, c.value FROM child c JOIN parent p ON p.key = c.key WHERE NOT EXISTS \
     (SELECT 1 FROM label l WHERE l.key = c.value)",
    "SELECT m.text, l.text, sum(c.value) FROM child c JOIN parent p ON p.key = c.key JOIN label l ON c.value = l.key \
     JOIN label m ON p.value = m.key GROUP BY m.text, l.text",
    "SELECT count(*), sum(c.value), max(p.text) FROM parent p JOIN child c ON p.key = c.key",
    "SELECT p.text, nth_value(c.value, 2 ORDER BY c.value, c.key) FROM parent p JOIN child c ON p.key = c.key \
     GROUP BY p.text",
    "SELECT p.text, array_agg(c.value ORDER BY c.value) FROM parent p JOIN child c ON p.key = c.key GROUP BY p.text",
    "SELECT p.text, count(DISTINCT c.text) FROM parent p JOIN child c ON p.key = c.key GROUP BY ROLLUP (p.text)",
    "SELECT key, value, (SELECT max(value) FROM child c WHERE c.key = p.key) FROM parent p",
    "SELECT p.key + 1, c.value FROM (SELECT * FROM parent ORDER BY key LIMIT 9999) p JOIN child c ON p.key = c.key",
];

const OTHERS: &[&str] = &[
    "SELECT p.key, c.key FROM parent p JOIN child c ON p.value = c.value AND p.key < 50 AND c.key < 50",
    "SELECT p.key, c.key FROM parent p JOIN child c ON p.key = c.key + 1",
    // Joint chunks would be much more than the few chunks that are needed.
    "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key WHERE p.key BETWEEN 700 AND 705",
    // No joint chunk is needed.
    "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key WHERE p.key > 99999",
    "SELECT count(*), sum(c.value) FROM parent p JOIN child c ON p.key = c.key WHERE p.key > 99999",
    // No joint chunk is needed here either, but there is a total of no rows.
    "SELECT p.text, count(*) FROM parent p JOIN child c ON p.key = c.key WHERE c.value > 99999 GROUP BY CUBE (p.text)",
    "SELECT key FROM parent WHERE key NOT IN (SELECT key FROM child)",
    "SELECT a.key, b.key FROM parent a FULL JOIN child b ON a.key = b.key JOIN other c ON a.key = c.key \
     WHERE a.value + c.value > 100",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_those_of_plain_datafusion() {
    let data = write_tables();
    let manager = manager(PolicyKind::Relevance);
    for partitions in [1, 4] {
        let (context, reference) = (shared(&manager), plain());
        for context in [&context, &reference] {
            create_tables(context, data.path()).await;
            set_partitions(context, partitions).await;
        }
        for sql in COOPERATIVE.iter().chain(OTHERS) {
            let (given, expected) = (run(&context, sql).await, run(&reference, sql).await);
            assert!(!expected.is_empty() || OTHERS.contains(sql), "{sql}");
            let text = explain(&context, &format!("EXPLAIN {sql}")).await;
            assert_rows(given, expected, &format!("{sql}, {partitions} partitions: {text}"));
            if COOPERATIVE.contains(sql) && !sql.contains("LIMIT") {
                assert!(text.contains("CooperativeJoinExec"), "{sql}: {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_shares_what_it_reads_and_conditions_rule_joint_chunks_out() {
    let data = write_tables();
    let (stores, metrics) = counted(object_store::local::LocalFileSystem::new());
    let manager = manager(PolicyKind::Relevance);
    let context = plain();
    let coscan =
        CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    coscan.with_stores(stores).install(&context).unwrap();
    create_tables(&context, data.path()).await;
    let join = "SELECT p.key, p.value, c.value FROM parent p JOIN child c ON p.key = c.key";
    metrics.reset();
    let all = run(&context, join).await;
    let read = metrics.snapshot().bytes;
    assert!(read > 0);
    // The pool has everything that these queries need.
    metrics.reset();
    run(&context, "SELECT sum(value), sum(key) FROM child").await;
    run(&context, "SELECT sum(value), sum(key) FROM parent").await;
    assert_eq!(run(&context, join).await.len(), all.len());
    assert_eq!(metrics.snapshot().bytes, 0);

    // The beginnings of joint chunks are known by now.
    let few = plan(&context, &format!("{join} WHERE c.key > 2000")).await;
    let batches = collect(Arc::clone(&few), context.task_ctx()).await.unwrap();
    assert!(batches.iter().map(RecordBatch::num_rows).sum::<usize>() > 500);
    let (needed, pruned) = (metric(&few, "chunks_needed"), metric(&few, "chunks_pruned"));
    assert!(needed > 0 && pruned > needed, "{needed} needed, {pruned} pruned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_can_be_executed_again_and_dropped_halfway() {
    let (_data, manager, context) = shared_tables().await;
    let sql = "SELECT p.key, c.value FROM parent p JOIN child c ON p.key = c.key";
    let plan = plan(&context, sql).await;
    let execute =
        || tokio::spawn(plan.execute(0, context.task_ctx()).unwrap().try_collect::<Vec<_>>());
    let (first, second) = tokio::join!(execute(), execute());
    let (first, second) = (count(first.unwrap().unwrap()), count(second.unwrap().unwrap()));
    assert!(first > 5000, "{first}");
    assert_eq!(first, second);
    let mut dropped = plan.execute(0, context.task_ctx()).unwrap();
    assert!(dropped.try_next().await.unwrap().is_some());
    drop(dropped);
    assert_eq!(count(execute().await.unwrap().unwrap()), first);
    drop(plan);
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_joins_the_files_that_it_was_made_of() {
    let (data, manager, context) = shared_tables().await;
    let sql = "SELECT p.key, c.value FROM parent p RIGHT JOIN child c ON p.key = c.key";
    let expected = async || {
        let reference = plain();
        create_tables(&reference, data.path()).await;
        run(&reference, sql).await.len()
    };
    let (before, rows_before) = (plan(&context, sql).await, expected().await);
    let keys: Vec<_> = (2600..2900).flat_map(|key| [key; 3]).collect();
    write(&data.path().join("child/2.parquet"), &rows(&keys, 'n'), 100);
    coscan_datafusion::refresh(&context, "child").await.unwrap();
    let (after, rows_after) = (plan(&context, sql).await, expected().await);
    assert!(rows_after > rows_before);
    // Keys are found first for the newer files, then for the older ones.
    for (plan, rows) in [(after, rows_after), (before, rows_before)] {
        assert_eq!(plan.name(), "CooperativeJoinExec");
        assert_eq!(count(collect(plan, context.task_ctx()).await.unwrap()), rows);
    }
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_few_joint_chunks_is_enough_and_a_smaller_one_joins_otherwise() {
    let data = write_tables();
    let sql = "SELECT p.key, p.value, c.value, c.text FROM parent p JOIN child c ON p.key = c.key";
    let expected = {
        let reference = plain();
        create_tables(&reference, data.path()).await;
        run(&reference, sql).await
    };
    let mut kinds = Vec::new();
    for pool_bytes in [12_000, 25_000, 50_000, 100_000, 400_000] {
        let options = Options::with_pool_bytes(pool_bytes, 64 << 20);
        let manager = BufferManager::new(options).unwrap();
        let context = shared(&manager);
        create_tables(&context, data.path()).await;
        assert_rows(run(&context, sql).await, expected.clone(), &format!("{pool_bytes} bytes"));
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        kinds.push(text.contains("CooperativeJoinExec"));
    }
    assert!(kinds.is_sorted() && !kinds[0] && kinds[4], "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_only_look_clustered_are_joined_otherwise() {
    let data = write_tables();
    // Each row group is in descending order, so bounds look as if the table were sorted.
    let keys: Vec<_> = (0..2600).map(|n| n / 100 * 100 + 99 - n % 100).collect();
    let location = data.path().join("unsorted.parquet");
    write(&location, &rows(&keys, 'u'), 100);
    let (context, reference) = (shared(&manager(PolicyKind::Relevance)), plain());
    for context in [&context, &reference] {
        create_tables(context, data.path()).await;
        create(context, "unsorted", &location).await;
    }
    // The unsorted table is either the one with the fewest chunks, whose row groups are used
    // unchanged, or has to be read in part.
    for (table, is_clustered) in [("child", true), ("parent", false), ("child", true)] {
        let sql = format!("SELECT t.key, u.value FROM {table} t JOIN unsorted u ON t.key = u.key");
        for _ in 0..2 {
            assert_rows(run(&context, &sql).await, run(&reference, &sql).await, &sql);
        }
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert_eq!(text.contains("CooperativeJoinExec"), is_clustered, "{text}");
    }
}

/// Rows with `id` in row groups that follow each other, where the rows of each are in no order.
fn shuffled(ids: impl Iterator<Item = i64>, group_rows: usize, random: &mut Seeded) -> RecordBatch {
    let mut ids: Vec<_> = ids.collect();
    for group in ids.chunks_mut(group_rows) {
        for last in (1..group.len()).rev() {
            group.swap(last, random.below(last as u64 + 1) as usize);
        }
    }
    let values: Int64Array = ids.iter().map(|id| id * 7 % 1009).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from(ids))), ("v", Arc::new(values))];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_of_many_tables_that_only_look_clustered_is_answered() {
    let data = tempfile::tempdir().unwrap();
    let mut random = Seeded::new(5);
    let manager = manager(PolicyKind::Relevance);
    let (context, reference) = (shared(&manager), plain());
    for table in 0..9 {
        let location = data.path().join(format!("f{table}.parquet"));
        let group_rows = 110 + 2 * table;
        let step = if table == 0 { 4 } else { 1 };
        let rows = shuffled((0..4400).step_by(step), group_rows, &mut random);
        write(&location, &rows, group_rows);
        for context in [&context, &reference] {
            create(context, &format!("f{table}"), &location).await;
        }
    }
    for context in [&context, &reference] {
        without_thresholds(context).await;
    }
    let joins = (1..9).map(|n| format!("JOIN f{n} ON f{}.id = f{n}.id", n - 1));
    let joins = joins.collect::<Vec<_>>().join(" ");
    let sql = format!("SELECT count(*), sum(f0.v), sum(f8.v) FROM f0 {joins}");
    // Plans are made from footers.
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("CooperativeJoinExec"), "{text}");
    assert_eq!(manager.report().bytes_read, 0);
    let text = explain(&context, &format!("EXPLAIN ANALYZE {sql}")).await;
    assert!(text.contains("joint_chunks=none (not clustered)"), "{text}");
    assert_eq!(run(&context, &sql).await, run(&reference, &sql).await);
    // The order of all tables is known by now, whatever they are joined with.
    for sql in [sql.as_str(), "SELECT count(*) FROM f2 JOIN f5 ON f2.id = f5.id"] {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(!text.contains("CooperativeJoinExec"), "{text}");
    }
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_are_joined_as_a_whole_give_the_rows_of_plain_datafusion() {
    let data = write_tables();
    let mut random = Seeded::new(8);
    for (table, step) in [("parent", 2), ("child", 1)] {
        let ids = (0..2600).flat_map(|id| vec![id; if step == 1 { 3 } else { 1 }]).step_by(step);
        let rows = shuffled(ids, 90 + 30 * step, &mut random);
        let keys: Vec<_> = crate::support::ids_of(&rows);
        let location = data.path().join(format!("mixed_{table}.parquet"));
        write(&location, &self::rows(&keys, 'm'), 90 + 30 * step);
    }
    let reference = plain();
    create_tables(&reference, data.path()).await;
    for table in ["parent", "child"] {
        let location = data.path().join(format!("mixed_{table}.parquet"));
        crate::support::create(&reference, &format!("mixed_{table}"), &location).await;
    }
    let mut whole = 0;
    for sql in COOPERATIVE {
        let sql = sql
            .replace("FROM parent", "FROM mixed_parent")
            .replace("JOIN parent", "JOIN mixed_parent");
        let sql =
            sql.replace("FROM child", "FROM mixed_child").replace("JOIN child", "JOIN mixed_child");
        // A new manager knows nothing about the tables.
        let context = shared(&manager(PolicyKind::Relevance));
        create_tables(&context, data.path()).await;
        for table in ["parent", "child"] {
            let location = data.path().join(format!("mixed_{table}.parquet"));
            crate::support::create(&context, &format!("mixed_{table}"), &location).await;
        }
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        whole += usize::from(text.contains("CooperativeJoinExec"));
        let (given, expected) = (run(&context, &sql).await, run(&reference, &sql).await);
        assert_rows(given, expected, &format!("{sql}: {text}"));
    }
    assert!(whole > COOPERATIVE.len() / 2, "{whole}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_the_same_files_may_have_their_columns_in_another_order() {
    let data = tempfile::tempdir().unwrap();
    let location = data.path().join("t.parquet");
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new((0..1500).collect::<Int64Array>())),
        ("m", Arc::new((0..1500).map(|key| 2 * key).collect::<Int64Array>())),
    ];
    write(&location, &RecordBatch::try_from_iter(columns).unwrap(), 100);
    let keys: Vec<_> = (0..900).collect();
    write(&data.path().join("c.parquet"), &rows(&keys, 'c'), 100);
    let (context, reference) = (shared(&manager(PolicyKind::Relevance)), plain());
    for context in [&context, &reference] {
        let location = location.display();
        for (table, columns) in [("a", "k BIGINT, m BIGINT"), ("b", "m BIGINT, k BIGINT")] {
            let sql = format!(
                "CREATE EXTERNAL TABLE {table} ({columns}) STORED AS PARQUET LOCATION '{location}'"
            );
            run(context, &sql).await;
        }
        create(context, "c", &data.path().join("c.parquet")).await;
        without_thresholds(context).await;
    }
    for on in ["a JOIN c ON a.k = c.key", "b JOIN c ON b.m = c.key", "a JOIN c ON a.m = c.key"] {
        let sql = format!("SELECT c.key, k, m FROM {on}");
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains("CooperativeJoinExec"), "{text}");
        assert_rows(run(&context, &sql).await, run(&reference, &sql).await, &sql);
    }
}
