//! Workers whose threads are busy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_distributed::{
    Connections, Coordinator, CoordinatorOptions, QueryDescription, Security, WorkerHealth,
    WorkerOptions, WorkerServer, worker,
};
use datafusion::config::Dialect;
use datafusion::execution::memory_pool::UnboundedMemoryPool;
use datafusion::execution::{FunctionRegistry, TaskContext};
use futures::TryStreamExt;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::blocks;
use crate::cluster::{TestOptions, coscan};
use crate::data::tpch_session;

/// Longer than a worker may be silent.
const LONG: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_threads_are_busy_is_not_lost() {
    let (blocks, calls) = blocks(8, LONG);
    let (mut threads, mut urls, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let known = blocks.clone();
        let worker = worker(WorkerOptions {
            coscan: coscan(&TestOptions::small(1)).0,
            channels: Arc::new(Connections::new(Security::None)),
            runtime: Arc::default(),
            make_memory_pool: Arc::new(|_| Arc::new(UnboundedMemoryPool::default())),
            register_functions: Arc::new(move |state| {
                state.register_udf(known.clone().into())?;
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
    let healthy = Arc::new(WorkerHealth::new(Arc::clone(&connections), urls));
    healthy.ask_all().await;
    let options = CoordinatorOptions { divided_bytes_min: 0, ..CoordinatorOptions::default() };
    let coordinator = Coordinator::new(options, healthy, connections);
    let session = tpch_session(4, Some(&coscan(&TestOptions::small(1)).0)).await;
    session.register_udf(blocks);
    let state = session.state();
    let sql = "SELECT l_returnflag, max(blocks(l_orderkey)) FROM lineitem GROUP BY 1";
    let statement = state.sql_to_statement(sql, &Dialect::Generic).unwrap();
    let statement = state.statement_to_plan(statement).await.unwrap();
    let context = |state: &_| TaskContext::from(state);
    let rows = coordinator
        .execute(&state, &statement, &QueryDescription::default(), &context)
        .await
        .unwrap();
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    assert!(calls.load(Ordering::Relaxed) >= 8);
    threads.into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
}
