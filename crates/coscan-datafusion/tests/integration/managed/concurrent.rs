//! Statements at the same time: each sees one moment, and no change is lost.

use futures::future::join_all;

use super::{Fixture, MANY};
use crate::support::run;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost() {
    let fixture = Fixture::filled().await;
    let writers = (0..6).map(|_| {
        let context = fixture.session();
        tokio::spawn(async move {
            let mut done = 0;
            for _ in 0..10 {
                let planned = context.sql("UPDATE t SET key = key + 1 WHERE id = 5").await.unwrap();
                match planned.collect().await {
                    Ok(_) => done += 1,
                    Err(error) => {
                        assert!(error.to_string().contains("committed first"), "{error}");
                    }
                }
            }
            done
        })
    });
    let done: i64 = join_all(writers).await.into_iter().map(Result::unwrap).sum();
    assert!(done > 0);
    let key = fixture.run("SELECT key FROM t WHERE id = 5").await;
    assert_eq!(key, [(5 + done).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_sees_all_tables_at_one_moment() {
    let fixture = Fixture::filled().await;
    fixture.create("u").await;
    fixture.run("INSERT INTO u VALUES (0, 0, NULL)").await;
    let writer = fixture.session();
    // Each statement moves the sum of both tables between them.
    let writing = tokio::spawn(async move {
        for step in 0..30 {
            run(&writer, "UPDATE t SET key = key - 1 WHERE id < 3 AND id >= 0").await;
            run(&writer, "UPDATE u SET key = key + 3").await;
            run(&writer, &format!("INSERT INTO t VALUES ({}, 0, NULL)", MANY + step)).await;
        }
    });
    let readers = (0..3).map(|_| {
        let context = fixture.session();
        tokio::spawn(async move {
            for _ in 0..20 {
                let twice = "SELECT (SELECT sum(key) FROM t) = sum(key), count(*) = \
                             (SELECT count(id) FROM t) FROM t";
                assert_eq!(run(&context, twice).await, ["true true"]);
                let both = "SELECT 45 * 7000 - (SELECT sum(key) FROM t) - (SELECT sum(key) FROM u)";
                let moved: i64 = run(&context, both).await[0].parse().unwrap();
                assert!(moved == 0 || moved == 3, "{moved}");
            }
        })
    });
    for reader in join_all(readers).await {
        reader.unwrap();
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_plan_keeps_the_rows_of_its_moment() {
    let fixture = Fixture::filled().await;
    let query = fixture.context.sql("SELECT count(*), sum(key) FROM t WHERE id + 0 >= 0").await;
    let plan = query.unwrap().create_physical_plan().await.unwrap();
    fixture.run("DELETE FROM t WHERE id < 1000").await;
    fixture.run("UPDATE t SET key = 0").await;
    let batches =
        datafusion::physical_plan::collect(plan, fixture.context.task_ctx()).await.unwrap();
    let rows = crate::support::slt::rows(&batches).unwrap();
    assert_eq!(rows, [format!("{MANY} {}", 45 * MANY / 10)]);
}

/// Statements that wait for each other in the middle, so that each sees the rows before the others change them.
mod in_the_middle {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
    use datafusion::prelude::SessionContext;

    /// Adds a function that calls `meanwhile` the first `times` times that it is executed, and returns its argument.
    pub(super) fn add(
        context: &SessionContext,
        times: u32,
        meanwhile: impl Fn() + Send + Sync + 'static,
    ) -> Arc<AtomicU32> {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let function = move |arguments: &[ColumnarValue]| {
            if counted.fetch_add(1, Ordering::SeqCst) < times {
                meanwhile();
            }
            Ok(arguments[0].clone())
        };
        let types = (vec![DataType::Int64], DataType::Int64, Volatility::Volatile);
        context.register_udf(create_udf(
            "meanwhile",
            types.0,
            types.1,
            types.2,
            Arc::new(function),
        ));
        calls
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_statement_that_loses_is_executed_again_up_to_three_times() {
    for (losses, succeeds) in [(0, true), (1, true), (3, true), (4, false)] {
        let fixture = Fixture::new().await;
        fixture.run("INSERT INTO t VALUES (1, 0, NULL)").await;
        let other = fixture.session();
        let calls = in_the_middle::add(&fixture.context, losses, move || {
            let update = run(&other, "UPDATE t SET key = key + 10");
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(update));
        });
        let update = "UPDATE t SET key = meanwhile(key) + 1";
        if succeeds {
            assert_eq!(fixture.run(update).await, ["1"], "{losses}");
        } else {
            assert!(fixture.error(update).await.contains("committed first"));
        }
        let expected = 10 * losses + u32::from(succeeds);
        assert_eq!(fixture.run("SELECT key FROM t").await, [expected.to_string()], "{losses}");
        assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 1 + losses.min(3));
    }
}
