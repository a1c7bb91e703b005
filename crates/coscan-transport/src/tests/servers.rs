//! Servers on one store in memory.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coscan_runtime::core::PageIndex;
use coscan_runtime::ring::Config;
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, ClusterOptions, ClusterReport, Options, SharedTable};
use coscan_testing::parquet_file;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use url::Url;

use super::line::Line;
use crate::{Credentials, PeerStatus, Transport, TransportConfig, new_key};

/// The number of files. Each is an extent, so that each server owns some of them.
pub(super) const FILES: usize = 24;
pub(super) const ROWS_OF_FILE: i64 = 2_000;

/// Servers that share a table on one store.
pub(super) struct Servers {
    /// The credentials of each server.
    credentials: Vec<Credentials>,
    /// The key of all servers, if they have one.
    _key: Option<NamedTempFile>,
    store: Arc<InMemory>,
    pub(super) metrics: Arc<StoreMetrics>,
    files: Vec<ObjectMeta>,
    /// The addresses by which others know the servers.
    addresses: Vec<String>,
    zones: Vec<&'static str>,
    circulates: Vec<bool>,
    running: Vec<Option<Server>>,
    pub(super) table_bytes: u64,
}

pub(super) struct Server {
    pub(super) manager: BufferManager,
    pub(super) table: SharedTable,
    pub(super) transport: Transport,
}

impl Servers {
    /// Servers of one zone.
    pub(super) async fn start(count: usize) -> Self {
        Self::in_zones(vec!["here"; count]).await.sharing().await
    }

    /// Servers of one zone, between which pages go round.
    pub(super) async fn start_circulating(count: usize) -> Self {
        Self::circulating(vec![true; count]).await.sharing().await
    }

    /// Servers of one zone, of which some circulate pages.
    pub(super) async fn circulating(circulates: Vec<bool>) -> Self {
        let key = key_file();
        let credentials = vec![Credentials::Key(key.path().to_owned()); circulates.len()];
        let zones = vec!["here"; circulates.len()];
        Self::at(ends(zones.len()).await, zones, credentials, Some(key), circulates).await
    }

    /// Servers of one zone, each with credentials of its own.
    pub(super) async fn start_with(credentials: Vec<Credentials>) -> Self {
        Self::unconnected(credentials).await.sharing().await
    }

    /// Servers of one zone that may be unable to connect.
    pub(super) async fn unconnected(credentials: Vec<Credentials>) -> Self {
        let zones = vec!["here"; credentials.len()];
        let circulates = vec![false; zones.len()];
        Self::at(ends(zones.len()).await, zones, credentials, None, circulates).await
    }

    /// Two servers. Messages from the second to the first go over a line.
    pub(super) async fn behind_a_line() -> (Self, Line) {
        let mut ends = ends(2).await;
        let (line, begins) = Line::to(ends[0].1.clone()).await;
        ends[0].1 = begins;
        let key = key_file();
        let credentials = vec![Credentials::Key(key.path().to_owned()); 2];
        let servers = Self::at(ends, vec!["here"; 2], credentials, Some(key), vec![false; 2]).await;
        (servers.sharing().await, line)
    }

    pub(super) async fn in_zones(zones: Vec<&'static str>) -> Self {
        let key = key_file();
        let credentials = vec![Credentials::Key(key.path().to_owned()); zones.len()];
        let circulates = vec![false; zones.len()];
        Self::at(ends(zones.len()).await, zones, credentials, Some(key), circulates).await
    }

    async fn at(
        ends: Vec<(TcpListener, String)>,
        zones: Vec<&'static str>,
        credentials: Vec<Credentials>,
        key: Option<NamedTempFile>,
        circulates: Vec<bool>,
    ) -> Self {
        let (listeners, addresses): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let mut servers = Self {
            credentials,
            _key: key,
            store: Arc::new(InMemory::new()),
            metrics: StoreMetrics::with_log(),
            files: Vec::new(),
            addresses,
            zones,
            circulates,
            running: Vec::new(),
            table_bytes: 0,
        };
        for file in 0..FILES {
            let path = format!("shared/{file:02}.parquet");
            servers.store.put(&Path::from(&*path), file_bytes(file).into()).await.unwrap();
            servers.files.push(servers.meta(&path).await);
        }
        for (server, listener) in listeners.into_iter().enumerate() {
            let server = servers.server(server, listener).await;
            servers.running.push(Some(server));
        }
        let layout = servers.running(0).table.table().layout();
        let pages = (0..layout.page_count() as u32).map(PageIndex);
        servers.table_bytes = pages.map(|page| layout.bytes_of(page)).sum();
        servers
    }

    async fn sharing(self) -> Self {
        self.all_share().await;
        self.all_agree().await;
        self.metrics.reset();
        self
    }

    /// Adds a file that does not belong to the table.
    pub(super) async fn add_file(&self, path: &str) {
        self.store.put(&Path::from(path), file_bytes(0).into()).await.unwrap();
    }

    pub(super) async fn meta(&self, path: &str) -> ObjectMeta {
        self.store.head(&Path::from(path)).await.unwrap()
    }

    async fn server(&self, server: usize, listener: TcpListener) -> Server {
        let manager = BufferManager::new(Options::with_memory_bytes(256 << 20)).unwrap();
        let url: Url = "memory:///".parse().unwrap();
        let metered = MeteredStore::new(Arc::clone(&self.store) as _, Arc::clone(&self.metrics));
        let store: Arc<dyn ObjectStore> = Arc::new(metered);
        manager.stores().register(&url, Arc::clone(&store));
        let config = TransportConfig {
            address: self.addresses[server].clone(),
            // They learn of the others from the first.
            join: vec![self.addresses[0].clone()],
            zone: self.zones[server].to_owned(),
            credentials: self.credentials(server),
        };
        let shared = ClusterOptions {
            stores: vec!["memory:///shared/".parse().unwrap()].into(),
            ring: Config::default(),
            circulates: self.circulates[server],
        };
        let transport = Transport::start(listener, config, &manager, shared).unwrap();
        let file = |meta: &ObjectMeta| TableFile {
            store: Arc::clone(&store),
            store_url: url.clone(),
            meta: meta.clone(),
        };
        let options = FileOptions { chunk_rows: 1_000, ..FileOptions::default() };
        let files = manager.open_files(self.files.iter().map(file), options).await.unwrap();
        let table = manager.register(Arc::new(ParquetTable::of_files(files).unwrap()));
        Server { manager, table, transport }
    }

    /// Waits until all servers that run share with each other.
    pub(super) async fn all_share(&self) {
        for server in 0..self.running.len() {
            let others = (0..self.running.len()).filter(|&other| other != server);
            for other in others.filter(|&other| self.running[other].is_some()) {
                self.becomes(server, other, PeerStatus::Sharing).await;
            }
        }
    }

    /// Waits until all servers that run agree on owners. Before that a page may be read twice.
    pub(super) async fn all_agree(&self) {
        let shares = |server: &Server| {
            let nodes = server.transport.nodes().into_iter();
            nodes.map(|node| (node.address, node.share)).collect::<BTreeMap<_, _>>()
        };
        loop {
            let views: Vec<_> = self.running.iter().flatten().map(shares).collect();
            let extents = views[0].values().map(|share| share.extents).sum::<u64>();
            if extents == FILES as u64 && views.iter().all(|view| *view == views[0]) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until a server says this of another.
    pub(super) async fn becomes(&self, server: usize, other: usize, status: PeerStatus) {
        let Some(server) = &self.running[server] else { return };
        while !server
            .transport
            .peers()
            .iter()
            .any(|peer| peer.address == self.addresses[other] && peer.status == status)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) fn credentials(&self, server: usize) -> Credentials {
        self.credentials[server].clone()
    }

    pub(super) fn address(&self, server: usize) -> &str {
        &self.addresses[server]
    }

    pub(super) fn running(&self, server: usize) -> &Server {
        self.running[server].as_ref().unwrap()
    }

    /// Whether a server gets all rows.
    pub(super) fn scan(&self, server: usize) -> impl Future<Output = bool> + Send + use<> {
        let Server { manager, table, .. } = self.running(server);
        let rows = ROWS_OF_FILE as u64 * FILES as u64;
        let stream = manager.scan(table, &[0, 1], std::slice::from_ref(&(0..rows))).unwrap();
        async move {
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            let ids = |batch: &RecordBatch| {
                let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
                ids.values().to_vec()
            };
            let mut ids: Vec<_> = batches.iter().flat_map(ids).collect();
            ids.sort_unstable();
            ids.into_iter().eq(0..rows as i64)
        }
    }

    /// Ends a server as a crash does: all its connections break.
    pub(super) fn stop(&mut self, server: usize) {
        self.running[server] = None;
    }

    pub(super) async fn restart(&mut self, server: usize) {
        let listener = loop {
            match TcpListener::bind(&self.addresses[server]).await {
                // The server that was stopped is about to release the address.
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    tokio::task::yield_now().await;
                }
                bound => break bound.unwrap(),
            }
        };
        let started = self.server(server, listener).await;
        self.running[server] = Some(started);
        self.all_share().await;
    }

    /// Starts a server at an address where nothing listens.
    pub(super) async fn restart_out_of_reach(&mut self, server: usize) {
        let (listener, _) = ends(1).await.remove(0);
        self.addresses[server] = "127.0.0.1:1".to_owned();
        let started = self.server(server, listener).await;
        self.running[server] = Some(started);
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.metrics.snapshot().bytes
    }

    /// The files that were read.
    pub(super) fn files_read(&self) -> Vec<String> {
        self.metrics.take_log().into_iter().map(|read| read.path.to_string()).collect()
    }

    /// The report of a server on its exchange with others.
    pub(super) fn report(&self, server: usize) -> ClusterReport {
        self.running(server).transport.cluster().report()
    }

    pub(super) fn bytes_received(&self) -> u64 {
        (0..self.running.len()).map(|server| self.report(server).bytes_received).sum()
    }
}

/// Listeners for servers, and their addresses.
async fn ends(count: usize) -> Vec<(TcpListener, String)> {
    let mut ends = Vec::new();
    for _ in 0..count {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        ends.push((listener, address));
    }
    ends
}

fn file_bytes(file: usize) -> Vec<u8> {
    let first = file as i64 * ROWS_OF_FILE;
    let ids = first..first + ROWS_OF_FILE;
    let texts = ids.clone().map(|id| format!("row {id} has some text that takes space"));
    let fields =
        vec![Field::new("id", DataType::Int64, false), Field::new("text", DataType::Utf8, false)];
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        vec![
            Arc::new(Int64Array::from_iter_values(ids)),
            Arc::new(StringArray::from_iter_values(texts)),
        ],
    )
    .unwrap();
    parquet_file(&[batch], WriterProperties::default())
}

pub(super) fn key_file() -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(new_key().unwrap().as_bytes()).unwrap();
    file
}
