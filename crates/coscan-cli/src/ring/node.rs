//! `coscan ring node`: a server of a demonstration, in a process of its own.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coscan_runtime::BufferManager;
use coscan_server::config::Config;
use coscan_server::{PeerStatus, Server};
use coscan_storage::stores::{StoreMetrics, Stores, list_files};

use crate::child::{Counts, Ready, SlowStore, answer};
use crate::serve::Flags;
use crate::{Exit, Failure};

/// One server of a demonstration.
#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    store: SlowStore,
}

impl Node {
    pub(crate) async fn run(&self) -> Result<Exit, Failure> {
        let mut config = Config { insecure: true, ..Config::default() };
        self.flags.apply_to(&mut config);
        let manager = BufferManager::new(config.memory.options())?;
        let metrics = StoreMetrics::new();
        for table in config.tables.values() {
            self.limit_store(&manager, &table.location, &metrics).await?;
        }
        let server = Server::start_on(&manager, &config).await?;
        let ready = Ready {
            postgres: server.postgres,
            http: server.http,
            ring: server.ring,
            worker: server.worker,
        };
        answer(&ready, || counts(&server, &metrics)).await?;
        server.stop(Duration::ZERO, std::future::pending()).await;
        Ok(Exit::Success)
    }

    /// Limits the store of a table, and counts its reads.
    async fn limit_store(
        &self,
        manager: &BufferManager,
        location: &str,
        metrics: &Arc<StoreMetrics>,
    ) -> Result<(), Failure> {
        let listing = list_files(&Stores::new(), location).await?;
        let limited = self.store.limit(listing.store, metrics);
        manager.stores().register(&listing.store_url, limited);
        Ok(())
    }
}

fn counts(server: &Server, metrics: &StoreMetrics) -> Counts {
    let transport = server.sql_service().transport();
    let peers = transport.into_iter().flat_map(|transport| transport.peers());
    let sharing = peers.filter(|peer| peer.status == PeerStatus::Sharing).count();
    let report = transport.map(|transport| transport.cluster().report()).unwrap_or_default();
    Counts {
        peer_bytes: report.bytes_received,
        taken_bytes: report.bytes_taken,
        sent_bytes: report.bytes_sent,
        sharing,
        ..Counts::of_process(metrics)
    }
}
