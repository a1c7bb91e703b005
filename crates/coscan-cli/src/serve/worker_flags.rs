//! Flags for queries over several workers.
#![allow(rustdoc::broken_intra_doc_links, reason = "brackets are names of settings, for --help")]

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use coscan_server::config::Workers;

use crate::sizes::parse_bytes;

#[derive(Debug, Args)]
#[command(next_help_heading = "Queries over several workers")]
pub(crate) struct WorkerFlags {
    /// Be a worker: the address at which other servers send tasks; see docs/cluster.md [workers.listen]
    #[arg(long, value_name = "ADDRESS")]
    worker: Option<SocketAddr>,
    /// Divide queries of sessions with `SET coscan.distributed = on` or `retry` among these workers [workers.members]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    workers: Vec<String>,
    /// What tasks of other servers may read on this worker: files below this URL or directory; may be given several times
    /// [workers.stores]
    #[arg(long = "worker-store", value_name = "PREFIX")]
    worker_stores: Vec<String>,
    /// Scans of at least this many stored bytes are divided among all workers; smaller ones are executed by one; by default 64 MB
    /// [workers.divided_bytes_min]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    worker_divided_bytes_min: Option<u64>,
    /// The most distributed queries that this server executes as a worker, and has running as a coordinator. Others wait, up to
    /// a minute; by default 16
    /// [workers.queries_max]
    #[arg(long, value_name = "N")]
    worker_queries_max: Option<NonZeroUsize>,
    /// The key shared by all servers, from `coscan ring key`; with --worker-certificate, its private key [workers.key]
    #[arg(long, value_name = "FILE")]
    worker_key: Option<PathBuf>,
    /// The authority of the servers' certificates, if they have their own [workers.ca]
    #[arg(long, value_name = "FILE")]
    worker_ca: Option<PathBuf>,
    /// The certificate of this server, as a PEM file; --worker-key is then its private key [workers.certificate]
    #[arg(long, value_name = "FILE")]
    worker_certificate: Option<PathBuf>,
    /// No key between workers: everyone on this machine can execute plans in them. On loopback addresses only
    /// [workers.insecure]
    #[arg(long)]
    worker_insecure: bool,
}

impl WorkerFlags {
    /// Overrides settings by the flags. Workers and stores are added.
    pub(crate) fn apply_to(&self, workers: &mut Option<Workers>) {
        let is_set = self.worker.is_some()
            || !self.workers.is_empty()
            || !self.worker_stores.is_empty()
            || self.worker_divided_bytes_min.is_some()
            || self.worker_queries_max.is_some()
            || self.worker_key.is_some()
            || self.worker_ca.is_some()
            || self.worker_certificate.is_some()
            || self.worker_insecure;
        if !is_set {
            return;
        }
        let workers = workers.get_or_insert_default();
        workers.listen = self.worker.or(workers.listen);
        workers.members.extend(self.workers.iter().cloned());
        workers.stores.extend(self.worker_stores.iter().cloned());
        workers.divided_bytes_min = self.worker_divided_bytes_min.or(workers.divided_bytes_min);
        workers.queries_max = self.worker_queries_max.or(workers.queries_max);
        workers.key = self.worker_key.clone().or(workers.key.take());
        workers.ca = self.worker_ca.clone().or(workers.ca.take());
        workers.certificate = self.worker_certificate.clone().or(workers.certificate.take());
        workers.insecure |= self.worker_insecure;
    }
}
