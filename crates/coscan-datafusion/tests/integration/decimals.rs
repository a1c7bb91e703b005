//! Cheaper arithmetic of decimals gives the rows, types and errors of the engine.

use std::sync::Arc;

use crate::support::{create, explain, manager, plain, run, write};
use arrow::array::{ArrayRef, Decimal128Array, RecordBatch};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

const SEVERAL_64_BITS: i128 = 40_000_000_000_000_000_000;

fn decimals(values: &[Option<i128>], precision: u8, scale: i8) -> ArrayRef {
    let array: Decimal128Array = values.iter().copied().collect();
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

/// The engine, and coscan, on a table with small values, NULLs, values at the limits of 64 bits and beyond.
async fn contexts() -> (TempDir, [SessionContext; 2]) {
    let limit = i128::from(i64::MAX);
    let prices = [Some(1_050), Some(-3), None, Some(0), Some(999_999_999_999_999)];
    let wide = [Some(limit), Some(-limit - 1), Some(7), None, Some(SEVERAL_64_BITS)];
    let discounts = [Some(5), Some(10), Some(0), Some(100), None];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("price", decimals(&prices, 15, 2)),
        ("discount", decimals(&discounts, 15, 2)),
        ("wide", decimals(&wide, 38, 4)),
    ];
    let data = tempfile::tempdir().unwrap();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&data.path().join("t.parquet"), &batch, 2);
    let contexts = [plain(), plain()];
    CoscanOptions::new(&manager(PolicyKind::Relevance)).install(&contexts[1]).unwrap();
    for context in &contexts {
        create(context, "t", data.path()).await;
    }
    (data, contexts)
}

#[tokio::test]
async fn rows_and_types_are_those_of_the_engine() {
    let (_data, [engine, coscan]) = contexts().await;
    let expressions = [
        "price * (1 - discount)",
        "price * (1 - discount) * (1 + discount)",
        "discount + 1.5 - 2",
        "3 - (1 - price)",
        "price * wide",
        "wide - 1",
        "1.00001 - price",
        "price * price * price",
        "2 * price - NULL",
        "CASE WHEN discount > 0 THEN price * discount ELSE 1 - price END",
        "-price * 0.5",
    ];
    for expression in expressions {
        for sql in [
            format!("SELECT {expression} AS x, arrow_typeof({expression}) FROM t"),
            format!("SELECT sum({expression}), avg({expression}) FROM t"),
            format!("SELECT price FROM t WHERE {expression} > 1"),
            format!("SELECT count(*) FROM t GROUP BY {expression}"),
            format!("SELECT a.price FROM t a JOIN t b ON a.price = b.price AND a.{expression} > 0"),
            format!("SELECT price, sum({expression}) OVER (ORDER BY {expression}) FROM t"),
        ] {
            let results = [&engine, &coscan].map(|context| async {
                let frame = context.sql(&sql).await?;
                let names = frame.schema().to_string();
                let mut rows: Vec<_> =
                    frame.to_string().await?.lines().map(str::to_owned).collect();
                rows.sort();
                Ok::<_, datafusion::error::DataFusionError>((names, rows))
            });
            let [theirs, ours] = results;
            match (theirs.await, ours.await) {
                (Ok(theirs), Ok(ours)) => assert_eq!(ours, theirs, "{sql}"),
                (Err(theirs), Err(ours)) => {
                    assert_eq!(ours.to_string(), theirs.to_string(), "{sql}");
                }
                (theirs, ours) => panic!("{sql}: {theirs:?}, but here {ours:?}"),
            }
        }
    }
}

#[tokio::test]
async fn products_that_do_not_fit_are_the_error_of_the_engine() {
    let (_data, contexts) = contexts().await;
    for context in &contexts {
        let frame = context.sql("SELECT wide * wide * wide FROM t").await.unwrap();
        let error = frame.collect().await.unwrap_err().to_string();
        assert!(error.contains("verflow"), "{error}");
    }
}

#[tokio::test]
async fn plans_show_the_cheaper_arithmetic() {
    let (_data, [engine, coscan]) = contexts().await;
    let sql = "EXPLAIN SELECT sum(price * (1 - discount)) FROM t";
    let plan = explain(&coscan, sql).await;
    assert!(
        plan.contains("decimal_product(t.price, Decimal128(1.00,22,2) - t.discount)"),
        "{plan}"
    );
    assert!(!explain(&engine, sql).await.contains("decimal_product"));
    assert_eq!(run(&coscan, "SELECT 1.5 * 2 AS x").await, ["3.0"]);
}

#[tokio::test]
async fn rules_of_the_optimizer_see_products() {
    let (_data, contexts) = contexts().await;
    let rolled_up = ["ROLLUP (price * discount)", "CUBE (price * discount, wide)"];
    for by in rolled_up.into_iter().chain(["GROUPING SETS ((price * discount), ())"]) {
        let sql = format!("SELECT price * discount, count(*) FROM t GROUP BY {by}");
        let mut rows = Vec::new();
        for context in &contexts {
            let mut of_context = run(context, &sql).await;
            of_context.sort();
            rows.push(of_context);
        }
        assert_eq!(rows[0], rows[1], "{by}");
    }
    let outer = "EXPLAIN SELECT a.price FROM t a LEFT JOIN t b ON a.price = b.price \
                 JOIN t c ON a.discount = c.discount WHERE b.wide * b.discount > 1";
    for context in &contexts {
        let plan = explain(context, outer).await;
        assert!(!plan.contains("Left Join"), "{plan}");
        for filter in ["price * discount > 1", "discount + 1 > 1.05"] {
            let sql = format!("EXPLAIN SELECT price FROM t WHERE {filter}");
            let plan = explain(context, &sql).await;
            let line = plan.lines().find(|line| line.contains("partial_filters")).unwrap();
            assert_eq!(line.matches(" > ").count(), 1, "{line}");
        }
    }
}
