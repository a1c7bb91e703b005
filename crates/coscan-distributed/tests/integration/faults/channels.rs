//! Connections to workers, along which faults happen at points that a test names.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use coscan_distributed::Connections;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::HeaderMap;
use url::Url;

/// A point in the life of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A plan is about to be sent.
    PlanSent,
    /// A worker has decoded a plan.
    PlanDecoded,
    /// The first batch of a task is there.
    FirstBatch,
    /// A batch has come from one worker to another.
    InShuffle,
    /// All batches of a part of a task are there.
    LastBatch,
    /// A worker has sent the metrics of a task.
    Metrics,
}

impl Point {
    pub(super) const ALL: [Self; 6] = [
        Self::PlanSent,
        Self::PlanDecoded,
        Self::FirstBatch,
        Self::InShuffle,
        Self::LastBatch,
        Self::Metrics,
    ];
}

/// What happens at a point: it is told the worker, and may return an error for the one who asks.
type Happens = Box<dyn Fn(&Url) -> Option<DataFusionError> + Send>;

/// The faults of a cluster. Each happens once.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Armed>>);

#[derive(Default)]
struct Armed {
    /// The point, the number of times that it is passed before, and what happens.
    next: Option<(Option<Point>, usize, Happens)>,
    has_happened: bool,
}

impl Faults {
    /// Arms a fault at the `place`-th time that a point is passed, or any point.
    pub(super) fn arm(&self, point: Option<Point>, place: usize, happens: Happens) {
        *self.0.lock().unwrap() =
            Armed { next: Some((point, place, happens)), has_happened: false };
    }

    /// Whether the fault has happened.
    pub(super) fn has_happened(&self) -> bool {
        self.0.lock().unwrap().has_happened
    }

    fn pass(&self, at: Point, worker: &Url) -> Result<()> {
        let mut armed = self.0.lock().unwrap();
        let Some((point, place, _)) = &mut armed.next else { return Ok(()) };
        if point.is_some_and(|point| point != at) {
            return Ok(());
        }
        if *place > 0 {
            *place -= 1;
            return Ok(());
        }
        let (_, _, happens) = armed.next.take().unwrap();
        armed.has_happened = true;
        happens(worker).map_or(Ok(()), Err)
    }
}

/// The connections of a coordinator or of a worker.
pub(super) struct Channels {
    pub(super) connections: Arc<Connections>,
    pub(super) faults: Faults,
    pub(super) is_worker: bool,
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let inner = self.connections.get_worker_client_for_url(url).await?;
        let (faults, is_worker) = (self.faults.clone(), self.is_worker);
        Ok(Box::new(Channel { inner, url: url.clone(), faults, is_worker }))
    }
}

/// A connection to a worker.
struct Channel {
    inner: Box<dyn WorkerChannel>,
    url: Url,
    faults: Faults,
    is_worker: bool,
}

#[async_trait]
impl WorkerChannel for Channel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        self.faults.pass(Point::PlanSent, &self.url)?;
        let answers =
            self.inner.coordinator_channel(headers, request, messages, metrics, context).await?;
        self.faults.pass(Point::PlanDecoded, &self.url)?;
        let (faults, url) = (self.faults.clone(), self.url.clone());
        Ok(answers
            .map(move |message| {
                if matches!(message, Ok(WorkerToCoordinatorMsg::TaskMetrics(_))) {
                    faults.pass(Point::Metrics, &url)?;
                }
                message
            })
            .boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let parts = self.inner.execute_task(headers, request, metrics, context).await?;
        let with_faults = |part: BoxStream<'static, Result<RecordBatch>>| {
            let (faults, url, is_worker) = (self.faults.clone(), self.url.clone(), self.is_worker);
            let (at_end, url_at_end) = (faults.clone(), url.clone());
            let batches = part.enumerate().map(move |(index, batch)| {
                if index == 0 {
                    faults.pass(Point::FirstBatch, &url)?;
                }
                if is_worker {
                    faults.pass(Point::InShuffle, &url)?;
                }
                batch
            });
            let end = stream::once(async move { at_end.pass(Point::LastBatch, &url_at_end) });
            let end = end.filter_map(async |passed| passed.err().map(Err));
            batches.chain(end).boxed()
        };
        Ok(parts.into_iter().map(with_faults).collect())
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> Result<GetWorkerInfoResponse> {
        self.inner.get_worker_info(request).await
    }
}
