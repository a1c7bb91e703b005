//! The server of a worker.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use datafusion_distributed::Worker;
use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tower::Service;
use uuid::Uuid;

use super::connection::Connection;
use super::connections::{HEADER_BYTES_MAX, PING_INTERVAL, PING_TIMEOUT, Security};
use super::running_tasks::{RunningTasks, TaskBody};
use super::task_cache::{free_ended, keep_alive};
use crate::network_errors::BUSY;
use crate::task_key::task_key;

/// The largest message that a worker accepts, such as a plan, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The most handshakes at a time. Strangers wait for a place and take none from members that are connected.
const HANDSHAKES_MAX: usize = 64;

/// The time of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the tasks of coordinators.
pub struct WorkerServer {
    worker: Worker,
    security: Security,
    tasks: RunningTasks,
}

impl fmt::Debug for WorkerServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerServer").field("security", &self.security).finish_non_exhaustive()
    }
}

impl WorkerServer {
    /// A server of a worker, which executes at most `queries_max` queries at the same time. It refuses more, and coordinators try again.
    #[must_use]
    pub fn new(worker: Worker, security: Security, queries_max: usize) -> Self {
        Self { worker, security, tasks: RunningTasks::new(queries_max) }
    }

    /// The tasks that run.
    #[must_use]
    pub fn tasks(&self) -> RunningTasks {
        self.tasks.clone()
    }

    /// Serves tasks until `stopped`. `threads` execute them, while this future answers pings: it must not wait for operators. Once `stopping` is cancelled, coordinators are told that this worker is leaving, so that
    /// they plan no more tasks for it. Tasks of queries that are running are still accepted.
    pub async fn serve(
        self,
        listener: TcpListener,
        threads: Handle,
        stopping: CancellationToken,
        stopped: CancellationToken,
    ) {
        let (worker, tasks) = (self.worker.clone(), self.tasks.clone());
        let service = self.worker.into_worker_server();
        let service = service.max_decoding_message_size(MESSAGE_BYTES_MAX);
        // Connections end with this server, also if it is dropped.
        let ended = stopped.child_token();
        let _ends = ended.clone().drop_guard();
        let is_leaving = Arc::new(AtomicBool::new(false));
        let service = Tasks {
            service,
            threads,
            is_leaving: Arc::clone(&is_leaving),
            running: self.tasks.clone(),
        };
        let (connected, mut connections) = mpsc::channel::<Connection>(1);
        let connections = stream::poll_fn(move |context| connections.poll_recv(context));
        let serving = Server::builder()
            // A coordinator that disappears without closing its connections leaves its tasks otherwise.
            .http2_keepalive_interval(Some(PING_INTERVAL))
            .http2_keepalive_timeout(Some(PING_TIMEOUT))
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .add_service(service)
            .serve_with_incoming(connections.map(Ok::<_, Infallible>));
        let leaving = async {
            stopping.cancelled().await;
            is_leaving.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stopped.cancelled() => {}
            () = leaving => {}
            () = accept(&listener, &self.security, &connected, &ended) => {}
            () = free_ended(&worker, &tasks) => {}
            () = keep_alive(&worker, &tasks) => {}
            served = serving => if let Err(error) = served {
                log::error!("this worker serves no more tasks: {error}; restart the server");
            },
        }
    }
}

/// Accepts connections forever.
async fn accept(
    listener: &TcpListener,
    security: &Security,
    connected: &mpsc::Sender<Connection>,
    ended: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                log::warn!("a connection of another server cannot be accepted: {error}");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let (security, connected, ended) = (security.clone(), connected.clone(), ended.clone());
        tokio::spawn(async move {
            let result =
                tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(stream, &security)).await;
            drop(place);
            match result {
                Ok(Ok(connection)) => drop(connected.send(connection.ending_with(ended)).await),
                Ok(Err(error)) => log::warn!(
                    "{address} was refused by this worker: {error}; do all servers have the same workers.key?"
                ),
                Err(_) => log::warn!(
                    "{address} was refused by this worker: its TLS handshake took longer than 5 s"
                ),
            }
        });
    }
}

async fn handshake(stream: TcpStream, security: &Security) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    match security {
        Security::None => Ok(Connection::new(stream)),
        Security::MutualTls(tls) => {
            let acceptor = TlsAcceptor::from(Arc::clone(&tls.server));
            Ok(Connection::new(acceptor.accept(stream).await?))
        }
    }
}

/// A service that counts its tasks. Once its worker is leaving, it says so when it is asked for its version.
#[derive(Clone)]
struct Tasks<S> {
    service: S,
    threads: Handle,
    is_leaving: Arc<AtomicBool>,
    running: RunningTasks,
}

impl<S: NamedService> NamedService for Tasks<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Tasks<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error: Send + 'static>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        if path.ends_with("/GetWorkerInfo") && self.is_leaving.load(Ordering::Relaxed) {
            let leaving = Status::unavailable("this worker is leaving").into_http();
            return ready(Ok(leaving)).boxed();
        }
        // The coordinator keeps this call as long as it needs the task.
        let task = match path.ends_with("/CoordinatorChannel") {
            true => {
                let key = task_key(request.headers());
                let execution = key.map_or_else(Uuid::new_v4, |key| key.query_id);
                let Some(task) = self.running.start(execution) else {
                    let busy =
                        format!("{BUSY}: it executes as many queries as workers.queries_max");
                    return ready(Ok(Status::resource_exhausted(busy).into_http())).boxed();
                };
                Some((task, key))
            }
            false => None,
        };
        // Decodes plans, and starts operators.
        let answered = AbortOnDropHandle::new(self.threads.spawn(self.service.call(request)));
        async move {
            let response = match answered.await {
                Ok(response) => response?,
                // After a panic, the coordinator would take this worker for lost.
                Err(_) => {
                    let failed = "a worker could not start a task: it panicked or is stopping; its log says more";
                    return Ok(Status::internal(failed).into_http());
                }
            };
            let Some((task, key)) = task else { return Ok(response) };
            let _task = task.with_plan(key);
            Ok(response.map(|body| Body::new(TaskBody { body, _task })))
        }
        .boxed()
    }
}
