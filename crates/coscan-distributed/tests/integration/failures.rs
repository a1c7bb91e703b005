//! Tasks that fail, and plans that workers refuse.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{TABLES, sorted_rows, tpch_session, tpch_tables};

/// `panics(x)`: panics where x is 1, and is x otherwise.
fn panics() -> ScalarUDF {
    let call = |arguments: &[ColumnarValue]| {
        let values = arguments[0].to_array(1)?;
        let values = values.as_primitive::<Int64Type>();
        assert!(!values.iter().flatten().any(|value| value == 1), "there is a 1");
        Ok(arguments[0].clone())
    };
    let number = DataType::Int64;
    create_udf("panics", vec![number.clone()], number, Volatility::Volatile, Arc::new(call))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_in_a_task_is_an_error_and_loses_no_rows() {
    let cluster = TestCluster::start_with(&TestOptions::small(3), |state| {
        state.register_udf(panics().into())?;
        Ok(())
    });
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    session.register_udf(panics());
    for sql in [
        "SELECT panics(l_orderkey) FROM lineitem",
        "SELECT panics(l_orderkey), count(*) FROM lineitem GROUP BY 1",
        "SELECT count(*) FROM orders, (SELECT panics(l_orderkey) AS key FROM lineitem) WHERE o_orderkey = key",
    ] {
        let error = cluster.query(&session, sql).await.unwrap_err().to_string();
        assert!(error.contains("there is a 1"), "{sql}: {error}");
    }
    // The workers go on.
    let sql = "SELECT count(*) FROM lineitem";
    let right = session.sql(sql).await.unwrap().collect().await.unwrap();
    let sql = "SELECT sum(n) FROM (SELECT l_returnflag, count(*) AS n FROM lineitem GROUP BY 1)";
    assert_eq!(sorted_rows(&cluster.query(&session, sql).await.unwrap()), sorted_rows(&right));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_that_was_replaced_is_an_error() {
    let cluster = TestCluster::start(&TestOptions::small(2));
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    std::fs::copy(tpch_tables().join("orders.parquet"), &file).unwrap();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", file.display());
    session.sql(&create).await.unwrap().collect().await.unwrap();
    let sql = "SELECT o_orderpriority, count(*), sum(o_totalprice) FROM t GROUP BY 1";
    let right = session.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(sorted_rows(&cluster.query(&session, sql).await.unwrap()), sorted_rows(&right));
    let other = directory.path().join("other.parquet");
    std::fs::copy(tpch_tables().join("customer.parquet"), &other).unwrap();
    std::fs::rename(&other, &file).unwrap();
    let sql = "SELECT o_clerk, count(*) FROM t GROUP BY 1";
    let error = cluster.query(&session, sql).await.unwrap_err().to_string();
    assert!(error.contains("t.parquet"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_read_only_what_they_may() {
    let readable = format!("file://{}/nothing/", tpch_tables().display());
    let options = TestOptions { readable, ..TestOptions::small(2) };
    let cluster = TestCluster::start(&options);
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    for table in TABLES {
        let sql =
            format!("SELECT a.n FROM (SELECT count(*) AS n FROM {table} GROUP BY random()) a");
        let error = cluster.query(&session, &sql).await;
        let Err(error) = error else { continue }; // The table is too small to be divided.
        let error = error.to_string();
        assert!(error.contains("may not read") || error.contains("not distributed"), "{error}");
    }
    let reads = cluster.workers.iter().flat_map(|worker| worker.reads.take_log());
    assert_eq!(reads.count(), 0);
}
