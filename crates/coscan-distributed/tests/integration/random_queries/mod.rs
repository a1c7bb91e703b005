//! Random queries, which have the rows of plain DataFusion over three workers, whatever the settings of the session.

#[path = "../../../../coscan-datafusion/tests/integration/random_queries/answers.rs"]
#[allow(dead_code, reason = "not all of it is for these tests")]
mod answers;
#[path = "../../../../coscan-datafusion/tests/integration/random_queries/expressions.rs"]
mod expressions;
#[path = "../../../../coscan-datafusion/tests/integration/random_queries/query.rs"]
mod query;
#[path = "../../../../coscan-datafusion/tests/integration/random_queries/tables.rs"]
#[allow(dead_code, reason = "not all of it is for these tests")]
mod tables;

use std::time::Duration;

use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use tokio::time::timeout;

use self::answers::Answer;
use self::query::Generator;
use self::tables::Declared;
use crate::cluster::{TestCluster, TestOptions};
use crate::support::Seeded;

/// What takes longer does not end.
const HANGS: Duration = Duration::from_secs(120);

const USUAL: std::ops::Range<u64> = 0..200;

/// Values of settings that travel, each of which changes plans or batches. Some queries have some of them.
const SETTINGS: [(&str, &[&str]); 9] = [
    ("datafusion.execution.target_partitions", &["1", "2", "4"]),
    ("datafusion.execution.batch_size", &["16", "100", "8192"]),
    ("datafusion.optimizer.prefer_hash_join", &["true", "false"]),
    ("datafusion.optimizer.hash_join_single_partition_threshold", &["0", "1048576"]),
    ("datafusion.optimizer.hash_join_single_partition_threshold_rows", &["0", "131072"]),
    ("datafusion.optimizer.repartition_aggregations", &["true", "false"]),
    ("datafusion.optimizer.repartition_sorts", &["true", "false"]),
    ("datafusion.optimizer.enable_dynamic_filter_pushdown", &["true", "false"]),
    ("datafusion.optimizer.enable_round_robin_repartition", &["true", "false"]),
];

fn numbers() -> std::ops::Range<u64> {
    let Ok(asked) = std::env::var("COSCAN_RANDOM_QUERIES") else { return USUAL };
    let (first, end) = asked.split_once("..").expect("a range such as 0..300");
    first.parse().unwrap()..end.parse().unwrap()
}

/// The difference between the rows over workers and the right ones, or whether workers have executed the query.
async fn check(
    cluster: &TestCluster,
    (plain, shared): (&SessionContext, &SessionContext),
    number: u64,
) -> Result<bool, String> {
    let mut random = Seeded::new(number.wrapping_mul(0x9E6D_62D0_6F6A_9A9B));
    let session = shared.state();
    let session = SessionContext::new_with_state(session);
    let mut set = String::new();
    for (name, values) in SETTINGS {
        let value = random.pick(values);
        let statement = format!("SET {name} = {value}");
        session.sql(&statement).await.unwrap().collect().await.unwrap();
        set = format!("{set}{statement}; ");
    }
    let query = Generator::new(random).query();
    let case = |what: String| format!("query {number}: {what}\n{}\n{set}", query.sql);
    let Ok(right) = Answer::of(plain, &query.sql).await else { return Ok(false) };
    let unlimited = match &query.unlimited {
        Some(unlimited) => match Answer::of(plain, unlimited).await {
            Ok(unlimited) => Some(unlimited),
            Err(_) => return Ok(false),
        },
        None => None,
    };
    let Ok(alone) = Answer::of(&session, &query.sql).await else {
        return Ok(false); // The engine refuses it under these settings.
    };
    if alone.compare(&right, &query, unlimited.as_ref()).is_err() {
        return Ok(false); // The engine has other rows under these settings.
    }
    let fields = plain.sql(&query.sql).await.map_err(|error| error.to_string())?;
    let types = fields.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let is_distributed = cluster.distributes(&session, &query.sql).await;
    let rows = timeout(HANGS, cluster.query_anywhere(&session, &query.sql)).await;
    let rows = rows.map_err(|_| case("does not end".to_owned()))?;
    let rows = rows.map_err(|error| case(error.to_string()))?;
    let answer = Answer::of_batches(types, &rows).map_err(|error| case(error.to_string()))?;
    answer.compare(&right, &query, unlimited.as_ref()).map_err(case)?;
    Ok(is_distributed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_queries_have_the_rows_of_plain_datafusion_over_workers() {
    let data = tempfile::tempdir().unwrap();
    tables::write(data.path(), 0);
    let plain = SessionContext::new();
    tables::create(&plain, data.path(), Declared::Nothing).await;
    let cluster = TestCluster::start(&TestOptions { chunk_rows: 100, ..TestOptions::small(3) });
    let shared = SessionContext::new();
    cluster.coscan.clone().install(&shared).unwrap();
    tables::create(&shared, data.path(), Declared::Order).await;
    let numbers = numbers();
    let total = numbers.clone().count();
    let outcomes = stream::iter(numbers).map(|number| check(&cluster, (&plain, &shared), number));
    let outcomes: Vec<_> = outcomes.buffer_unordered(4).collect().await;
    let distributed = outcomes.iter().filter(|outcome| matches!(outcome, Ok(true))).count();
    let differences: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    println!("{distributed} of {total} queries were distributed");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n\n"));
    assert!(distributed * 3 > total, "{distributed} of {total} queries were distributed");
}
