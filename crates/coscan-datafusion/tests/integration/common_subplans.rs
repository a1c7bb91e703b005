//! Equal aggregations of a statement are executed once, and it has the rows of plain DataFusion.

use std::sync::Arc;

use coscan_runtime::core::PolicyKind;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions, SessionContext};

use crate::support::{
    assert_all_frees, create, explain, manager, numbers_directory, numbers_table, plain, plan, run,
    share_no_results, shared, write_numbers,
};

const OPERATOR: &str = "CommonSubplanExec";

/// The best groups, as in TPC-H Q15.
const BEST: &str = "WITH sums AS (SELECT key, sum(value) AS total FROM numbers WHERE id > 50 GROUP BY key) \
     SELECT key, total FROM sums WHERE total = (SELECT max(total) FROM sums) ORDER BY key";

fn consumers(explained: &str) -> usize {
    explained.matches(OPERATOR).count()
}

async fn explained(context: &SessionContext, sql: &str) -> String {
    explain(context, &format!("EXPLAIN {sql}")).await
}

/// All scans of a plan.
fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let own = (plan.name() == "SharedScanExec").then(|| Arc::clone(plan));
    own.into_iter().chain(plan.children().into_iter().flat_map(scans)).collect()
}

fn delivered(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let of = |scan: &Arc<dyn ExecutionPlan>| {
        let sum = scan.metrics().and_then(|metrics| metrics.sum_by_name("chunks_delivered"));
        sum.map_or(0, |sum| sum.as_usize())
    };
    scans(plan).iter().map(of).sum()
}

#[tokio::test]
async fn a_with_query_that_is_read_twice_is_executed_once() {
    let (data, manager, context) = numbers_table(1000).await;
    share_no_results(&context).await;
    let text = explained(&context, BEST).await;
    assert_eq!(text.matches("CommonSubplanExec: subplan=1, consumers=2").count(), 2, "{text}");
    let planned = plan(&context, BEST).await;
    collect(Arc::clone(&planned), context.task_ctx()).await.unwrap();
    assert_eq!(scans(&planned).len(), 2);
    assert_eq!(delivered(&planned), 10, "each chunk once");
    drop(planned);
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    assert_eq!(run(&context, BEST).await, run(&reference, BEST).await);
    assert_all_frees(&manager).await;
    run(&context, "SET coscan.sharing = false").await;
    assert_eq!(consumers(&explained(&context, BEST).await), 0);
}

#[tokio::test]
async fn rows_are_those_of_plain_datafusion() {
    let (data, manager, context) = numbers_table(1000).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sums = "(SELECT key, sum(value) AS total, count(*) AS n FROM numbers GROUP BY key)";
    let many = "(SELECT id / 2 AS half, max(text) AS text FROM numbers GROUP BY id / 2)";
    for (expected, sql) in [
        (3, format!("SELECT * FROM {sums} a JOIN {sums} b ON a.key = b.key + 1 JOIN {sums} c ON c.key = a.key")),
        (2, format!("SELECT total FROM {sums} UNION ALL SELECT total * 2 FROM {sums}")),
        (2, format!("SELECT * FROM {sums} a FULL JOIN {sums} b ON a.key = b.key + 4")),
        (2, format!("SELECT a.text, b.text FROM {many} a LEFT JOIN {many} b ON a.half = b.half - 7")),
        (2, format!("SELECT count(*), min(text) FROM {many} WHERE half NOT IN (SELECT other FROM (SELECT id / 2 AS other, max(text) AS t FROM numbers GROUP BY id / 2) WHERE t < 'text 5')")),
        (2, "SELECT a.key, b.key FROM (SELECT DISTINCT key FROM numbers) a, (SELECT DISTINCT key FROM numbers) b".to_owned()),
        (2, format!("SELECT * FROM (SELECT max(total) FROM {sums} WHERE n > 3), (SELECT min(total) FROM {sums} WHERE n > 3)")),
        (0, format!("SELECT * FROM {many} a JOIN {many} b ON a.half = b.half ORDER BY a.half DESC LIMIT 7")),
        (2, format!("SELECT x.k, y.k FROM (SELECT key % 3 AS k, max(total) AS m FROM {sums} GROUP BY key % 3) x \
             JOIN (SELECT key % 3 AS k, max(total) AS m FROM {sums} GROUP BY key % 3) y ON x.m > y.m")),
        (0, format!("SELECT * FROM {sums} a, (SELECT key, sum(value) AS total FROM numbers WHERE id > 3 GROUP BY key) b")),
        // A limit may leave other rows each time.
        (0, "SELECT a.m, b.m FROM (SELECT count(*) AS m FROM (SELECT id FROM numbers LIMIT 5)) a, \
             (SELECT count(*) AS m FROM (SELECT id FROM numbers LIMIT 5)) b".to_owned()),
        // Both consumers of the cross join are filtered, which reduces neither.
        (2, format!("SELECT * FROM (SELECT total FROM {sums} WHERE n > 3) a CROSS JOIN (SELECT total FROM {sums} WHERE total > 7 AND n > 2) b")),
        (0, "SELECT * FROM (SELECT max(column1) AS m FROM (VALUES (1), (2))) a, \
             (SELECT max(column1) AS m FROM (VALUES (1), (2))) b".to_owned()),
        // Two subplans.
        (4, format!("SELECT a.total + a.n AS x, b.total + b.n AS y FROM {sums} a JOIN {sums} b ON a.key = b.key \
             UNION ALL SELECT c.half AS x, d.half AS y FROM {many} c JOIN {many} d ON c.text = d.text")),
    ] {
        let text = explained(&context, &sql).await;
        assert_eq!(consumers(&text), expected, "{sql}\n{text}");
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert_eq!(sorted(run(&context, &sql).await), sorted(run(&reference, &sql).await), "{sql}");
        assert_all_frees(&manager).await;
    }
}

#[tokio::test]
async fn a_join_that_needs_few_groups_has_a_subplan_of_its_own() {
    let (_data, _manager, context) = numbers_table(1000).await;
    let side = "SELECT n.id, s.total FROM numbers n \
         JOIN (SELECT key, sum(value) AS total FROM numbers GROUP BY key) s ON n.key = s.key WHERE n.id = ";
    let text = explained(&context, &format!("{side} 1 UNION ALL {side} 2")).await;
    assert_eq!(consumers(&text), 0, "{text}");
}

#[tokio::test]
async fn tables_of_one_name_are_not_mixed_up() {
    let (first, second) = (numbers_directory(100), numbers_directory(100));
    write_numbers(&second.path().join("numbers.parquet"), 500..600);
    let manager = manager(PolicyKind::Relevance);
    for context in [shared(&manager), plain()] {
        let mut maxima = Vec::new();
        for data in [&first, &second] {
            let path = data.path().join("numbers.parquet");
            let options = ParquetReadOptions::default();
            let numbers = context.read_parquet(path.to_str().unwrap(), options).await.unwrap();
            let maximum =
                datafusion::functions_aggregate::expr_fn::max(datafusion::prelude::col("id"));
            maxima.push(numbers.aggregate(vec![], vec![maximum.alias("m")]).unwrap());
        }
        let [one, other] = maxima.try_into().unwrap();
        let rows = one.union(other).unwrap().collect().await.unwrap();
        let mut rows: Vec<i64> = rows.iter().flat_map(crate::support::ids_of).collect();
        rows.sort_unstable();
        assert_eq!(rows, [99, 599]);
    }
}

#[tokio::test]
async fn recursive_queries_share_no_subplans() {
    let (data, _manager, context) = numbers_table(100).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sql = "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL \
         SELECT x + a.m + b.m FROM r, (SELECT max(key) AS m FROM numbers) a, (SELECT max(key) AS m FROM numbers) b \
         WHERE x < 100) \
         SELECT x FROM r ORDER BY x";
    assert_eq!(consumers(&explained(&context, sql).await), 0);
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
}

#[tokio::test]
async fn each_consumer_counts_its_rows() {
    let (_data, _manager, context) = numbers_table(1000).await;
    let planned = plan(&context, BEST).await;
    collect(Arc::clone(&planned), context.task_ctx()).await.unwrap();
    fn subplans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
        let own = (plan.name() == OPERATOR).then(|| Arc::clone(plan));
        own.into_iter().chain(plan.children().into_iter().flat_map(subplans)).collect()
    }
    let subplans = subplans(&planned);
    assert_eq!(subplans.len(), 2);
    for subplan in &subplans {
        assert_eq!(subplan.metrics().unwrap().output_rows(), Some(10));
    }
}

#[tokio::test]
async fn volatile_aggregations_are_not_common() {
    let (_data, _manager, context) = numbers_table(100).await;
    let sql = "WITH r AS (SELECT key, count(*) AS n FROM numbers WHERE value > random() GROUP BY key) \
         SELECT a.n, b.n FROM r a JOIN r b ON a.key = b.key";
    assert_eq!(consumers(&explained(&context, sql).await), 0);
}

#[tokio::test]
async fn consumers_that_are_planned_differently_execute_their_own_copies() {
    let (data, manager, context) = numbers_table(1000).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    // One consumer is sorted below the operator, since that keeps the order.
    let sql = "WITH g AS (SELECT key, count(*) AS n FROM numbers GROUP BY key), \
         s AS (SELECT key, row_number() OVER (ORDER BY key) AS place FROM g) \
         SELECT s.key, s.place, g.n FROM s JOIN g ON s.key = g.key ORDER BY s.key";
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn all_consumers_get_the_error_of_the_subplan() {
    let (_data, manager, context) = numbers_table(1000).await;
    let sql = "WITH g AS (SELECT key, sum(1 / (id - 500)) AS n FROM numbers GROUP BY key) \
         SELECT a.n FROM g a JOIN g b ON a.key = b.key";
    let error = context.sql(sql).await.unwrap().collect().await.unwrap_err().to_string();
    assert!(error.contains("Divide by zero"), "{error}");
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_consumer_that_is_not_read_stops_nobody() {
    let (_data, manager, context) = numbers_table(1000).await;
    let sums = "(SELECT key, sum(value) AS total FROM numbers GROUP BY key)";
    let sql = format!("SELECT key FROM {sums} UNION ALL SELECT key FROM {sums} LIMIT 3");
    assert_eq!(run(&context, &sql).await.len(), 3);
    let empty = format!(
        "SELECT * FROM (SELECT * FROM numbers WHERE text = 'none') n JOIN (SELECT a.key FROM {sums} a JOIN {sums} b \
         ON a.total = b.total) s ON n.key = s.key"
    );
    assert_eq!(run(&context, &empty).await.len(), 0);
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_plan_is_executed_again() {
    let (_data, manager, context) = numbers_table(1000).await;
    let plan = plan(&context, BEST).await;
    assert_eq!(consumers(&explained(&context, BEST).await), 2);
    let first = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    let again = datafusion::physical_plan::execution_plan::reset_plan_states(plan).unwrap();
    let second = collect(again, context.task_ctx()).await.unwrap();
    assert_eq!(first, second);
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn literals_of_other_time_zones_are_not_equal() {
    let (data, _manager, context) = numbers_table(100).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let hours = |offset: &str| {
        let time = |hour: u32| {
            let kind = format!("Timestamp(Nanosecond, Some(\"{offset}\"))");
            format!("arrow_cast('2024-01-01T{hour:02}:00:00Z', '{kind}')")
        };
        format!(
            "SELECT h, count(*) AS c FROM (SELECT date_part('hour', CASE WHEN key > 5 THEN {} ELSE {} END) AS h \
             FROM numbers) GROUP BY h",
            time(0),
            time(9)
        )
    };
    let sql = format!("{} UNION ALL {} ORDER BY h, c", hours("+01:00"), hours("-05:00"));
    assert_eq!(run(&context, &sql).await, run(&reference, &sql).await);
}

#[tokio::test]
async fn columns_of_a_subplan_may_have_the_same_name() {
    let (data, _manager, context) = numbers_table(100).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sql = "WITH t AS (SELECT a.key AS x, b.key AS y, count(*) AS c FROM numbers a JOIN numbers b \
         ON a.id = b.id + 1 GROUP BY a.key, b.key) \
         SELECT p.x, p.y, q.x FROM t p JOIN t q ON p.c = q.c AND p.x = q.y ORDER BY 1, 2, 3";
    assert_eq!(consumers(&explained(&context, sql).await), 2);
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
}

#[tokio::test]
async fn copies_of_a_subplan_are_independent() {
    let (data, manager, context) = numbers_table(1000).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    // The subplan has a subquery of its own, and one of its consumers is sorted.
    let sql = "WITH t AS (SELECT key, sum(value) AS q FROM numbers WHERE value > (SELECT avg(value) FROM numbers) \
         GROUP BY key) \
         SELECT key, q, row_number() OVER (ORDER BY key) AS r FROM t UNION ALL SELECT key, q, 0 FROM t ORDER BY 1, 3";
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_limit_above_leaves_aggregations_as_they_are() {
    let (_data, _manager, context) = numbers_table(1000).await;
    let distinct = "SELECT DISTINCT id, key FROM numbers";
    let sql =
        format!("SELECT * FROM ({distinct} LIMIT 5) UNION ALL SELECT * FROM ({distinct} LIMIT 7)");
    assert_eq!(consumers(&explained(&context, &sql).await), 0);
}

#[tokio::test]
async fn an_aggregation_inside_a_common_one_is_no_consumer_alone() {
    let (data, _manager, context) = numbers_table(1000).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sql = "WITH a AS (SELECT key, sum(value) AS s FROM numbers GROUP BY key), \
         b AS (SELECT s > 100 AS large, count(*) AS c FROM a GROUP BY s > 100) \
         SELECT x.c FROM b x JOIN b y ON x.c = y.c UNION ALL SELECT count(*) FROM a JOIN numbers n ON a.key = n.id \
         WHERE n.value > 3 ORDER BY 1";
    let text = explained(&context, sql).await;
    assert_eq!(
        (consumers(&text), text.matches("subplan=1, consumers=2").count()),
        (2, 2),
        "{text}"
    );
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
}

#[tokio::test]
async fn statements_with_very_many_aggregations_are_left_alone() {
    let (_data, _manager, context) = numbers_table(100).await;
    for (count, expected) in [(64, 64), (65, 0)] {
        let sums =
            vec!["SELECT key, count(*) FROM numbers GROUP BY key"; count].join(" UNION ALL ");
        assert_eq!(consumers(&explained(&context, &sums).await), expected);
    }
}
