//! Queries run on threads of their own: an operator may keep a thread busy for minutes, and connections must be answered
//! meanwhile, requests to cancel above all.

use std::future::Future;
use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::engine::errors::from_engine;
use crate::engine::plan::panicked;
use crate::queries::QueryError;

/// The stack that a thread needs for the deepest statements that are accepted, in bytes. They are walked by recursion.
pub const STACK_BYTES: usize = 16 << 20;

/// Threads of queries.
#[derive(Debug)]
pub(super) struct QueryThreads(Option<Runtime>);

impl QueryThreads {
    /// So many threads; `None` for one per core.
    pub(super) fn new(count: Option<usize>) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        if let Some(count) = count {
            builder.worker_threads(count);
        }
        builder.enable_all().thread_name("coscan-queries").thread_stack_size(STACK_BYTES);
        Ok(Self(Some(builder.build()?)))
    }

    pub(super) fn handle(&self) -> Handle {
        match &self.0 {
            Some(runtime) => runtime.handle().clone(),
            None => Handle::current(), // Only while they are dropped.
        }
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background(); // A busy thread is not waited for.
        }
    }
}

/// The batches of a query.
pub(super) type Batches = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Starts a query on some threads, and returns its columns and batches as they come, one ahead. Dropping the future or
/// the batches ends the query as soon as its operators yield.
pub(super) async fn run_on(
    threads: &Handle,
    start: impl Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send + 'static,
) -> Result<(SchemaRef, Batches), QueryError> {
    let (started, starting) = oneshot::channel();
    let (sender, batches) = mpsc::channel(1);
    let task = AbortOnDrop(threads.spawn(async move {
        let mut stream = match start.await {
            Ok(stream) => {
                started.send(Ok(stream.schema())).ok();
                stream
            }
            Err(error) => {
                started.send(Err(error)).ok();
                return;
            }
        };
        // Only with room for a batch is the next one made: a slow client holds one.
        while let Ok(room) = sender.reserve().await {
            let Some(batch) = stream.next().await else { break };
            room.send(batch.map_err(from_engine));
        }
    }));
    let schema = starting.await.map_err(|_| panicked("starting"))??;
    let stream = unfold(Some((batches, task)), async |running| {
        let (mut batches, mut task) = running?;
        match batches.recv().await {
            Some(batch) => Some((batch, Some((batches, task)))),
            // The end, unless the task has panicked.
            None => match (&mut task.0).await {
                Ok(()) => None,
                Err(_) => Some((Err(panicked("running")), None)),
            },
        }
    });
    Ok((schema, stream.boxed()))
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::*;
    use crate::queries::ErrorKind;

    #[tokio::test]
    async fn a_panic_is_an_error_and_not_the_end_of_the_rows() {
        let threads = QueryThreads::new(None).unwrap();
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = stream::iter(0..2).map(move |number| match number {
            0 => Ok(batch.clone()),
            _ => panic!("an operator is broken"),
        });
        let start = async move {
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches))
                as SendableRecordBatchStream)
        };
        let (_, mut batches) = run_on(&threads.handle(), start).await.unwrap();
        batches.next().await.unwrap().unwrap();
        let error = batches.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(batches.next().await.is_none());
    }
}
