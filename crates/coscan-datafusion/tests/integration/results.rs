//! Aggregations share the results of chunks: those of later and of concurrent queries, with the rows of plain DataFusion.

use std::sync::Arc;
use std::task::Poll;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use coscan_datafusion::SharedResults;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use futures::future::join_all;

use crate::support::{
    assert_all_frees, create, drop_unused, explain, ids_of, manager, metric, numbers,
    numbers_table, plain, plan, run, set_partitions, share_no_results, shared, sorted, write,
};

const QUERY: &str =
    "SELECT key > 4, count(*), sum(id), min(text) FROM numbers WHERE value > 3 GROUP BY key > 4";

/// What a query has done with results.
#[derive(Debug, PartialEq, Eq)]
struct Figures {
    computed: usize,
    from_results: usize,
    published: usize,
}

/// The operators of a plan that share results.
pub(crate) fn sharing(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let of_inputs = plan.children().into_iter().flat_map(sharing);
    let own = (plan.name() == "SharedAggregateExec").then(|| Arc::clone(plan));
    own.into_iter().chain(of_inputs).collect()
}

fn figures(plan: &Arc<dyn ExecutionPlan>) -> Figures {
    let [shared] = sharing(plan).try_into().expect("one operator shares results");
    Figures {
        computed: metric(&shared, "chunks_computed"),
        from_results: metric(&shared, "chunks_from_results"),
        published: metric(&shared, "chunks_published"),
    }
}

/// The chunks that an operator has taken from others, if it was executed.
pub(crate) fn from_results_of(shared: &Arc<dyn ExecutionPlan>) -> usize {
    let sum = shared.metrics().and_then(|metrics| metrics.sum_by_name("chunks_from_results"));
    sum.map_or(0, |sum| sum.as_usize())
}

/// Executes a query, and returns what it has done with results.
async fn figures_of(context: &SessionContext, sql: &str) -> Figures {
    let plan = plan(context, sql).await;
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    figures(&plan)
}

#[tokio::test]
async fn a_later_query_reads_and_computes_nothing() {
    let (data, manager, context) = numbers_table(1000).await;
    let first = figures_of(&context, QUERY).await;
    assert_eq!(first, Figures { computed: 10, from_results: 0, published: 10 });
    let rows = sorted(&context, QUERY).await;
    let other_session = shared(&manager);
    create(&other_session, "numbers", data.path()).await;
    for context in [&context, &other_session] {
        let later = figures_of(context, QUERY).await;
        assert_eq!(later, Figures { computed: 0, from_results: 10, published: 0 });
        assert_eq!(sorted(context, QUERY).await, rows);
    }
    let text = explain(&context, &format!("EXPLAIN ANALYZE {QUERY}")).await;
    assert!(text.contains("chunks_from_results=10"), "{text}");
    assert!(text.contains("chunks_delivered=0"), "{text}");
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn ranges_of_a_key_share_the_chunks_inside_both() {
    let (data, _manager, context) = numbers_table(1000).await;
    let query = |range: &str| {
        format!("SELECT key > 4, count(*), sum(value) FROM numbers WHERE {range} GROUP BY key > 4")
    };
    let first = figures_of(&context, &query("id < 750")).await;
    assert_eq!(first, Figures { computed: 8, from_results: 0, published: 8 });
    // Of the chunks 2 to 8, those from 3 to 6 lie inside both ranges.
    let second = figures_of(&context, &query("250 <= id AND id < 850")).await;
    assert_eq!(second, Figures { computed: 3, from_results: 4, published: 3 });
    let whole = figures_of(&context, &query("id IS NOT NULL")).await;
    assert_eq!(whole.computed + whole.from_results, 10);
    let plain = plain();
    create(&plain, "numbers", data.path()).await;
    for range in
        ["id < 750", "250 <= id AND id < 850", "id <> 300", "id = 777", "id > 98 AND 301 > id"]
    {
        let sql = query(range);
        assert_eq!(sorted(&context, &sql).await, sorted(&plain, &sql).await, "{sql}");
        assert_eq!(sorted(&context, &sql).await, sorted(&plain, &sql).await, "{sql}");
    }
}

#[tokio::test]
async fn a_setting_says_with_whom_results_are_shared() {
    let (_data, manager, context) = numbers_table(1000).await;
    run(&context, "SET coscan.share_results = false").await;
    assert_eq!(sharing(&plan(&context, QUERY).await).len(), 0);
    run(&context, "SET coscan.share_results = running").await;
    let alone = Figures { computed: 10, from_results: 0, published: 0 };
    assert_eq!(figures_of(&context, QUERY).await, alone);
    assert_eq!(figures_of(&context, QUERY).await, alone);
    run(&context, "SET coscan.share_results = true").await;
    assert_eq!(figures_of(&context, QUERY).await.published, 10);
    assert_eq!(figures_of(&context, QUERY).await.from_results, 10);
    let error = context.sql("SET coscan.share_results = 'maybe'").await.err().unwrap();
    assert!(error.to_string().contains("true, false, or running"), "{error}");
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn running_queries_take_results_of_each_other() {
    let (_data, manager, context) = numbers_table(4000).await;
    run(&context, "SET coscan.share_results = running").await;
    let plans = [plan(&context, QUERY).await, plan(&context, QUERY).await];
    let mut streams =
        plans.each_ref().map(|plan| execute_stream(Arc::clone(plan), context.task_ctx()).unwrap());
    // Both have begun before either goes on.
    let [a, b] = &mut streams;
    let first = [futures::poll!(a.next()), futures::poll!(b.next())];
    assert!(first.iter().all(Poll::is_pending), "40 chunks are not read at once");
    let rows = join_all(streams.map(|stream| stream.map(Result::unwrap).collect::<Vec<_>>())).await;
    assert_eq!(rows[0].iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    let figures = plans.each_ref().map(figures);
    for Figures { computed, from_results, .. } in &figures {
        assert_eq!(computed + from_results, 40, "{figures:?}");
    }
    let computed: usize = figures.iter().map(|figures| figures.computed).sum();
    assert!(computed < 80, "some chunks were computed once only: {figures:?}");
    drop((plans, rows));
    let later = figures_of(&context, QUERY).await;
    assert_eq!(later.from_results, 0, "nothing is kept");
    assert_eq!(later.published, 0, "and nothing published for nobody");
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_query_alone_in_running_mode_publishes_nothing() {
    let (_data, _manager, context) = numbers_table(1000).await;
    run(&context, "SET coscan.share_results = running").await;
    // Chunks prove one of both conditions each, and leave the same.
    let sql = "SELECT count(*) FROM numbers WHERE id >= 150 AND id < 850 AND key > 3";
    assert_eq!(figures_of(&context, sql).await.published, 0);
}

#[tokio::test]
async fn conjuncts_beyond_the_64th_count() {
    let (data, _manager, context) = numbers_table(1000).await;
    let likes: Vec<_> = (0..63).map(|number| format!("text NOT LIKE '%x{number}x%'")).collect();
    let likes = likes.join(" AND ");
    let sql = |value: i64| {
        let conditions = format!("id <> -5 AND {likes} AND value > {value}");
        format!("SELECT count(*), sum(id) FROM numbers WHERE {conditions}")
    };
    let plain = plain();
    create(&plain, "numbers", data.path()).await;
    for value in [5, 400] {
        assert_eq!(run(&context, &sql(value)).await, run(&plain, &sql(value)).await);
    }
}

#[tokio::test]
async fn statistics_prove_nothing_where_they_are_not_used() {
    let (_data, _manager, context) = numbers_table(1000).await;
    run(&context, "SET datafusion.execution.parquet.pruning = false").await;
    let sql = |below: i64| format!("SELECT count(*), sum(id) FROM numbers WHERE id < {below}");
    assert_eq!(figures_of(&context, &sql(750)).await.published, 10);
    assert_eq!(figures_of(&context, &sql(850)).await.from_results, 0);
}

#[tokio::test]
async fn bounds_prove_nothing_of_nulls_and_nan() {
    let data = tempfile::tempdir().unwrap();
    let is_odd = |row: i64| row % 50 == 7;
    let numbers: Int64Array = (0..400).map(|row| (!is_odd(row)).then_some(row + 1)).collect();
    let floats: Float64Array =
        (0..400).map(|row| Some(if is_odd(row) { f64::NAN } else { 2.0 })).collect();
    let texts: StringArray = (0..400).map(|row| (!is_odd(row)).then_some("b")).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("v", Arc::new(numbers)),
        ("f", Arc::new(floats)),
        ("t", Arc::new(texts)),
        ("w", Arc::new((0..400).collect::<Int64Array>())),
    ];
    write(&data.path().join("t.parquet"), &RecordBatch::try_from_iter(columns).unwrap(), 100);
    // Plain DataFusion relies on bounds that leave NaN out.
    let (alone, context) =
        (shared(&manager(PolicyKind::Relevance)), shared(&manager(PolicyKind::Relevance)));
    share_no_results(&alone).await;
    for context in [&alone, &context] {
        create(context, "t", data.path()).await;
    }
    let conditions = [
        "true",
        "v > 0",
        "v IS NOT NULL",
        "v <> 0",
        "v = v",
        "0 < v",
        "f < 3",
        "f > 1",
        "NOT f > 1",
        "t >= 'b'",
        "t = 'b'",
        "CAST(v AS DOUBLE) > 0",
        "w >= 0",
        "w IS NOT NULL",
        "v > 0 AND w < 400",
    ];
    for _ in 0..2 {
        for condition in conditions {
            let sql = format!("SELECT count(*), sum(w) FROM t WHERE {condition}");
            assert_eq!(run(&context, &sql).await, run(&alone, &sql).await, "{sql}");
        }
    }
}

#[tokio::test]
async fn many_groups_in_one_table_do_not_stop_another() {
    let data = tempfile::tempdir().unwrap();
    let manager = manager(PolicyKind::Relevance);
    let context = shared(&manager);
    for (name, divisor) in [("many", 2), ("few", 400)] {
        let directory = data.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let k: ArrayRef = Arc::new((0..1000).map(|id| id / divisor).collect::<Int64Array>());
        write(&directory.join("t.parquet"), &RecordBatch::try_from_iter([("k", k)]).unwrap(), 100);
        create(&context, name, &directory).await;
    }
    let many = figures_of(&context, "SELECT k, count(*) FROM many GROUP BY k").await;
    assert_eq!(many.published, 0);
    let few = figures_of(&context, "SELECT k, count(*) FROM few GROUP BY k").await;
    assert_eq!(few.published, 10);
}

#[tokio::test]
async fn results_of_old_files_give_way() {
    let data = crate::support::numbers_directory(1000);
    let options = Options { memory_bytes: 16 << 20, ..Options::with_pool_bytes(4 << 20, 4 << 20) };
    let manager = BufferManager::new(options).unwrap();
    let context = shared(&manager);
    create(&context, "numbers", data.path()).await;
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    let bytes_max = manager.options().memory_bytes / 100;
    let mut published = 0;
    for round in 0..60 {
        let replaced = numbers(round * 1000..round * 1000 + 1000);
        write(&data.path().join("numbers.parquet"), &replaced, 100);
        let figures = figures_of(&context, QUERY).await;
        assert_eq!(figures.published, 10, "round {round}");
        published += 10;
        let report = SharedResults::of(&manager);
        assert!(report.bytes <= bytes_max, "{report:?}");
        assert_eq!(report.chunks_published, published);
    }
    let all = published * 700;
    assert!(all > bytes_max, "all of them do not fit: about {all} bytes into {bytes_max}");
    drop_unused(&manager);
    let left = SharedResults::of(&manager).bytes;
    assert!(left < 4096, "they are dropped when memory is short, but for {left} bytes");
    assert!(figures_of(&context, QUERY).await.from_results < 10);
}

#[tokio::test]
async fn a_fragment_with_large_states_is_not_tried_for_ever() {
    let (_data, manager, context) = numbers_table(2000).await;
    set_partitions(&context, 1).await;
    // 50 groups in each chunk of 100 rows.
    let sql = "SELECT id / 2, count(*) FROM numbers GROUP BY id / 2";
    figures_of(&context, sql).await;
    let refused = SharedResults::of(&manager).chunks_refused;
    assert_eq!(refused, 3);
    figures_of(&context, sql).await;
    assert_eq!(SharedResults::of(&manager).chunks_refused, refused);
}

#[tokio::test]
async fn results_of_a_replaced_file_are_not_used() {
    let (data, _manager, context) = numbers_table(300).await;
    let sql = "SELECT count(*), sum(id) FROM numbers";
    assert_eq!(figures_of(&context, sql).await.published, 3);
    let replaced = numbers(1000..1300);
    write(&data.path().join("numbers.parquet"), &replaced, 100);
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    let again = figures_of(&context, sql).await;
    assert_eq!(again, Figures { computed: 3, from_results: 0, published: 3 });
    assert_eq!(run(&context, sql).await, ["300 344850"]);
}

#[tokio::test]
async fn only_what_is_known_to_be_equal_is_shared() {
    let (data, manager, context) = numbers_table(300).await;
    for sql in [
        "SELECT count(DISTINCT key), sum(DISTINCT id) FROM numbers",
        "SELECT key, array_agg(id) FROM numbers GROUP BY key",
        "SELECT median(value) FROM numbers",
        "SELECT count(*) FROM numbers WHERE value > random()",
        "SELECT key, count(*) FROM numbers GROUP BY GROUPING SETS ((key), ())",
        "SELECT sum(id) FROM (SELECT id FROM numbers LIMIT 250)",
        "SELECT min(id) FROM numbers WHERE key = 3 AND id > 5", // It has a dynamic filter.
    ] {
        assert_eq!(sharing(&plan(&context, sql).await).len(), 0, "{sql}");
    }
    // Another function of the same name.
    let other = shared(&manager);
    create(&other, "numbers", data.path()).await;
    let abs = create_udf(
        "abs",
        vec![DataType::Int64],
        DataType::Int64,
        Volatility::Immutable,
        Arc::new(|_: &[ColumnarValue]| Ok(ColumnarValue::from(ScalarValue::Int64(Some(1))))),
    );
    other.register_udf(abs);
    let sql = "SELECT sum(abs(id)), count(*) FROM numbers";
    assert_eq!(run(&context, sql).await, ["44850 300"]);
    assert_eq!(run(&other, sql).await, ["300 300"]);
    assert_eq!(run(&context, sql).await, ["44850 300"]);
}

#[tokio::test]
async fn aggregations_in_one_partition_share_too() {
    let (_data, manager, context) = numbers_table(1000).await;
    set_partitions(&context, 1).await;
    for sql in [QUERY, "SELECT count(*), sum(id) FROM numbers WHERE value > 3"] {
        let rows = sorted(&context, sql).await;
        let again = figures_of(&context, sql).await;
        assert_eq!(again, Figures { computed: 0, from_results: 10, published: 0 }, "{sql}");
        assert_eq!(sorted(&context, sql).await, rows);
    }
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn aggregations_of_many_groups_are_left_to_the_engine() {
    let (_data, _manager, context) = numbers_table(1000).await;
    // Neither has a dictionary.
    for keys in ["value", "text", "value, key > 3"] {
        let sql = format!("SELECT {keys}, count(*) FROM numbers GROUP BY {keys}");
        assert_eq!(sharing(&plan(&context, &sql).await).len(), 0, "{keys}");
    }
    // A chunk has at most 100 whole numbers.
    let few =
        ["key", "id * 2", "value > 5", "id % 7", "CASE WHEN value < 3 THEN 'a' ELSE 'b' END, key"];
    for keys in few {
        let sql = format!("SELECT {keys}, count(*) FROM numbers GROUP BY {keys}");
        assert_eq!(sharing(&plan(&context, &sql).await).len(), 1, "{keys}");
    }
}

#[tokio::test]
async fn large_states_are_not_shared() {
    let (_data, manager, context) = numbers_table(1000).await;
    let sql = "SELECT id / 2, count(*) FROM numbers GROUP BY id / 2";
    for _ in 0..3 {
        let figures = figures_of(&context, sql).await;
        assert_eq!((figures.computed, figures.from_results, figures.published), (10, 0, 0));
    }
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn partitions_give_each_chunk_once_however_they_are_executed() {
    let (_data, manager, context) = numbers_table(2000).await;
    let sql = "SELECT key > 4, count(*), sum(id) FROM numbers GROUP BY key > 4";
    let count = |batches: &[RecordBatch]| -> i64 {
        let counts = batches.iter().flat_map(|batch| {
            batch.column(1).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
        });
        counts.sum()
    };
    for is_known in [false, true, true] {
        let plan = plan(&context, sql).await;
        let [stage] = sharing(&plan).try_into().unwrap();
        let execute = |partition| stage.execute(partition, context.task_ctx()).unwrap();
        // One partition is polled once and waits, another is executed twice.
        let mut first = execute(0);
        let given: Vec<_> = first.by_ref().take(1).map(Result::unwrap).collect().await;
        let second = execute(1).map(Result::unwrap).collect::<Vec<_>>().await;
        let rest = first.map(Result::unwrap).collect::<Vec<_>>().await;
        let others =
            [2, 3].map(|partition| execute(partition).map(Result::unwrap).collect::<Vec<_>>());
        let others = join_all(others).await;
        let all = count(&given) + count(&second) + count(&rest);
        assert_eq!(
            all + others.iter().map(|batches| count(batches)).sum::<i64>(),
            2000,
            "{is_known}"
        );
        let twice = execute(1).map(Result::unwrap).collect::<Vec<_>>().await;
        assert_eq!(count(&twice), count(&second), "a partition has the same rows again");
    }
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn states_belong_to_the_partitions_that_took_them() {
    let (_data, manager, context) = numbers_table(2000).await;
    let sql = "SELECT count(*), sum(id) FROM numbers WHERE key >= 0";
    run(&context, sql).await;
    let plan = plan(&context, sql).await;
    let [stage] = sharing(&plan).try_into().unwrap();
    let execute = |partition| stage.execute(partition, context.task_ctx()).unwrap();
    let rows = |batches: &[RecordBatch]| -> i64 {
        let counts = batches.iter().flat_map(ids_of);
        counts.sum()
    };
    let (mut first, mut second) = (execute(0), execute(1));
    let mut of_first = vec![first.next().await.unwrap().unwrap()];
    let mut of_second = vec![second.next().await.unwrap().unwrap()];
    // Executed again, the partition has the rows that its first stream has given and gives.
    let again = execute(1).map(Result::unwrap).collect::<Vec<_>>().await;
    of_first.extend(first.map(Result::unwrap).collect::<Vec<_>>().await);
    of_second.extend(second.map(Result::unwrap).collect::<Vec<_>>().await);
    let mut all = rows(&of_first) + rows(&of_second);
    for partition in [2, 3] {
        all += rows(&execute(partition).map(Result::unwrap).collect::<Vec<_>>().await);
    }
    assert_eq!(all, 2000);
    assert_eq!(rows(&again), rows(&of_second));
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn an_error_is_nobody_elses() {
    let (_data, manager, context) = numbers_table(1000).await;
    let fails = "SELECT sum(10 / (id - 950)) FROM numbers";
    let works = "SELECT sum(10 / (id - 950)) FROM numbers WHERE id <> 950";
    for _ in 0..3 {
        let (failed, worked) = futures::join!(
            async { context.sql(fails).await.unwrap().collect().await },
            run(&context, works)
        );
        assert!(failed.unwrap_err().to_string().contains("Divide by zero"));
        assert_eq!(worked.len(), 1);
    }
    assert_all_frees(&manager).await;
}
