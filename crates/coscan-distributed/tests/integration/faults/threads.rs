//! Workers whose threads are busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::datatypes::DataType;
use coscan_distributed::{
    Cluster, ClusterOptions, Connections, HealthyWorkers, Security, WorkerOptions, WorkerServer,
    worker,
};
use datafusion::config::Dialect;
use datafusion::execution::{FunctionRegistry, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use futures::TryStreamExt;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cluster::{TestOptions, coscan};
use crate::data::tpch_session;

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// `blocks(x)` is x. The first calls keep their threads for longer than a worker may be silent.
fn blocks() -> ScalarUDF {
    let call = |arguments: &[ColumnarValue]| {
        if CALLS.fetch_add(1, Ordering::Relaxed) < 8 {
            std::thread::sleep(Duration::from_secs(6));
        }
        Ok(arguments[0].clone())
    };
    let number = DataType::Int64;
    create_udf("blocks", vec![number.clone()], number, Volatility::Volatile, Arc::new(call))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_threads_are_busy_is_not_lost() {
    let (mut threads, mut urls, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let worker = worker(WorkerOptions {
            coscan: coscan(&TestOptions::small(1)).0,
            channels: Arc::new(Connections::new(Security::None)),
            register_functions: Arc::new(|state| {
                state.register_udf(blocks().into())?;
                Ok(())
            }),
            stores: vec![Url::parse("file:///").unwrap()].into(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap());
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stopping, stopped) = (CancellationToken::new(), CancellationToken::new());
        servers.push(stopped.clone().drop_guard());
        let server = WorkerServer::new(worker, Security::None, 16);
        tokio::spawn(server.serve(listener, runtime.handle().clone(), stopping, stopped));
        threads.push(runtime);
    }
    let connections = Arc::new(Connections::new(Security::None));
    let healthy = Arc::new(HealthyWorkers::new(Arc::clone(&connections), urls));
    healthy.ask_all().await;
    let options = ClusterOptions { divided_bytes_min: 0, ..ClusterOptions::default() };
    let cluster = Cluster::new(options, healthy, connections);
    let session = tpch_session(4, Some(&coscan(&TestOptions::small(1)).0)).await;
    session.register_udf(blocks());
    let state = session.state();
    let sql = "SELECT l_returnflag, max(blocks(l_orderkey)) FROM lineitem GROUP BY 1";
    let statement = state.sql_to_statement(sql, &Dialect::Generic).unwrap();
    let statement = state.statement_to_plan(statement).await.unwrap();
    let context = |state: &_| TaskContext::from(state);
    let rows = cluster.execute(&state, &statement, None, &context).await.unwrap();
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    assert!(CALLS.load(Ordering::Relaxed) >= 8);
    threads.into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
}
