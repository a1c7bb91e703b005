//! Streams of queries on several servers.

use std::net::SocketAddr;
use std::sync::Arc;

use coscan_bench::clients::Clients;
use coscan_bench::runner::{Run, run_streams};
use coscan_bench::workload::Stream;
use coscan_storage::stores::StoreMetrics;
use futures::future::try_join_all;

use crate::Failure;

/// Distributes streams to servers in turn and runs all of them at the same time. Returns a run for each server that has
/// any.
pub(super) async fn run_on(
    servers: &[SocketAddr],
    streams: &[Stream],
) -> Result<Vec<Run>, Failure> {
    let mut dealt = Vec::new();
    for (index, &server) in servers.iter().enumerate() {
        let own: Vec<_> = streams.iter().skip(index).step_by(servers.len()).cloned().collect();
        if own.is_empty() {
            continue;
        }
        // The servers report their reads themselves, so that clients do not count them.
        let (metrics, name) = (StoreMetrics::new(), format!("server {}", index + 1));
        let clients = Clients::connect(&name, server, metrics, own.len(), "").await?;
        dealt.push((Arc::new(clients), own));
    }
    let runs = dealt
        .into_iter()
        .map(|(clients, own)| async move { run_streams(clients, &own, "lineitem").await });
    Ok(try_join_all(runs).await?)
}
