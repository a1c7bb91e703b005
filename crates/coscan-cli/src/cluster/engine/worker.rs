//! `coscan cluster engine-worker`: a worker of the engine without coscan, in a process of its own.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use coscan_distributed::{Connections, WorkerServer};
use coscan_storage::stores::StoreMetrics;
use datafusion_distributed::{ChannelResolver, DistributedExt, Worker, WorkerQueryContext};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{environment, security};
use crate::child::{Counts, Ready, SlowStore, answer};
use crate::sizes::parse_bytes;
use crate::{Exit, Failure};

/// One worker of the engine without coscan.
#[derive(Debug, Args)]
pub(in crate::cluster) struct EngineWorker {
    /// The key that all processes of the demonstration have
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Memory for operators
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_bytes: u64,
    #[command(flatten)]
    store: SlowStore,
}

impl EngineWorker {
    pub(in crate::cluster) async fn run(&self) -> Result<Exit, Failure> {
        let security = security(&self.key)?;
        let channels: Arc<dyn ChannelResolver + Send + Sync> =
            Arc::new(Connections::new(security.clone()));
        let build = move |context: WorkerQueryContext| {
            let channels = Arc::clone(&channels);
            async move { Ok(context.builder.with_distributed_channel_resolver(channels).build()) }
        };
        let metrics = StoreMetrics::new();
        let environment = environment(&self.store, self.memory_bytes, &metrics)?;
        let worker = Worker::from_session_builder(build).with_runtime_env(environment);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let ready = Ready { worker: Some(listener.local_addr()?), ..Ready::default() };
        let (stopping, stopped) = (CancellationToken::new(), CancellationToken::new());
        let server = WorkerServer::new(worker, security, usize::MAX);
        let server = server.serve(listener, Handle::current(), stopping, stopped);
        tokio::select! {
            () = server => Err("the worker has ended".into()),
            answered = answer(&ready, || Counts::of_process(&metrics)) => answered.map(|()| Exit::Success),
        }
    }
}
