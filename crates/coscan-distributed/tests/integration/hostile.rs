//! Plans whose bytes were changed on the way: a worker refuses them or executes what they have become. A panic is an error of the one query.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use coscan_distributed::{
    Connections, Coordinator, CoordinatorOptions, QueryDescription, Security, WorkerList,
    WorkerServer,
};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::exec_err;
use datafusion::config::Dialect;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, MaybeEncoded, ProducerHead, SetPlanRequest, TaskKey, WorkerChannel,
    WorkerResolver, WorkerToCoordinatorMsg,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::HeaderMap;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cluster::{TestOptions, test_worker};
use crate::data::tpch_session;

/// A plan as it was sent.
#[derive(Clone)]
struct Sent {
    headers: HeaderMap,
    key: TaskKey,
    task_count: usize,
    plan: Vec<u8>,
    context: Arc<TaskContext>,
}

/// Connections that take plans down, and send nothing.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Sent>>>);

#[async_trait]
impl ChannelResolver for Recorder {
    async fn get_worker_client_for_url(&self, _: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl WorkerChannel for Recorder {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        request: SetPlanRequest,
        _: BoxStream<'static, CoordinatorToWorkerMsg>,
        _: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let (key, task_count) = (request.task_key, request.task_count);
        let plan = request.plan.encode(context)?;
        self.0.lock().unwrap().push(Sent {
            headers,
            key,
            task_count,
            plan,
            context: Arc::clone(context),
        });
        Ok(stream::pending().boxed())
    }

    async fn execute_task(
        &mut self,
        _: HeaderMap,
        _: ExecuteTaskRequest,
        _: ExecutionPlanMetricsSet,
        _: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        // All plans are sent at the same time as the first rows are asked for.
        tokio::time::sleep(Duration::from_millis(200)).await;
        exec_err!("this worker only takes plans down")
    }

    async fn get_worker_info(&mut self, _: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        exec_err!("this worker only takes plans down")
    }
}

struct Workers;

#[async_trait]
impl WorkerList for Workers {
    async fn refresh(&self) {}
}

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(["http://a", "http://b"].map(|url| Url::parse(url).unwrap()).to_vec())
    }
}

/// The plans of a query, as they are sent.
async fn plans(sql: &str) -> Vec<Sent> {
    let recorder = Recorder::default();
    let options = CoordinatorOptions { divided_bytes_min: 0, ..CoordinatorOptions::default() };
    let coordinator = Coordinator::new(options, Arc::new(Workers), Arc::new(recorder.clone()));
    let coscan = crate::cluster::coscan(&TestOptions::small(2)).0;
    let session = tpch_session(4, Some(&coscan)).await;
    let state = session.state();
    let statement = state.sql_to_statement(sql, &Dialect::Generic).unwrap();
    let statement = state.statement_to_plan(statement).await.unwrap();
    let context = |state: &_| TaskContext::from(state);
    assert!(
        coordinator
            .execute(&state, &statement, &QueryDescription::default(), &context)
            .await
            .is_err()
    );
    let sent = recorder.0.lock().unwrap().clone();
    assert!(sent.len() > 2, "{} plans were sent", sent.len());
    sent
}

/// Changes some bytes, removes some, or repeats some.
fn mutate(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    for _ in 0..random.random_range(1..4) {
        if bytes.is_empty() {
            return;
        }
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..6) {
            0 => bytes[place] = random.random(),
            1 => bytes[place] ^= 1 << random.random_range(0..8),
            2 => bytes[place] = *[0, 1, 0x7f, 0x80, 0xff].get(random.random_range(0..5)).unwrap(),
            3 => drop(bytes.drain(place..(place + random.random_range(1..20)).min(bytes.len()))),
            4 => {
                let end = (place + random.random_range(1..200)).min(bytes.len());
                let again = bytes[place..end].to_vec();
                bytes.splice(place..place, again);
            }
            _ => bytes.truncate(place.max(1)),
        }
    }
}

/// Sends a plan, and executes it if it is accepted. Returns whether it was.
async fn execute(channel: &mut dyn WorkerChannel, sent: Sent) -> Result<bool> {
    let request = ExecuteTaskRequest {
        task_key: sent.key,
        target_partition_start: 0,
        target_partition_end: 1,
        producer_head: ProducerHead::None,
    };
    let context = Arc::clone(&sent.context);
    let Ok(_task) = send(channel, sent).await else { return Ok(false) };
    let metrics = ExecutionPlanMetricsSet::new();
    let parts = channel.execute_task(HeaderMap::new(), request, metrics, &context).await?;
    for part in parts {
        // The rows of other workers never come.
        let rows = part.try_for_each(async |_| Ok(()));
        let polled = tokio::time::timeout(Duration::from_millis(50), rows).await;
        polled.unwrap_or(Ok(()))?;
    }
    Ok(true)
}

/// Sends a plan. The task lasts as long as the result.
async fn send(
    channel: &mut dyn WorkerChannel,
    sent: Sent,
) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
    let request = SetPlanRequest {
        task_key: sent.key,
        task_count: sent.task_count,
        plan: MaybeEncoded::Encoded(sent.plan),
        work_unit_feed_declarations: Vec::new(),
        target_worker_url: Url::parse("http://a").unwrap(),
        query_start_time_ns: 0,
    };
    let (headers, metrics) = (sent.headers, ExecutionPlanMetricsSet::new());
    let messages = stream::pending().boxed();
    channel.coordinator_channel(headers, request, messages, metrics, &sent.context).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_bytes_of_plans_end_no_connection() {
    let sql = "SELECT o_orderpriority, l_returnflag, count(*), sum(l_quantity * 2) FROM orders, lineitem \
               WHERE o_orderkey = l_orderkey AND o_clerk LIKE '%1' AND o_orderdate > DATE '1995-01-01' \
               GROUP BY 1, 2 ORDER BY 3 LIMIT 10";
    let sent = plans(sql).await;
    let worker = test_worker(&TestOptions::small(1), Arc::new(Recorder::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let server = WorkerServer::new(worker, Security::None, 16);
    let (stopping, stopped) = (CancellationToken::new(), CancellationToken::new());
    let _stops = stopped.clone().drop_guard();
    tokio::spawn(server.serve(listener, Handle::current(), stopping, stopped));
    let connections = Connections::new(Security::None);
    let mut channel = connections.get_worker_client_for_url(&url).await.unwrap();
    // A task of another query on the same connection.
    let other = Sent { key: TaskKey { task_number: 1 << 20, ..sent[0].key }, ..sent[0].clone() };
    let mut other = send(channel.as_mut(), other).await.unwrap();
    other.next().await.unwrap().unwrap(); // No news of its load.
    let (mut refused, mut executed, mut failed) = (0, 0, 0);
    for seed in 0..2000 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut plan = sent[random.random_range(0..sent.len())].clone();
        mutate(&mut plan.plan, &mut random);
        plan.key.task_number = usize::try_from(seed).unwrap();
        match execute(channel.as_mut(), plan).await {
            Ok(false) => refused += 1,
            Ok(true) => executed += 1,
            Err(_) => failed += 1,
        }
        let news = other.next().now_or_never();
        assert!(news.is_none(), "seed {seed} ends the tasks of others");
    }
    println!("{refused} plans were refused, {executed} executed, {failed} failed");
    assert!(refused > 500 && executed > 50, "{refused} were refused, {executed} executed");
}
