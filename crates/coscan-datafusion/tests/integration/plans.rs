//! Plans are pruned, counted and ordered, and otherwise equal those of plain DataFusion.

use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use coscan_runtime::core::PolicyKind;
use coscan_storage::table::FileOptions;
use datafusion::common::stats::Precision;
use datafusion::logical_expr::Partitioning;
use datafusion::physical_plan::StatisticsArgs;
use datafusion::prelude::{SessionContext, col};

use crate::support::{
    create, create_ordered, explain, leaf, manager, metric, numbers_table, partitions, plan, run,
    set_partitions, shared,
};

const ROWS: i64 = 4600;

#[tokio::test]
async fn explain_shows_the_scan() {
    let (_data, _, context) = numbers_table(ROWS).await;
    let text = explain(&context, "EXPLAIN SELECT value FROM numbers WHERE id < 1150").await;
    let wanted = "SharedScanExec: table=numbers, policy=relevance, order=any \
                  (no order needed), chunks=12 of 46 (34 pruned), \
                  projection=[id, value], predicate=id@0 < 1150";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("FilterExec: id@0 < 1150"), "rows are filtered above: {text}");
    let text = explain(&context, "EXPLAIN SELECT value FROM numbers LIMIT 7").await;
    assert!(text.contains("projection=[value], fetch=7"), "{text}");
}

#[tokio::test]
async fn a_small_scan_is_not_spread_over_tasks() {
    let (data, _, context) = numbers_table(ROWS).await;
    let is_spread = async |sql: &str| {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        text.contains("RoundRobinBatch")
    };
    assert!(!is_spread("SELECT value FROM numbers WHERE id < 30").await);
    assert!(!is_spread("SELECT key, sum(value) FROM numbers WHERE id < 120 GROUP BY key").await);

    // The first table has the maximum number of rows of a small scan in one chunk, the second one
    // more.
    for (rows, spread) in [(1 << 17, false), ((1 << 17) + 1, true)] {
        let directory = data.path().join(rows.to_string());
        std::fs::create_dir(&directory).unwrap();
        crate::support::write(
            &directory.join("one.parquet"),
            &crate::support::numbers(0..rows),
            1 << 20,
        );
        let coscan = CoscanOptions::of(context.state().config()).unwrap().as_ref().clone();
        let coscan = coscan.with_table_options(FileOptions::default());
        let table = SharedTableProvider::open(&coscan, &[directory.display().to_string()]).await;
        context.register_table(format!("of_{rows}"), Arc::new(table.unwrap())).unwrap();
        let sql = format!("SELECT value FROM of_{rows} WHERE key = 3");
        assert_eq!(is_spread(&sql).await, spread, "{rows} rows");
        assert_eq!(run(&context, &sql).await.len(), usize::try_from(rows).unwrap() / 10);
    }
}

#[tokio::test]
async fn operators_above_one_small_chunk_run_in_one_task() {
    let (_data, _, context) = numbers_table(ROWS).await;
    let grouped = "SELECT key, sum(value) FROM numbers WHERE id < 60 GROUP BY key";
    let joined = format!("SELECT n FROM numbers a JOIN ({grouped}) AS b (key, n) ON a.key = b.key");
    for (sql, rows, tasks) in [
        (grouped.to_owned(), 10, false),
        (format!("{grouped} ORDER BY key LIMIT 3"), 3, false),
        (format!("SELECT count(*) FROM ({grouped})"), 1, false),
        (format!("SELECT row_number() OVER (PARTITION BY key) FROM ({grouped})"), 10, false),
        (grouped.replace("< 60", "< 600"), 10, true),
        (joined.clone(), 4600, false),
    ] {
        assert_eq!(is_in_tasks(&context, &sql).await, tasks, "{sql}");
        assert_eq!(run(&context, &sql).await.len(), rows, "{sql}");
    }
    // If both sides of a join are repartitioned, they must be repartitioned alike.
    for limit in ["threshold", "threshold_rows"] {
        let set = format!("SET datafusion.optimizer.hash_join_single_partition_{limit} = 0");
        context.sql(&set).await.unwrap().collect().await.unwrap();
    }
    assert!(is_in_tasks(&context, &joined).await);
    assert_eq!(run(&context, &joined).await.len(), 4600);
}

#[tokio::test]
async fn partitions_of_the_user_stay() {
    let (data, _, context) = numbers_table(ROWS).await;
    let plain = crate::support::plain();
    create(&plain, "numbers", data.path()).await;
    let sql = "SELECT key, value FROM numbers WHERE id < 60";
    let streams = async |context: &SessionContext, partitioning: Partitioning| {
        let spread = context.sql(sql).await.unwrap().repartition(partitioning).unwrap();
        let streams = spread.clone().execute_stream_partitioned().await.unwrap();
        assert_eq!(spread.count().await.unwrap(), 60);
        streams.len()
    };
    for partitioning in [
        Partitioning::Hash(vec![col("key")], 8),
        Partitioning::RoundRobinBatch(8),
        Partitioning::RoundRobinBatch(4),
    ] {
        let wanted = streams(&plain, partitioning.clone()).await;
        assert!(wanted > 1);
        assert_eq!(streams(&context, partitioning.clone()).await, wanted, "{partitioning:?}");
    }
    let unasked = context.sql(sql).await.unwrap();
    assert_eq!(unasked.execute_stream_partitioned().await.unwrap().len(), 1);
}

#[tokio::test]
async fn expensive_work_on_few_rows_is_spread_over_tasks() {
    let (_data, _, context) = numbers_table(ROWS).await;
    let few = "(SELECT key, value FROM numbers WHERE id < 60)";
    for sql in [
        format!("SELECT count(*) FROM {few} a JOIN {few} b ON a.key = b.key"),
        format!("SELECT a.value FROM {few} a JOIN {few} b ON a.value < b.value"),
        format!(
            "SELECT max(value) OVER (PARTITION BY key ORDER BY value ROWS 1000 PRECEDING) FROM {few}"
        ),
    ] {
        assert!(is_in_tasks(&context, &sql).await, "{sql}");
    }
}

async fn is_in_tasks(context: &SessionContext, sql: &str) -> bool {
    explain(context, &format!("EXPLAIN {sql}")).await.contains("RepartitionExec")
}

#[tokio::test]
async fn the_weight_of_a_session_is_that_of_its_scans() {
    let (_data, _, context) = numbers_table(ROWS).await;
    let sql = "SELECT sum(value) FROM numbers";
    context.sql("SET coscan.weight = 4").await.unwrap().collect().await.unwrap();
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("order=any (no order needed), weight=4, chunks="), "{text}");
    context.sql(sql).await.unwrap().collect().await.unwrap();
    let error = crate::support::slt::run(&context, "SET coscan.weight = 0").await.unwrap_err();
    assert!(error.to_string().contains("a number of at least 1"), "{error}");
}

#[tokio::test]
async fn explain_analyze_shows_what_the_scan_did() {
    let (_data, _, context) = numbers_table(ROWS).await;
    crate::support::share_no_results(&context).await;
    let sql = "EXPLAIN ANALYZE SELECT sum(value) FROM numbers WHERE id < 1150";
    let text = explain(&context, sql).await;
    for wanted in [
        "chunks_needed=12,",
        "chunks_pruned=34,",
        "chunks_pruned_dynamic_filter=0,",
        "chunks_delivered=12,",
        "chunks_found_in_pool=",
        "bytes_read=",
        "bytes_reused=0",
        "slices_decoded=24,",
        "slices_reused=0,",
        "time_waiting=",
        "time_decoding=",
        "time_reading=",
        "output_rows=1.2",
        "elapsed_compute=",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    let again = explain(&context, sql).await;
    assert!(
        again.contains("chunks_found_in_pool=12,") && again.contains("bytes_read=0"),
        "{again}"
    );
}

#[tokio::test]
async fn filters_prune_chunks() {
    let (_data, _, context) = numbers_table(ROWS).await;
    for (filter, chunks) in [
        ("id < 100", 1),
        ("id BETWEEN 150 AND 350", 3),
        ("id IN (5, 4000)", 2),
        // NaN is above all other values, and bounds leave it out.
        ("value > 2250", 46),
        ("text = 'text 7'", 1),
        ("key = 3", 46),
        ("key > 9", 0),
        ("id < 100 OR id > 4400", 3),
        ("id % 2 = 0", 46),
        ("text = 'zzz'", 0),
    ] {
        let sql = format!("EXPLAIN SELECT sum(value) FROM numbers WHERE {filter}");
        let shown = explain(&context, &sql).await;
        assert!(shown.contains(&format!("chunks={chunks} of 46")), "{filter}: {shown}");
    }
}

#[tokio::test]
async fn statistics_are_the_plain_engines() {
    let data = crate::support::numbers_directory(ROWS);
    crate::support::write_numbers(&data.path().join("more.parquet"), ROWS..ROWS + 150);
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "numbers", data.path()).await;
    let plain = crate::support::plain();
    create(&plain, "numbers", data.path()).await;
    for sql in [
        "SELECT * FROM numbers",
        "SELECT text, id FROM numbers",
        "SELECT value FROM numbers WHERE id < 200",
    ] {
        let ours = leaf(&plan(&context, sql).await);
        let theirs = leaf(&plan(&plain, sql).await);
        let statistics = |leaf: &std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>| {
            leaf.statistics_from_inputs(&[], &StatisticsArgs::new()).unwrap()
        };
        let (ours, theirs) = (statistics(&ours), statistics(&theirs));
        assert_ne!(theirs.num_rows, Precision::Absent);
        assert_eq!(ours, theirs, "{sql}");
    }
}

#[tokio::test]
async fn counts_and_extremes_need_no_scan() {
    let (_data, _, context) = numbers_table(ROWS).await;
    for (sql, row) in [
        ("SELECT count(*) FROM numbers", "4600"),
        ("SELECT min(id), max(value), count(text) FROM numbers", "0 2299.5 4600"),
    ] {
        let plan = plan(&context, sql).await;
        assert_eq!(leaf(&plan).name(), "PlaceholderRowExec", "{sql}");
        assert_eq!(run(&context, sql).await, [row]);
    }
}

#[tokio::test]
async fn a_scan_has_no_more_partitions_than_chunks() {
    let (_data, _, context) = numbers_table(ROWS).await;
    for (filter, count) in [("id >= 0", 4), ("id < 200", 2), ("id < 0", 1)] {
        let plan = plan(&context, &format!("SELECT value FROM numbers WHERE {filter}")).await;
        assert_eq!(partitions(&leaf(&plan)), count, "{filter}");
    }
}

#[tokio::test]
async fn a_declared_order_is_kept_and_saves_the_sort() {
    let (data, _, context) = numbers_table(ROWS).await;
    let location = data.path().join("numbers.parquet");
    create_ordered(&context, "sorted", "id", &location).await;
    let sql = "SELECT id FROM sorted ORDER BY id";
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("order=table") && !text.contains("SortExec"), "{text}");
    let rows: Vec<i64> = run(&context, sql).await.iter().map(|row| row.parse().unwrap()).collect();
    assert_eq!(rows, (0..4600).collect::<Vec<_>>());
    let text = explain(&context, "EXPLAIN SELECT id FROM numbers ORDER BY id").await;
    assert!(text.contains("order=any") && text.contains("SortExec"), "{text}");
}

#[tokio::test]
async fn files_that_overlap_are_not_taken_for_ordered() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write_numbers(&data.path().join("a.parquet"), 0..300);
    crate::support::write_numbers(&data.path().join("b.parquet"), 200..500);
    let context = shared(&manager(PolicyKind::Relevance));
    create_ordered(&context, "sorted", "id", data.path()).await;
    let text = explain(&context, "EXPLAIN SELECT id FROM sorted ORDER BY id").await;
    assert!(text.contains("SortExec") && text.contains("order=any"), "{text}");
}

#[tokio::test]
async fn a_top_k_prunes_the_scan_while_it_runs() {
    let (_data, _, context) = numbers_table(ROWS).await;
    set_partitions(&context, 1).await;
    let sql = "SELECT id, text FROM numbers ORDER BY id LIMIT 5";
    let plan = plan(&context, sql).await;
    let rows = datafusion::physical_plan::collect(plan.clone(), context.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 5);
    let scan = leaf(&plan);
    assert!(metric(&scan, "chunks_pruned_dynamic_filter") > 0);
    assert!(metric(&scan, "chunks_delivered") < 46);
    assert_eq!(
        metric(&scan, "chunks_delivered") + metric(&scan, "chunks_pruned_dynamic_filter"),
        metric(&scan, "chunks_needed")
    );
    assert_eq!(run(&context, sql).await[4], "4 text 4");
}

#[tokio::test]
async fn a_join_prunes_its_probe_side() {
    let (data, _, context) = numbers_table(ROWS).await;
    let few = data.path().join("few");
    std::fs::create_dir(&few).unwrap();
    crate::support::write_numbers(&few.join("few.parquet"), 2000..2010);
    create(&context, "few", &few).await;
    let sql = "SELECT count(*), sum(numbers.value) FROM few JOIN numbers ON few.id = numbers.id";
    let plan = plan(&context, sql).await;
    let rows = datafusion::physical_plan::collect(plan.clone(), context.task_ctx()).await.unwrap();
    assert_eq!(rows.len(), 1);
    let mut pruned = 0;
    let mut leaves = vec![plan];
    while let Some(node) = leaves.pop() {
        if node.name() == "SharedScanExec" {
            pruned += metric(&node, "chunks_pruned_dynamic_filter");
        }
        leaves.extend(node.children().into_iter().cloned());
    }
    assert_eq!(pruned, 45);
    assert_eq!(run(&context, sql).await, ["10 10022.5"]);
}

#[tokio::test]
async fn a_table_in_order_shares_pages_with_the_same_table_in_any_order() {
    let data = crate::support::numbers_directory(4600);
    let manager = manager(PolicyKind::Relevance);
    let context = shared(&manager);
    let coscan = CoscanOptions::of(context.state().config()).unwrap();
    let any = SharedTableProvider::open(&coscan, &[data.path().display().to_string()]).await;
    let any = any.unwrap();
    let ordered = any.with_orders(&[vec![col("id").sort(true, false)]]).await.unwrap();
    context.register_table("numbers", Arc::new(any)).unwrap();
    context.register_table("ordered", Arc::new(ordered)).unwrap();
    assert_eq!(run(&context, "SELECT sum(id) FROM numbers").await, ["10577700"]);
    let sql = "EXPLAIN ANALYZE SELECT id FROM ordered ORDER BY id";
    let text = explain(&context, sql).await;
    assert!(text.contains("order=table") && !text.contains("SortExec"), "{text}");
    assert!(text.contains("bytes_read=0"), "{text}");
    let text = explain(&context, "EXPLAIN SELECT id FROM numbers ORDER BY id").await;
    assert!(text.contains("order=any") && text.contains("SortExec"), "{text}");
}

#[tokio::test]
async fn explain_says_why_an_aggregation_does_not_share_results() {
    let (_data, _manager, context) = numbers_table(1000).await;
    let reason = async |sql: &str| {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        let (_, rest) = text.split_once("results=not shared (")?;
        rest.split_once(')').map(|(reason, _)| reason.to_owned())
    };
    let many = "SELECT value, count(*) FROM numbers GROUP BY value";
    for (sql, expected) in [
        ("SELECT key, count(*) FROM numbers GROUP BY key", None),
        (many, Some("it may have many groups")),
        (
            "SELECT random(), sum(id) FROM numbers GROUP BY 1",
            Some("not a computation that can be shared"),
        ),
        (
            "SELECT min(value) FROM numbers WHERE key > 3",
            Some("the scan does not give whole chunks in any order"),
        ),
        ("SELECT count(*) FROM (SELECT id FROM numbers LIMIT 5)", None),
    ] {
        assert_eq!(reason(sql).await.as_deref(), expected, "{sql}");
    }
    run(&context, "SET coscan.share_results = false").await;
    assert_eq!(reason(many).await, None);
}
