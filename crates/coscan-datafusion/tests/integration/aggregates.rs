//! Cheaper aggregations give the rows of the engine's, and look like them in EXPLAIN.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Int8Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray, UInt64Array,
};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use datafusion::common::resources_datafusion_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::{explain, manager, plain, plan, run, set_partitions};

const BATCHES: i64 = 12;
const BATCH_ROWS: i64 = 1_000;

/// Rows with keys of several kinds. Texts are long in some rows of the last batches only.
fn rows(batch: i64) -> RecordBatch {
    let ids = || batch * BATCH_ROWS..(batch + 1) * BATCH_ROWS;
    let text = |id: i64| match id % 11 {
        0 => None,
        1 => Some(String::new()),
        2 => Some("twelve bytes".to_owned()),
        3 => Some("twelve byteS".to_owned()),
        4 if batch >= 5 => Some(format!("more than twelve bytes {}", id % 3)),
        _ => Some(format!("t{}", id % 7)),
    };
    let short = |id: i64| ["A", "N", "R"][(id % 3) as usize];
    let day = |id: i64| (id % 5 > 0).then_some((id % 13) as i32 - 6);
    let time = |id: i64| (id % 6 > 0).then_some(1_700_000_000_000_000 + id % 4 * 3_600_000_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids().collect::<Int64Array>())),
        ("text", Arc::new(ids().map(text).collect::<StringViewArray>())),
        ("short", Arc::new(StringViewArray::from_iter_values(ids().map(short)))),
        ("small", Arc::new(ids().map(|id| (id % 9 - 4) as i8).collect::<Int8Array>())),
        ("large", Arc::new(ids().map(|id| u64::MAX - id as u64 % 3).collect::<UInt64Array>())),
        ("day", Arc::new(ids().map(day).collect::<Date32Array>())),
        (
            "time",
            Arc::new(ids().map(time).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        ),
        ("n", Arc::new(ids().map(|id| (id % 4 > 0).then_some(id % 100)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, name != "id")),
    )
    .unwrap()
}

/// Registers the rows, in two partitions, and installs coscan.
fn with_rows(context: SessionContext, coscan: Option<CoscanOptions>) -> SessionContext {
    if let Some(coscan) = coscan {
        coscan.install(&context).unwrap();
    }
    let batches: Vec<_> = (0..BATCHES).map(rows).collect();
    let partitions = batches.chunks(6).map(<[RecordBatch]>::to_vec).collect();
    let table = MemTable::try_new(batches[0].schema(), partitions).unwrap();
    context.register_table("m", Arc::new(table)).unwrap();
    context
}

/// The engine, and coscan.
fn contexts() -> [SessionContext; 2] {
    let coscan = CoscanOptions::new(&manager(PolicyKind::Relevance));
    [with_rows(plain(), None), with_rows(plain(), Some(coscan))]
}

/// The number of first stages in whose place coscan has its own.
fn cheaper(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let is_cheaper = plan.name() == "AggregateExec" && !plan.is::<AggregateExec>();
    usize::from(is_cheaper) + plan.children().into_iter().map(cheaper).sum::<usize>()
}

const AGGREGATES: &str = "count(*), count(n), sum(n), avg(n), min(text), max(day), \
                          sum(n) FILTER (WHERE small > 0), bool_or(n = 5)";

async fn assert_equal(contexts: &[SessionContext; 2], sql: &str) {
    let [engine, coscan] = contexts;
    let (mut theirs, mut ours) = (run(engine, sql).await, run(coscan, sql).await);
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs, "{sql}");
}

#[tokio::test]
async fn rows_are_those_of_the_engine() {
    let contexts = contexts();
    let keys = [
        "short",
        "text",
        "short, text",
        "short, small",
        "large, day",
        "time, short, day, small",
        "day, time",
        "text, id % 3",
        "substr(text, 1, 3), n",
        "short, id",
        "CASE WHEN id > 6000 THEN text ELSE short END, short",
        "date_trunc('hour', time), short",
    ];
    for batch_rows in [8_192, 100, 7] {
        for partitions in [1, 4] {
            for context in &contexts {
                set_partitions(context, partitions).await;
                run(context, &format!("SET datafusion.execution.batch_size = {batch_rows}")).await;
            }
            for keys in keys {
                assert_equal(
                    &contexts,
                    &format!("SELECT {keys}, {AGGREGATES} FROM m GROUP BY {keys}"),
                )
                .await;
            }
            assert_equal(&contexts, "SELECT DISTINCT short, small FROM m").await;
            assert_equal(
                &contexts,
                "SELECT short, text, sum(n) FROM m WHERE id < 0 GROUP BY short, text",
            )
            .await;
        }
    }
}

#[tokio::test]
async fn first_stages_with_short_keys_are_replaced() {
    let [_, coscan] = contexts();
    for (keys, is_replaced) in [
        ("short", true),
        ("short, text", true),
        ("large, day", true),
        ("time, short, day, small", true),
        ("n", false),
        ("short, CAST(n AS DOUBLE)", false),
        ("short, n > 5", false),
        ("time, short, day, small, n", false),
        ("GROUPING SETS ((short), (text))", false),
    ] {
        let plan = plan(&coscan, &format!("SELECT count(*) FROM m GROUP BY {keys}")).await;
        assert_eq!(cheaper(&plan), usize::from(is_replaced), "{keys}");
    }
}

/// The figures of the first stage in EXPLAIN ANALYZE, in two tasks.
async fn figures_of_first_stage(context: &SessionContext, sql: &str) -> String {
    set_partitions(context, 2).await;
    let plan = explain(context, &format!("EXPLAIN ANALYZE {sql}")).await;
    plan.lines().find(|line| line.contains("mode=Partial")).unwrap().to_owned()
}

#[tokio::test]
async fn explain_shows_them_as_the_engine_does() {
    let contexts = contexts();
    let sql = "SELECT short, sum(n) FROM m GROUP BY short";
    let [theirs, ours] = [&contexts[0], &contexts[1]].map(|context| async {
        let plan = explain(context, &format!("EXPLAIN {sql}")).await;
        let lines = plan.lines().filter(|line| line.contains("AggregateExec:"));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(ours.await, theirs.await);
    let first = figures_of_first_stage(&contexts[1], sql).await;
    assert!(first.contains("output_rows=6") && first.contains("reduction_factor="), "{first}");
    assert!(!first.contains("skipped_aggregation_rows="), "{first}");
}

#[tokio::test]
async fn the_engine_aggregates_the_rest_of_many_groups() {
    let contexts = contexts();
    let sql = "SELECT short, id, count(*) FROM m GROUP BY short, id";
    let first = figures_of_first_stage(&contexts[1], sql).await;
    // Each task has 6,000 groups. The figure is one of the engine's operator.
    assert!(first.contains("output_rows=12.00 K"), "{first}");
    assert!(first.contains("skipped_aggregation_rows="), "{first}");
    assert_equal(&contexts, sql).await;
}

#[tokio::test]
async fn inputs_may_have_other_names_than_their_plan() {
    let contexts = contexts();
    let sql = "SELECT k, n, count(*) FROM (SELECT short AS k, n FROM m UNION ALL SELECT DISTINCT text, n FROM m) \
               GROUP BY k, n";
    assert_equal(&contexts, sql).await;
}

#[tokio::test]
async fn functions_with_an_order_and_of_several_arguments_are_those_of_the_engine() {
    let contexts = contexts();
    let sql = "SELECT short, text, first_value(n ORDER BY id DESC), count(DISTINCT n), corr(id, small) > 0 FROM m \
               GROUP BY short, text";
    assert_equal(&contexts, sql).await;
}

#[tokio::test]
async fn a_plan_is_executed_twice() {
    let [_, coscan] = contexts();
    let plan = plan(&coscan, "SELECT text, sum(n) FROM m GROUP BY text").await;
    assert_eq!(cheaper(&plan), 1);
    let again = reset_plan_states(Arc::clone(&plan)).unwrap();
    let mut rows = Vec::new();
    for plan in [plan, again] {
        let batches = collect(plan, coscan.task_ctx()).await.unwrap();
        let mut of_plan = crate::support::slt::rows(&batches).unwrap();
        of_plan.sort();
        rows.push(of_plan);
    }
    assert_eq!(rows[0].len(), 14);
    assert_eq!(rows[0], rows[1]);
}

/// A pool that has no memory for coscan's first stages.
#[derive(Debug, Default)]
struct Refusing(UnboundedMemoryPool);

impl fmt::Display for Refusing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.0.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.0.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        match consumer.name().starts_with("PartialAggregate[") {
            true => Err(resources_datafusion_err!("no memory for {}", consumer.name())),
            false => self.0.try_grow(reservation, additional),
        }
    }

    fn reserved(&self) -> usize {
        self.0.reserved()
    }
}

#[tokio::test]
async fn without_memory_the_engine_aggregates_the_rest() {
    let pool = Arc::new(Refusing::default());
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool) as _);
    let config = SessionConfig::new().with_target_partitions(2);
    let context = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    let coscan = CoscanOptions::new(&manager(PolicyKind::Relevance)).with_session_memory_pool();
    let contexts = [with_rows(plain(), None), with_rows(context, Some(coscan))];
    let sql = format!("SELECT short, small, {AGGREGATES} FROM m GROUP BY short, small");
    assert_equal(&contexts, &sql).await;
    // Both tasks have nine groups in their first batch, and again in the rest.
    let first = figures_of_first_stage(&contexts[1], &sql).await;
    assert!(first.contains("output_rows=36"), "{first}");
    assert_eq!(pool.reserved(), 0);
}
