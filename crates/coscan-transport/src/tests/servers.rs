//! Servers on one store in memory.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coscan_runtime::core::PageIndex;
use coscan_runtime::ring::Config;
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, ClusterOptions, Options, SharedTable};
use futures::TryStreamExt;
use futures::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use url::Url;

use crate::{Credentials, PeerStatus, Transport, TransportConfig, new_key};

/// Each file is an extent, so that each server owns some of them.
pub(super) const FILES: usize = 24;
pub(super) const ROWS_OF_FILE: i64 = 2_000;

/// Servers that share a table on one store.
pub(super) struct Servers {
    key: NamedTempFile,
    store: Arc<InMemory>,
    metrics: Arc<StoreMetrics>,
    files: Vec<ObjectMeta>,
    addresses: Vec<String>,
    zones: Vec<&'static str>,
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
        let servers = Self::in_zones(vec!["here"; count]).await;
        servers.all_share().await;
        servers.metrics.reset();
        servers
    }

    async fn in_zones(zones: Vec<&'static str>) -> Self {
        let store = Arc::new(InMemory::new());
        let mut files = Vec::new();
        for file in 0..FILES {
            let path = Path::from(format!("shared/{file:02}.parquet"));
            store.put(&path, parquet_file(file).into()).await.unwrap();
            files.push(store.head(&path).await.unwrap());
        }
        let secret = Path::from("secret/00.parquet");
        store.put(&secret, parquet_file(0).into()).await.unwrap();
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for _ in &zones {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap().to_string());
            listeners.push(listener);
        }
        let (key, metrics) = (key_file(), StoreMetrics::with_log());
        let running = Vec::new();
        let mut servers =
            Self { key, store, metrics, files, addresses, zones, running, table_bytes: 0 };
        for (server, listener) in listeners.into_iter().enumerate() {
            let server = servers.server(server, listener).await;
            servers.running.push(Some(server));
        }
        let layout = servers.running(0).table.table().layout();
        let pages = (0..layout.page_count() as u32).map(PageIndex);
        servers.table_bytes = pages.map(|page| layout.bytes_of(page)).sum();
        servers
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
            credentials: self.credentials(),
        };
        let shared = ClusterOptions {
            stores: vec!["memory:///shared/".parse().unwrap()],
            ring: Config::default(),
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
    async fn all_share(&self) {
        for server in 0..self.running.len() {
            let others = (0..self.running.len()).filter(|&other| other != server);
            for other in others.filter(|&other| self.running[other].is_some()) {
                self.becomes(server, other, PeerStatus::Sharing).await;
            }
        }
    }

    /// Waits until a server says this of another.
    async fn becomes(&self, server: usize, other: usize, status: PeerStatus) {
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

    pub(super) fn credentials(&self) -> Credentials {
        Credentials::Key(self.key.path().to_owned())
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
    fn stop(&mut self, server: usize) {
        self.running[server] = None;
    }

    async fn restart(&mut self, server: usize) {
        let listener = TcpListener::bind(&self.addresses[server]).await.unwrap();
        let started = self.server(server, listener).await;
        self.running[server] = Some(started);
        self.all_share().await;
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.metrics.snapshot().bytes
    }

    /// The files that were read.
    pub(super) fn files_read(&self) -> Vec<String> {
        self.metrics.take_log().into_iter().map(|read| read.path.to_string()).collect()
    }

    pub(super) fn bytes_received(&self) -> u64 {
        let servers = self.running.iter().flatten();
        servers.map(|server| server.transport.cluster().report().bytes_received).sum()
    }
}

fn parquet_file(file: usize) -> Vec<u8> {
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
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

pub(super) fn key_file() -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(new_key().unwrap().as_bytes()).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_is_read_once_for_all_servers() {
    let servers = Servers::start(3).await;
    let scans = (0..3).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), servers.table_bytes);
    assert_eq!(servers.bytes_received(), 2 * servers.table_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_costs_no_row_and_takes_part_again_when_it_is_back() {
    let mut servers = Servers::start(3).await;
    let scan = tokio::spawn(servers.scan(0));
    servers.stop(2);
    assert!(scan.await.unwrap());
    assert!(servers.scan(1).await);
    servers.restart(2).await;
    let before = servers.bytes_read();
    assert!(servers.scan(2).await);
    let read_again = servers.bytes_read() - before;
    assert!(read_again < servers.table_bytes, "others have some of it: {read_again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_come_and_go_under_load_cost_no_row() {
    let mut servers = Servers::start(3).await;
    for round in 0..10 {
        let server = 1 + round % 2;
        let scans: Vec<_> = (0..3).map(|_| tokio::spawn(servers.scan(0))).collect();
        servers.stop(server);
        for scan in scans {
            assert!(scan.await.unwrap());
        }
        let scan = tokio::spawn(servers.scan(0));
        servers.restart(server).await;
        assert!(scan.await.unwrap() && servers.scan(server).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_stay_in_their_zone() {
    let servers = Servers::in_zones(vec!["a", "a", "b"]).await;
    servers.becomes(0, 1, PeerStatus::Sharing).await;
    servers.becomes(1, 0, PeerStatus::Sharing).await;
    servers.becomes(0, 2, PeerStatus::OtherZone).await;
    servers.becomes(2, 1, PeerStatus::OtherZone).await;
    servers.metrics.reset();
    let scans = (0..3).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), 2 * servers.table_bytes, "once for each zone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_of_servers_that_cannot_answer() {
    let mut servers = Servers::in_zones(vec!["here"; 2]).await;
    servers.all_share().await;
    servers.stop(1);
    // Back at an address where nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    servers.addresses[1] = "127.0.0.1:1".to_owned();
    servers.running[1] = Some(servers.server(1, listener).await);
    servers.becomes(1, 0, PeerStatus::OneWay).await;
    servers.becomes(0, 1, PeerStatus::Unreachable).await;
    servers.metrics.reset();
    assert!(servers.scan(1).await);
    assert_eq!(servers.bytes_read(), servers.table_bytes, "it reads all itself");
    assert_eq!(servers.bytes_received(), 0);
}
