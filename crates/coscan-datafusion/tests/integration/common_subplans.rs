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

fn places(explained: &str) -> usize {
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
    assert_eq!(text.matches("CommonSubplanExec: subplan=1, places=2").count(), 2, "{text}");
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
    assert_eq!(places(&explained(&context, BEST).await), 0);
}

#[tokio::test]
async fn rows_are_those_of_plain_datafusion() {
    let (data, manager, context) = numbers_table(1000).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sums = "(SELECT key, sum(value) AS total, count(*) AS n FROM numbers GROUP BY key)";
    let many = "(SELECT id / 2 AS half, max(text) AS text FROM numbers GROUP BY id / 2)";
    for (at_least, sql) in [
        (3, format!("SELECT * FROM {sums} a JOIN {sums} b ON a.key = b.key + 1 JOIN {sums} c ON c.key = a.key")),
        (2, format!("SELECT total FROM {sums} UNION ALL SELECT total * 2 FROM {sums}")),
        (2, format!("SELECT * FROM {sums} a FULL JOIN {sums} b ON a.key = b.key + 4")),
        (2, format!("SELECT a.text, b.text FROM {many} a LEFT JOIN {many} b ON a.half = b.half - 7")),
        (2, format!("SELECT count(*), min(text) FROM {many} WHERE half NOT IN (SELECT other FROM (SELECT id / 2 AS other, max(text) AS t FROM numbers GROUP BY id / 2) WHERE t < 'text 5')")),
        (2, "SELECT a.key, b.key FROM (SELECT DISTINCT key FROM numbers) a, (SELECT DISTINCT key FROM numbers) b".to_owned()),
        (2, format!("SELECT * FROM (SELECT max(total) FROM {sums} WHERE n > 3), (SELECT min(total) FROM {sums} WHERE n > 3)")),
        (2, format!("SELECT * FROM {many} a JOIN {many} b ON a.half = b.half ORDER BY a.half DESC LIMIT 7")),
        (2, format!("SELECT x.k, y.k FROM (SELECT key % 3 AS k, max(total) AS m FROM {sums} GROUP BY key % 3) x \
             JOIN (SELECT key % 3 AS k, max(total) AS m FROM {sums} GROUP BY key % 3) y ON x.m > y.m")),
        (0, format!("SELECT * FROM {sums} a, (SELECT key, sum(value) AS total FROM numbers WHERE id > 3 GROUP BY key) b")),
        (0, "WITH r AS (SELECT key, count(*) AS n FROM numbers WHERE value > random() GROUP BY key) \
             SELECT a.key = b.key AND a.n = b.n FROM r a JOIN r b ON a.key = b.key".to_owned()),
    ] {
        let text = explained(&context, &sql).await;
        assert_eq!(places(&text), at_least, "{sql}\n{text}");
        if sql.contains("random") {
            continue;
        }
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
    assert_eq!(places(&text), 0, "{text}");
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
async fn a_recursive_query_reads_its_rows_anew_each_time() {
    let (data, _manager, context) = numbers_table(100).await;
    let reference = plain();
    create(&reference, "numbers", data.path()).await;
    let sql = "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL \
         SELECT x + a.m + b.m FROM r, (SELECT max(key) AS m FROM numbers) a, (SELECT max(key) AS m FROM numbers) b \
         WHERE x < 100) \
         SELECT x FROM r ORDER BY x";
    assert_eq!(run(&context, sql).await, run(&reference, sql).await);
}

#[tokio::test]
async fn each_place_counts_its_rows() {
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
