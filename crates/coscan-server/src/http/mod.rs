//! The dashboard: a web page that shows the scheduler at work, its data as events, and metrics.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page; its files lie beside it |
//! | `/events` | server-sent events, each a [`Sample`] |
//! | `/metrics` | metrics for Prometheus |
//! | `/healthz` | 200 while the process answers |
//! | `/readyz` | 200 while queries are accepted, else 503 |
//!
//! A `picture` is the state of the manager at one moment. While anyone watches, [`Feed`] (`sampling`) takes pictures
//! regularly, and `sample_difference` reduces them to what each watcher does not have yet. Slow watchers miss pictures and hold
//! up nobody. `recorded` makes the same samples from a decision log, for replay.
//!
//! [`HttpServer`] (`serve`) adds access control (`access`, `cookie`) and security `headers`. [`router`] checks no
//! login: programs that embed it must put it behind their own.

mod access;
mod assets;
mod cookie;
mod headers;
mod prometheus;
mod recorded;
mod sample;
mod sample_difference;
mod sampling;
mod scheduler_snapshot;
mod serve;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use coscan_runtime::BufferManager;
use futures::Stream;

use crate::listen::ConnectionLimit;
use crate::sql::SqlService;

pub use recorded::samples_of;
pub use sample::{
    CELL_NUMBERS, LoadRow, MapPart, MemoryRow, Sample, ScanRow, ServerRow, ServersRow, TableRow,
    TotalsRow, VERSION, WorkerRow, WorkersRow,
};
pub use sampling::{Feed, Watcher};
pub use serve::HttpServer;

/// The state behind the routes: the feed of the dashboard, and whether the server accepts queries.
#[derive(Clone, Debug)]
pub struct DashboardState {
    feed: Arc<Feed>,
    manager: BufferManager,
    /// The SQL service and the connections, if this is the dashboard of a server.
    server: Option<(Arc<SqlService>, ConnectionLimit)>,
    is_ready: Arc<AtomicBool>,
}

impl DashboardState {
    /// Creates the dashboard of a manager, which is sampled only while someone watches. The server is ready from now
    /// on.
    ///
    /// # Panics
    /// If there is no tokio runtime here.
    #[must_use]
    pub fn new(manager: BufferManager) -> Self {
        let feed = Feed::start(manager.clone());
        Self { feed, manager, server: None, is_ready: Arc::new(AtomicBool::new(true)) }
    }

    /// Creates the dashboard of a server. It also shows the users and SQL of scans, and the servers that share with it,
    /// and has metrics of queries, logins and connections.
    ///
    /// # Panics
    /// If there is no tokio runtime here.
    #[must_use]
    pub fn of_server(service: Arc<SqlService>, connection_limit: ConnectionLimit) -> Self {
        let manager = service.manager().clone();
        let feed = Feed::of_service(Arc::clone(&service));
        let is_ready = Arc::new(AtomicBool::new(true));
        Self { feed, manager, server: Some((service, connection_limit)), is_ready }
    }

    /// Sets the answer of `/readyz`, which tells whether the server accepts queries.
    pub fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    /// Stops the dashboard. It is not ready any more, and `/events` ends for all watchers. Otherwise their connections
    /// would never be idle.
    pub fn stop(&self) {
        self.set_ready(false);
        self.feed.end();
    }
}

/// All routes, without access control.
pub fn router(state: DashboardState) -> Router {
    let all =
        probe_routes(state.clone()).merge(metrics_routes(state.clone())).merge(watch_routes(state));
    all.layer(map_response(|response| std::future::ready(headers::add(response, false))))
}

/// The routes `/healthz` and `/readyz`, which reveal nothing about queries and need no login.
pub fn probe_routes(state: DashboardState) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .layer(map_response(headers::close))
        .with_state(state)
}

/// The route `/metrics`, with totals of all users.
pub fn metrics_routes(state: DashboardState) -> Router {
    Router::new().route("/metrics", get(prometheus::answer)).with_state(state)
}

/// All other routes, which are the page and `/events`. They show the tables, columns and queries of all users.
pub fn watch_routes(state: DashboardState) -> Router {
    assets::routes().route("/events", get(events)).with_state(state)
}

async fn ready(State(state): State<DashboardState>) -> (StatusCode, &'static str) {
    match state.is_ready.load(Ordering::Relaxed) {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready: the server is stopping\n"),
    }
}

async fn events(
    State(state): State<DashboardState>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let watcher = state.feed.watch();
    let samples = futures::stream::unfold(watcher, async |mut watcher| {
        let sample = watcher.next().await?;
        let text = serde_json::to_string(&sample).ok()?;
        Some((Ok(Event::default().data(text)), watcher))
    });
    Sse::new(samples).keep_alive(KeepAlive::default())
}
