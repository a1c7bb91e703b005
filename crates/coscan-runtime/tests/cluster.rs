//! Managers that share what they read: right rows for each, one read for all, and nothing lost when one of them is gone.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use common::{CHUNK_ROWS, assert_free, file_bytes, ids, in_time, manager_with, sorted};
use coscan_runtime::ring::{Config, NodeId, Sharing};
use coscan_runtime::storage::stores::{MeteredStore, StoreMetrics};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{
    BufferManager, Cluster, ClusterOptions, ClusterReport, Network, Options, Outgoing, SharedTable,
};
use futures::StreamExt;
use futures::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use url::Url;

/// Each file is one extent, so that each server owns some of them.
const FILES: usize = 16;
const ROWS_OF_FILE: u64 = 4 * CHUNK_ROWS;
const ROWS: u64 = FILES as u64 * ROWS_OF_FILE;

/// Delivers messages at once, to servers that are not cut off.
#[derive(Debug)]
struct Wires {
    clusters: OnceLock<Vec<Arc<Cluster>>>,
    cut_off: Mutex<BTreeSet<NodeId>>,
    queues: Vec<UnboundedSender<Outgoing>>,
}

#[derive(Debug)]
struct Wire {
    from: NodeId,
    wires: Arc<Wires>,
}

impl Network for Wire {
    fn send(&self, message: Outgoing) {
        if !self.wires.is_cut_off(self.from) {
            let _ = self.wires.queues[self.from.0 as usize].send(message);
        }
    }
}

impl Wires {
    fn is_cut_off(&self, node: NodeId) -> bool {
        self.cut_off.lock().unwrap().contains(&node)
    }

    async fn deliver(self: Arc<Self>, from: NodeId, mut queue: UnboundedReceiver<Outgoing>) {
        while let Some(Outgoing { to, message, pages, .. }) = queue.recv().await {
            if !self.is_cut_off(to) && !self.is_cut_off(from) {
                self.clusters.get().unwrap()[to.0 as usize].receive(from, message, pages);
            }
        }
    }
}

/// Servers on one store.
struct Servers {
    wires: Arc<Wires>,
    managers: Vec<BufferManager>,
    clusters: Vec<Arc<Cluster>>,
    tables: Vec<SharedTable>,
    store: Arc<StoreMetrics>,
    table_bytes: u64,
}

impl Servers {
    async fn start(count: u64, options: Options, ring: Config) -> Self {
        let files = Arc::new(InMemory::new());
        let bytes = file_bytes(ROWS_OF_FILE, Compression::UNCOMPRESSED);
        let mut metas = Vec::new();
        for file in 0..FILES {
            let path = Path::from(format!("shared/{file:02}.parquet"));
            files.put(&path, bytes.clone().into()).await.unwrap();
            metas.push(files.head(&path).await.unwrap());
        }
        let metrics = StoreMetrics::with_log();
        let url: Url = "memory:///".parse().unwrap();
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| unbounded_channel()).unzip();
        let wires = Wires { clusters: OnceLock::new(), cut_off: Mutex::default(), queues };
        let wires = Arc::new(wires);
        let (mut managers, mut clusters, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for id in (0..count).map(NodeId) {
            let manager = manager_with(options.clone());
            let store: Arc<dyn ObjectStore> =
                Arc::new(MeteredStore::new(Arc::clone(&files) as _, Arc::clone(&metrics)));
            manager.stores().register(&url, Arc::clone(&store));
            let shared = ClusterOptions { stores: vec!["memory:///shared".parse().unwrap()], ring };
            let wire = Arc::new(Wire { from: id, wires: Arc::clone(&wires) });
            clusters.push(Arc::new(manager.join_cluster(id, 0, shared, wire).unwrap()));
            let file = |meta: &ObjectMeta| TableFile {
                store: Arc::clone(&store),
                store_url: url.clone(),
                meta: meta.clone(),
            };
            let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
            let opened = manager.open_files(metas.iter().map(file), options).await.unwrap();
            tables.push(manager.register(Arc::new(ParquetTable::of_files(opened).unwrap())));
            managers.push(manager);
        }
        wires.clusters.set(clusters.clone()).unwrap();
        for (id, queue) in (0..).map(NodeId).zip(receivers) {
            tokio::spawn(Arc::clone(&wires).deliver(id, queue));
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
    async fn scan(&self, server: usize) -> bool {
        let stream = self.managers[server].scan(&self.tables[server], &[0, 1, 2], &all_rows());
        let ids = sorted(in_time(ids(stream.unwrap())).await.unwrap());
        let expected = (0..ROWS_OF_FILE as i64).flat_map(|id| std::iter::repeat_n(id, FILES));
        ids.into_iter().eq(expected)
    }

    async fn scan_all(&self, servers: impl IntoIterator<Item = usize>) {
        let scans = servers.into_iter().map(|server| self.scan(server));
        assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    }

    /// Waits until a server has asked another for pages.
    async fn has_asked(&self, server: usize) {
        in_time(async {
            while self.clusters[server].report().requests_made == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// A server is gone: nothing reaches it, nothing comes from it.
    fn cut_off(&self, server: usize) {
        self.wires.cut_off.lock().unwrap().insert(NodeId(server as u64));
    }

    async fn assert_free(&self, servers: impl IntoIterator<Item = usize>) {
        for server in servers {
            let manager = &self.managers[server];
            // The others say last that they need nothing any more.
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

    fn reports(&self) -> impl Iterator<Item = ClusterReport> {
        self.clusters.iter().map(|cluster| cluster.report())
    }

    /// Bytes of pages that were read from the store. All files are open: footers were read before.
    fn pages_read(&self) -> u64 {
        self.store.snapshot().bytes
    }
}

fn all_rows() -> Vec<Range<u64>> {
    std::iter::once(0..ROWS).collect()
}

fn pool_for_all() -> Options {
    Options::with_pool_bytes(64 << 20, 16 << 20)
}

fn reads() -> Config {
    sharing(Sharing::Reads)
}

fn sharing(sharing: Sharing) -> Config {
    Config { sharing, ..Config::default() }
}

const ALL: [Sharing; 3] = [Sharing::Reads, Sharing::Needs, Sharing::All];

#[tokio::test]
async fn each_page_is_read_once_for_all_servers() {
    for level in ALL {
        let servers = Servers::start(3, pool_for_all(), sharing(level)).await;
        servers.scan_all([0, 1, 2]).await;
        assert_eq!(servers.pages_read(), servers.table_bytes, "{level:?}");
        let received: u64 = servers.reports().map(|report| report.bytes_received).sum();
        assert_eq!(received, 2 * servers.table_bytes, "two of three get each page from the third");
        let read: u64 = servers.managers.iter().map(|manager| manager.report().bytes_read).sum();
        assert_eq!(read, servers.table_bytes, "what comes from others is not read");
        servers.assert_free(0..3).await;
    }
}

#[tokio::test]
async fn what_others_will_need_is_kept_until_they_do_not() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::Needs)).await;
    let [asker, owner] = [&servers.managers[0], &servers.managers[1]];
    servers.scan_all([1]).await;
    let stream = asker.scan(&servers.tables[0], &[0], &all_rows()).unwrap();
    // The owner is told, and opens its files for that.
    in_time(async {
        let kept = || {
            owner.evict_unneeded();
            owner.report().pool_held_bytes
        };
        while kept() == servers.table_bytes || !has_interest(owner) {
            servers.scan_all([1]).await;
        }
        let id_bytes = kept();
        assert!(0 < id_bytes && id_bytes < servers.table_bytes / 2, "a column of its own files");
        drop(stream);
        while kept() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_had_left_this_one_out_is_told_again() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::Needs)).await;
    let _stream = servers.managers[0].scan(&servers.tables[0], &[0], &all_rows()).unwrap();
    let told = async |is_told: bool| {
        in_time(async {
            while has_interest(&servers.managers[1]) != is_told {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    told(true).await;
    servers.clusters[1].set_members([NodeId(1)]);
    told(false).await;
    servers.clusters[1].set_members([NodeId(0), NodeId(1)]);
    servers.clusters[0].reconnected(NodeId(1));
    told(true).await;
}

/// Whether a server knows of a scan of another one.
fn has_interest(manager: &BufferManager) -> bool {
    manager.tables().iter().any(|table| table.scans > 0)
}

#[tokio::test]
async fn servers_that_share_nothing_read_all_themselves() {
    let off = Config { sharing: Sharing::Off, ..Config::default() };
    let servers = Servers::start(3, pool_for_all(), off).await;
    servers.scan_all([0, 1, 2]).await;
    assert_eq!(servers.pages_read(), 3 * servers.table_bytes);
}

#[tokio::test]
async fn little_memory_costs_reads_but_no_row() {
    let mut bypassed_in_all = 0;
    for pool_bytes in [120_000, 300_000, 1_000_000] {
        for transit_bytes_max in [0, 100_000, 32 << 20] {
            for level in ALL {
                let ring = Config { transit_bytes_max, ..sharing(level) };
                let options = Options::with_pool_bytes(pool_bytes, 64 << 20);
                let servers = Servers::start(3, options, ring).await;
                servers.scan_all([0, 1, 2, 0, 1, 2]).await;
                servers.assert_free(0..3).await;
                let bypassed: u64 = servers.reports().map(|report| report.bytes_bypassed).sum();
                assert!(transit_bytes_max > 0 || bypassed == 0);
                bypassed_in_all += bypassed;
            }
        }
    }
    assert!(bypassed_in_all > 0, "pools were never too small");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_costs_time_but_no_row() {
    for (members_know, level) in
        [false, true].into_iter().flat_map(|know| ALL.map(|level| (know, level)))
    {
        let servers = Servers::start(3, pool_for_all(), sharing(level)).await;
        let cut_off = async {
            servers.has_asked(0).await;
            servers.cut_off(2);
            if members_know {
                servers.clusters[0].set_members([0, 1].map(NodeId));
                servers.clusters[1].set_members([0, 1].map(NodeId));
            }
        };
        let (is_right, ()) = tokio::join!(servers.scan(0), cut_off);
        assert!(is_right);
        let healthy = servers.table_bytes..2 * servers.table_bytes;
        assert!(healthy.contains(&servers.pages_read()), "who stands in for it reads");
        servers.assert_free(0..2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_reads_from_the_store_what_it_asked_for() {
    let servers = Servers::start(3, pool_for_all(), reads()).await;
    let cut_off = async {
        servers.has_asked(0).await;
        servers.cut_off(1);
        servers.cut_off(2);
    };
    let (is_right, ()) = tokio::join!(servers.scan(0), cut_off);
    assert!(is_right);
    let instead = servers.clusters[0].report().bytes_read_instead;
    assert!(instead > 0 && instead < servers.table_bytes);
    servers.assert_free([0]).await;
}

#[tokio::test]
async fn a_scan_that_is_dropped_takes_back_what_it_asked_for() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::All)).await;
    for take in 0..6 {
        let stream = servers.managers[0].scan(&servers.tables[0], &[0, 1], &all_rows()).unwrap();
        let some: Vec<_> = in_time(stream.take(take).collect()).await;
        assert!(some.iter().all(Result::is_ok));
    }
    servers.scan_all([0, 1]).await;
    servers.assert_free(0..2).await;
}

#[tokio::test]
async fn a_table_may_go_while_others_read_it() {
    let mut servers = Servers::start(2, pool_for_all(), sharing(Sharing::All)).await;
    let own = servers.tables.remove(1);
    let (manager, table) = (servers.managers[0].clone(), servers.tables[0].clone());
    let scan = tokio::spawn(async move {
        let stream = manager.scan(&table, &[0], &all_rows()).unwrap();
        in_time(ids(stream)).await.unwrap().len() as u64
    });
    servers.has_asked(0).await;
    drop(own);
    assert_eq!(scan.await.unwrap(), ROWS);
    servers.assert_free(0..2).await;
}

#[tokio::test]
async fn a_server_that_leaves_reads_alone_from_then_on() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::All)).await;
    servers.scan_all([0]).await;
    servers.assert_free([0]).await;
    let before = servers.pages_read();
    servers.managers[0].evict_unneeded();
    servers.clusters[0].leave();
    assert!(servers.scan(0).await);
    assert_eq!(servers.pages_read() - before, servers.table_bytes);
}
