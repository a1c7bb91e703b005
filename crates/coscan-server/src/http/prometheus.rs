//! Metrics for Prometheus, read from the manager at each scrape.

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use coscan_datafusion::SharedResults;
use coscan_runtime::ManagerReport;
use coscan_transport::{PeerState, PeerStatus, Transport};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::DashboardState;
use super::access::SeesServers;
use crate::known_workers::KnownWorkers;
use crate::listen::{ConnectionLimit, Protocol};
use crate::queries::{Queries, Totals};
use crate::users::Users;

const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn answer(
    State(state): State<DashboardState>,
    sees_servers: Option<Extension<SeesServers>>,
) -> Response {
    match text(&state, sees_servers.is_some()) {
        Ok(text) => ([(CONTENT_TYPE, CONTENT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn text(state: &DashboardState, sees_servers: bool) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("coscan");
    let report = state.manager.report();
    gauges(&mut registry, &report);
    counters(&mut registry, &report);
    results(&mut registry, &SharedResults::of(&state.manager));
    if let Some((service, connection_limit)) = &state.server {
        queries(&mut registry, service.queries());
        clients(&mut registry, service.users(), connection_limit);
        workers(&mut registry, &service.known_workers());
        if let Some(transport) = service.transport() {
            let peers = transport.peers();
            ring(&mut registry, transport, &peers);
            if sees_servers {
                ring_peers(&mut registry, &peers);
            }
        }
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn gauges(registry: &mut Registry, report: &ManagerReport) {
    let mut gauge = |name: &str, help: &str, unit: Option<Unit>, value: u64| {
        let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, value),
            None => registry.register(name, help, value),
        }
    };
    gauge("scans", "Running scans", None, report.scans as u64);
    gauge("loads_in_flight", "Loads under way", None, report.loads_in_flight as u64);
    gauge(
        "chunks_in_use",
        "Chunks that workers hold as stored pages",
        None,
        report.chunks_in_use as u64,
    );
    let mut memory = |name, help, bytes| gauge(name, help, Some(Unit::Bytes), bytes);
    memory("pool_held", "Stored pages, those being read among them", report.pool_held_bytes);
    memory("pool_limit", "What the pool may hold now", report.pool_limit_bytes);
    memory("decoded", "Decoded columns, idle ones among them", report.decoded_bytes);
    memory(
        "decoded_idle",
        "Decoded columns that no scan needs, kept for later ones",
        report.decoded_idle_bytes,
    );
    memory("operators", "Operators of queries", report.operator_bytes);
    memory(
        "metadata",
        "Footers, page indexes, Bloom filters, registered tables",
        report.metadata_bytes,
    );
    memory("memory_budget", "The budget for all of these", report.memory_bytes);
    memory("memory_peak", "The most of all kinds held at once", report.held_bytes_max);
}

fn counters(registry: &mut Registry, report: &ManagerReport) {
    let mut counter = |name: &str, help: &str, value: u64| {
        registry.register(name, help, ConstCounter::new(value));
    };
    counter("loads", "Loads started", report.loads_started);
    counter("chunks_delivered", "Chunks handed to workers", report.chunks_delivered);
    counter("slices_decoded", "Columns of chunks that were decoded", report.slices_decoded);
    counter("slices_reused", "Columns of chunks that scans found decoded", report.slices_reused);
    counter("decisions", "Decisions of the scheduler", report.decisions);
    let read = ConstCounter::new(report.bytes_read);
    registry.register_with_unit("read", "Pages that were read from stores", Unit::Bytes, read);
    let delivered = ConstCounter::new(report.bytes_delivered);
    registry.register_with_unit(
        "delivered",
        "What scans that share nothing would have read",
        Unit::Bytes,
        delivered,
    );
    let time = ConstCounter::new(report.decision_time.as_secs_f64());
    registry.register_with_unit("decision", "Time for decisions", Unit::Seconds, time);
}

fn results(registry: &mut Registry, shared: &SharedResults) {
    let bytes = ConstGauge::new(i64::try_from(shared.bytes).unwrap_or(i64::MAX));
    let help = "Results of chunks that queries share, a part of the metadata";
    registry.register_with_unit("results", help, Unit::Bytes, bytes);
    let mut counter = |name: &str, help: &str, value: u64| {
        registry.register(name, help, ConstCounter::new(value));
    };
    counter("results_published", "Chunks whose results were published", shared.chunks_published);
    counter(
        "results_taken",
        "Chunks whose results queries took from others, instead of reading them",
        shared.chunks_taken,
    );
    counter(
        "results_refused",
        "Chunks whose results were too large to be published, or for which there was no memory",
        shared.chunks_refused,
    );
}

fn queries(registry: &mut Registry, queries: &Queries) {
    let (running, waiting) = queries.counts();
    registry.register("queries_running", "Queries that run", count(running));
    registry.register("queries_waiting", "Queries that wait for a slot", count(waiting));
    let Totals { ended, waited, ran, rows } = queries.totals().clone();
    registry.register("queries_ended", "Queries that have ended, by state", ended);
    registry.register("query_rows", "Rows that queries returned", rows);
    let mut time = |name, help, times| {
        registry.register_with_unit(name, help, Unit::Seconds, times);
    };
    time("query_wait", "How long queries waited for a slot", waited);
    time("query_run", "How long queries ran, the reading of their clients included", ran);
}

fn clients(registry: &mut Registry, users: &Users, connection_limit: &ConnectionLimit) {
    registry.register(
        "connections",
        "Connections of all protocols",
        count(connection_limit.connections()),
    );
    registry.register(
        "connections_logged_in",
        "Those of them whose users have logged in",
        count(connection_limit.logged_in()),
    );
    registry.register(
        "connections_limit",
        "The most that may be logged in",
        count(connection_limit.connections_max()),
    );
    let sent: Family<[(&str, &str); 1], Counter> = Family::default();
    for protocol in Protocol::ALL {
        let bytes = connection_limit.sent().of(protocol);
        sent.get_or_create(&[("protocol", protocol.name())]).inc_by(bytes);
    }
    registry.register_with_unit("sent", "Sent to clients, by protocol", Unit::Bytes, sent);
    let (wrong, early) = users.failed_logins().counts();
    let refused: Family<[(&str, &str); 1], Counter> = Family::default();
    refused.get_or_create(&[("reason", "wrong")]).inc_by(wrong);
    refused.get_or_create(&[("reason", "too_many")]).inc_by(early);
    registry.register("logins_refused", "Logins that were refused, by reason", refused);
}

fn ring(registry: &mut Registry, transport: &Transport, peers: &[PeerState]) {
    let sharing = peers.iter().filter(|peer| peer.status == PeerStatus::Sharing).count();
    registry.register("ring_nodes", "Other servers that are known", count(peers.len()));
    registry.register(
        "ring_nodes_sharing",
        "Of these, the ones that share with this one",
        count(sharing),
    );
    let report = transport.cluster().report();
    registry.register("ring_files", "Files that are shared", count(report.files));
    let mut counter = |name: &str, help: &str, value: u64| {
        registry.register(name, help, ConstCounter::new(value));
    };
    counter("ring_requests_made", "Loads that asked others for pages", report.requests_made);
    counter("ring_requests_served", "Requests of others for pages", report.requests_served);
    let mut bytes = |name, help, value| {
        registry.register_with_unit(name, help, Unit::Bytes, ConstCounter::new(value));
    };
    bytes("ring_received", "Pages that came from others", report.bytes_received);
    bytes("ring_sent", "Pages that were sent to others", report.bytes_sent);
    bytes(
        "ring_bypassed",
        "Pages read for others without space in the pool",
        report.bytes_bypassed,
    );
    bytes(
        "ring_read_instead",
        "Pages that others were to send, read from the store",
        report.bytes_read_instead,
    );
}

/// Registers the metrics of the workers of distributed queries, and of the tasks of other servers.
fn workers(registry: &mut Registry, known: &KnownWorkers) {
    if let Some(tasks) = known.tasks() {
        registry.register("worker_tasks", "Tasks of other servers that run here", count(tasks));
    }
    let all = known.all();
    if !all.is_empty() {
        let healthy = all.iter().filter(|worker| worker.status == "healthy").count();
        registry.register("workers", "Workers among which queries are divided", count(all.len()));
        registry.register("workers_healthy", "Workers that get tasks", count(healthy));
    }
}

/// Registers the metrics of other servers, with one line for each of them.
fn ring_peers(registry: &mut Registry, peers: &[PeerState]) {
    let mut bytes = |name, help, bytes: fn(&PeerState) -> u64| {
        let by_peer: Family<[(&str, String); 1], Counter> = Family::default();
        for peer in peers {
            by_peer.get_or_create(&[("peer", peer.address.clone())]).inc_by(bytes(peer));
        }
        registry.register_with_unit(name, help, Unit::Bytes, by_peer);
    };
    bytes("ring_peer_received", "Pages that came from others, by server", |peer| {
        peer.bytes_received
    });
    bytes("ring_peer_sent", "Pages that were sent to others, by server", |peer| peer.bytes_sent);
}

fn count(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}
