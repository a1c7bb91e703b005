//! Managers on one store, and messages between them that are delivered at once.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use coscan_runtime::ring::{Config, Message, NodeId};
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable};
use coscan_runtime::{
    BufferManager, CirculatingMessage, Cluster, ClusterOptions, ClusterReport, Network, Options,
    Outgoing, OutgoingFragment, SharedTable,
};
use coscan_testing::table_file;
use futures::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use url::Url;

use crate::common::{CHUNK_ROWS, assert_free, file_bytes, ids, in_time, manager_with, sorted};

/// The number of files. Each is one extent, so that each server owns some of them.
pub(crate) const FILES: usize = 16;
pub(crate) const ROWS_OF_FILE: u64 = 4 * CHUNK_ROWS;
pub(crate) const ROWS: u64 = FILES as u64 * ROWS_OF_FILE;

/// Delivers messages at once, to servers that are not cut off.
#[derive(Debug)]
pub(crate) struct Wires {
    clusters: OnceLock<Vec<Arc<Cluster>>>,
    cut_off: Mutex<BTreeSet<NodeId>>,
    /// The server that is cut off before the next request to it comes.
    pub(crate) cut_off_when_asked: Mutex<Option<NodeId>>,
    /// Requests that did not reach a server that is cut off, and answers that did not come from it.
    pub(crate) lost: AtomicUsize,
    /// Fragments that went from one server to the next.
    pub(crate) fragments_carried: AtomicUsize,
    /// The server for which messages are held up.
    pub(crate) held_up: watch::Sender<Option<NodeId>>,
    queues: Vec<UnboundedSender<Queued>>,
    fragments: Vec<UnboundedSender<OutgoingFragment>>,
}

#[derive(Debug)]
enum Queued {
    Message(Outgoing),
    Circulating(NodeId, CirculatingMessage),
}

#[derive(Debug)]
pub(crate) struct Wire {
    from: NodeId,
    wires: Arc<Wires>,
}

impl Network for Wire {
    fn send(&self, message: Outgoing) {
        let is_asked = matches!(message.message, Message::Get { .. });
        let mut cut_off = self.wires.cut_off_when_asked.lock().unwrap();
        if let Some(asked) = cut_off.take_if(|&mut server| is_asked && message.to == server) {
            self.wires.cut_off.lock().unwrap().insert(asked);
        }
        drop(cut_off);
        if !self.wires.is_cut_off(self.from) {
            let _ = self.wires.queues[self.from.0 as usize].send(Queued::Message(message));
        }
    }

    fn send_circulating(&self, to: NodeId, message: CirculatingMessage) {
        let _ = self.wires.queues[self.from.0 as usize].send(Queued::Circulating(to, message));
    }

    fn send_fragment(&self, fragment: OutgoingFragment) {
        let _ = self.wires.fragments[self.from.0 as usize].send(fragment);
    }
}

impl Wires {
    pub(crate) fn is_cut_off(&self, node: NodeId) -> bool {
        self.cut_off.lock().unwrap().contains(&node)
    }

    async fn deliver(self: Arc<Self>, from: NodeId, mut queue: UnboundedReceiver<Queued>) {
        let mut held_up = self.held_up.subscribe();
        while let Some(queued) = queue.recv().await {
            let Outgoing { to, message, pages, .. } = match queued {
                Queued::Message(message) => message,
                Queued::Circulating(to, message) => {
                    if !self.is_cut_off(to) && !self.is_cut_off(from) {
                        self.clusters.get().unwrap()[to.0 as usize].receive_circulating(message);
                    }
                    continue;
                }
            };
            held_up.wait_for(|&held_up| held_up != Some(to)).await.unwrap();
            if !self.is_cut_off(to) && !self.is_cut_off(from) {
                self.clusters.get().unwrap()[to.0 as usize].receive(from, message, pages);
            } else if matches!(message, Message::Get { .. } | Message::Pages { .. }) {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Wires {
    /// Carries fragments, each once its receiver has space. Fragments for a server that is cut off are not taken.
    async fn carry(self: Arc<Self>, from: NodeId, mut queue: UnboundedReceiver<OutgoingFragment>) {
        while let Some(fragment) = queue.recv().await {
            let to = &self.clusters.get().unwrap()[fragment.to.0 as usize];
            let is_cut_off = || self.is_cut_off(fragment.to) || self.is_cut_off(from);
            let Some(bytes) = fragment.bytes().filter(|_| !is_cut_off()) else { continue };
            // If nothing goes round any more, the fragment is not taken.
            let Some(space) = to.fragment_space().await else { continue };
            assert!(fragment.header.fragment.len_bytes() <= space.bytes_max());
            self.fragments_carried.fetch_add(1, Ordering::Relaxed);
            space.fill(fragment.header, Bytes::clone(&bytes));
            drop(bytes);
            fragment.sent();
        }
    }
}

/// Servers on one store.
pub(crate) struct Servers {
    pub(crate) wires: Arc<Wires>,
    pub(crate) managers: Vec<BufferManager>,
    pub(crate) clusters: Vec<Arc<Cluster>>,
    pub(crate) tables: Vec<SharedTable>,
    store: Arc<StoreMetrics>,
    pub(crate) table_bytes: u64,
}

impl Servers {
    pub(crate) async fn start(count: u64, options: Options, ring: Config) -> Self {
        Self::start_with(count, options, ring, false).await
    }

    /// Servers between which pages go round.
    pub(crate) async fn start_circulating(count: u64, options: Options, ring: Config) -> Self {
        Self::start_with(count, options, ring, true).await
    }

    async fn start_with(count: u64, options: Options, ring: Config, circulates: bool) -> Self {
        let files = Arc::new(InMemory::new());
        let bytes = file_bytes(ROWS_OF_FILE, Compression::UNCOMPRESSED);
        let paths: Vec<_> = (0..FILES).map(|file| format!("shared/{file:02}.parquet")).collect();
        for path in &paths {
            files.put(&Path::from(&**path), bytes.clone().into()).await.unwrap();
        }
        let metrics = StoreMetrics::with_log();
        let url: Url = "memory:///".parse().unwrap();
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| unbounded_channel()).unzip();
        let (fragments, fragment_receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| unbounded_channel()).unzip();
        let wires = Wires {
            clusters: OnceLock::new(),
            cut_off: Mutex::default(),
            cut_off_when_asked: Mutex::default(),
            lost: AtomicUsize::new(0),
            fragments_carried: AtomicUsize::new(0),
            held_up: watch::Sender::default(),
            queues,
            fragments,
        };
        let wires = Arc::new(wires);
        let (mut managers, mut clusters, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for id in (0..count).map(NodeId) {
            let manager = manager_with(options.clone());
            let store: Arc<dyn ObjectStore> =
                Arc::new(MeteredStore::new(Arc::clone(&files) as _, Arc::clone(&metrics)));
            manager.stores().register(&url, Arc::clone(&store));
            let stores = vec!["memory:///shared".parse().unwrap()];
            let shared = ClusterOptions { stores: stores.into(), ring, circulates };
            let wire = Arc::new(Wire { from: id, wires: Arc::clone(&wires) });
            clusters.push(Arc::new(manager.join_cluster(id, 0, shared, wire).unwrap()));
            let files = join_all(paths.iter().map(|path| table_file(&store, path))).await;
            let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
            let opened = manager.open_files(files, options).await.unwrap();
            tables.push(manager.register(Arc::new(ParquetTable::of_files(opened).unwrap())));
            managers.push(manager);
        }
        wires.clusters.set(clusters.clone()).unwrap();
        for (id, queue) in (0..).map(NodeId).zip(receivers) {
            tokio::spawn(Arc::clone(&wires).deliver(id, queue));
        }
        for (id, queue) in (0..).map(NodeId).zip(fragment_receivers) {
            tokio::spawn(Arc::clone(&wires).carry(id, queue));
        }
        for cluster in &clusters {
            cluster.set_members((0..count).map(NodeId));
        }
        metrics.reset();
        let layout = tables[0].table().layout();
        let pages = 0..layout.page_count() as u32;
        let table_bytes =
            pages.map(|page| layout.bytes_of(coscan_runtime::core::PageIndex(page))).sum();
        Self { wires, managers, clusters, tables, store: metrics, table_bytes }
    }

    /// Whether a server gets all rows, with all columns.
    pub(crate) async fn scan(&self, server: usize) -> bool {
        let stream = self.managers[server].scan(&self.tables[server], &[0, 1, 2], &all_rows());
        let ids = sorted(in_time(ids(stream.unwrap())).await.unwrap());
        let expected = (0..ROWS_OF_FILE as i64).flat_map(|id| std::iter::repeat_n(id, FILES));
        ids.into_iter().eq(expected)
    }

    pub(crate) async fn scan_all(&self, servers: impl IntoIterator<Item = usize>) {
        let scans = servers.into_iter().map(|server| self.scan(server));
        assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    }

    /// Waits until a server has asked another for pages.
    pub(crate) async fn has_asked(&self, server: usize) {
        self.reports_some(server, |report| report.requests_made).await;
    }

    /// Waits until a server has something to report.
    pub(crate) async fn reports_some(&self, server: usize, what: impl Fn(ClusterReport) -> u64) {
        in_time(async {
            while what(self.clusters[server].report()) == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Cuts a server off: nothing reaches it, nothing comes from it.
    pub(crate) fn cut_off(&self, server: usize) {
        self.wires.cut_off.lock().unwrap().insert(NodeId(server as u64));
    }

    pub(crate) async fn assert_free(&self, servers: impl IntoIterator<Item = usize>) {
        for server in servers {
            let manager = &self.managers[server];
            // The others announce last that they need nothing any more.
            in_time(async {
                manager.evict_unneeded();
                while manager.report().pool_held_bytes > 0 {
                    tokio::task::yield_now().await;
                    manager.evict_unneeded();
                }
            })
            .await;
            assert_free(manager).await;
        }
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = ClusterReport> {
        self.clusters.iter().map(|cluster| cluster.report())
    }

    /// Bytes of pages that were read from the store. All files are open: footers were read before.
    pub(crate) fn pages_read(&self) -> u64 {
        self.store.snapshot().bytes
    }
}

pub(crate) fn all_rows() -> Vec<Range<u64>> {
    std::iter::once(0..ROWS).collect()
}
