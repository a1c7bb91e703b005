#![allow(clippy::unwrap_used)]
use arrow::datatypes::Schema;
use coscan_runtime::{BufferManager, Options};
use datafusion::execution::memory_pool::UnboundedMemoryPool;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use super::*;
use crate::config::Limits;
use crate::queries::{ErrorKind, Queries, QueryState};
use crate::sql::fair_share::Turns;
use crate::sql::query_threads::QueryThreads;
use crate::users::Users;

fn context(registration: &QueryRegistration) -> QueryContext {
    let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let taker = Taker { turns: Turns::new(2), user: "ann".into(), weight: 1 };
    let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
    QueryContext::new(registration, &AllocationWatch::new(&manager), &memory, taker, None, None)
}

#[tokio::test]
async fn a_panic_is_an_error_and_not_the_end_of_the_rows() {
    let threads = QueryThreads::new(2).unwrap();
    let schema = Arc::new(Schema::empty());
    let batch = RecordBatch::new_empty(Arc::clone(&schema));
    let batches = stream::iter(0..2).map(move |number| match number {
        0 => Ok(batch.clone()),
        _ => panic!("an operator is broken"),
    });
    let start = async move {
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)) as SendableRecordBatchStream)
    };
    let queries = Queries::new(&Limits::default(), false);
    let user = Users::anyone().find("ann").unwrap();
    let query = context(&queries.register(&user, "SELECT"));
    let (_, mut batches) = run_on(&threads.handle(), query, start).await.unwrap();
    batches.next().await.unwrap().unwrap();
    let error = batches.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(batches.next().await.is_none());
}

#[tokio::test]
async fn work_that_does_not_notice_that_it_was_cancelled_keeps_its_slot() {
    let threads = QueryThreads::new(2).unwrap();
    let limits = Limits { queries_running: 1, queries_waiting: 0, ..Limits::default() };
    let queries = Queries::new(&limits, false);
    let user = Users::anyone().find("ann").unwrap();
    let registration = queries.register(&user, "SELECT");
    registration.admit(1).await.unwrap();
    let query = context(&registration);
    let (done, blocked) = std::sync::mpsc::channel::<()>();
    let (busy, is_busy) = tokio::sync::oneshot::channel();
    // This is a task of an operator, which holds the query as well.
    let start = async move {
        let task = datafusion::common::runtime::SpawnedTask::spawn(async move {
            busy.send(()).ok();
            blocked.recv().ok();
        });
        task.await.ok();
        Err(panicked("starting"))
    };
    let running = tokio::spawn(async move {
        let _ = run_on(&threads.handle(), query, start).await;
        threads
    });
    is_busy.await.unwrap();
    running.abort();
    running.await.ok();
    drop(registration);
    assert_eq!(queries.list()[0].state, QueryState::Ending);
    let refused = queries.register(&user, "SELECT").admit(1).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Busy);
    done.send(()).unwrap();
    queries.drained().await;
    assert_eq!(queries.list()[0].state, QueryState::Cancelled);
    queries.register(&user, "SELECT").admit(1).await.unwrap();
}

#[tokio::test]
async fn a_query_that_took_too_much_memory_ends_with_the_reason_though_it_waits() {
    let threads = QueryThreads::new(2).unwrap();
    let schema = Arc::new(Schema::empty());
    let batch = RecordBatch::new_empty(Arc::clone(&schema));
    let batches = stream::once(async { Ok(batch) }).chain(stream::pending());
    let start = async move {
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)) as SendableRecordBatchStream)
    };
    let queries = Queries::new(&Limits::default(), false);
    let user = Users::anyone().find("ann").unwrap();
    let query = context(&queries.register(&user, "SELECT"));
    let allocations = Arc::clone(&query.allocations);
    let (_, mut batches) = run_on(&threads.handle(), query, start).await.unwrap();
    batches.next().await.unwrap().unwrap();
    allocations.end();
    let hang = std::time::Duration::from_secs(60); // Nothing here takes so long unless it hangs.
    let ended = tokio::time::timeout(hang, batches.next()).await.unwrap();
    let error = ended.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory);
    assert!(batches.next().await.is_none());
}
