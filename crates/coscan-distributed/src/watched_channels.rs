//! Ends a query as soon as the connection of one of its tasks fails.
//!
//! The engine checks these connections only after all rows have arrived. Until then, a consumer waits ten seconds for a plan
//! that was never delivered, and possibly longer for a lost worker.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::HeaderMap;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::final_metrics::{operator_count, with_final_metrics};
use crate::task_key::add_task_key;

/// The first failure of a connection on which the coordinator of a statement keeps a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstFailure(Arc<State>);

#[derive(Debug, Default)]
struct State {
    error: OnceLock<(Url, Arc<DataFusionError>)>,
    has_failed: CancellationToken,
}

impl FirstFailure {
    /// Takes notice of an error. Returns it.
    fn record(&self, worker: &Url, error: DataFusionError) -> DataFusionError {
        let error = Arc::new(error);
        let _only_the_first = self.0.error.set((worker.clone(), Arc::clone(&error)));
        self.0.has_failed.cancel();
        DataFusionError::Shared(error)
    }

    /// The worker whose connection has failed, if one has.
    pub(crate) fn worker(&self) -> Option<&Url> {
        self.0.error.get().map(|(worker, _)| worker)
    }

    /// Completes with the error, once there is one.
    async fn failed(&self) -> DataFusionError {
        self.0.has_failed.cancelled().await;
        let (_, error) = self.0.error.get().expect("an error is recorded before it is announced");
        DataFusionError::Shared(Arc::clone(error))
    }

    /// The rows of a statement, which end with the failure as soon as there is one.
    pub(crate) fn end_on_failure(
        &self,
        rows: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let until_failure = stream::unfold(Some((rows, self.clone())), |rows| async move {
            let (mut rows, failure) = rows?;
            tokio::select! {
                biased;
                batch = rows.next() => Some((batch?, Some((rows, failure)))),
                error = failure.failed() => Some((Err(error), None)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, until_failure))
    }
}

/// Connections to workers, whose failures are noticed.
pub(crate) struct WatchedChannels {
    pub(crate) channels: Arc<dyn ChannelResolver + Send + Sync>,
    pub(crate) failure: FirstFailure,
}

#[async_trait]
impl ChannelResolver for WatchedChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let failure = self.failure.clone();
        let channel = self.channels.get_worker_client_for_url(url).await;
        let channel = channel.map_err(|error| failure.record(url, error))?;
        Ok(Box::new(WatchedChannel { channel, url: url.clone(), failure }))
    }
}

struct WatchedChannel {
    channel: Box<dyn WorkerChannel>,
    url: Url,
    failure: FirstFailure,
}

#[async_trait]
impl WorkerChannel for WatchedChannel {
    async fn coordinator_channel(
        &mut self,
        mut headers: HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let (url, failure) = (self.url.clone(), self.failure.clone());
        // The coordinator ends its messages once all rows are there. Nothing is lost then but metrics.
        let is_complete = Arc::new(AtomicBool::new(false));
        let completes = Arc::clone(&is_complete);
        let end = stream::poll_fn(move |_| {
            completes.store(true, Ordering::Relaxed);
            Poll::Ready(None)
        });
        let messages = messages.chain(end).boxed();
        let operators = operator_count(&request.plan);
        add_task_key(&mut headers, &request.task_key)?;
        let sent =
            self.channel.coordinator_channel(headers, request, messages, metrics, context).await;
        let answers = sent.map_err(|error| failure.record(&url, error))?;
        let answers = answers.filter_map(move |answer| {
            ready(match answer {
                Ok(answer) => Some(Ok(answer)),
                Err(_) if is_complete.load(Ordering::Relaxed) => None,
                Err(error) => {
                    failure.record(&url, error);
                    None
                }
            })
        });
        Ok(with_final_metrics(answers.boxed(), operators))
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        self.channel.execute_task(headers, request, metrics, context).await
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> Result<GetWorkerInfoResponse> {
        self.channel.get_worker_info(request).await
    }
}
