//! Servers that share the files of a directory, and the one that asks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::core::PageIndex;
use coscan_runtime::ring::Config;
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, ClusterOptions, Options, ScanRequest, SharedTable};
use coscan_transport::{Credentials, PeerStatus, Transport, TransportConfig};
use futures::StreamExt;
use object_store::ObjectStoreExt;
use tokio::net::TcpListener;
use url::Url;

use crate::tables::{COLUMNS, FILES, file_name};

pub(crate) const KEY: &str = "ring.key";

/// The size of a pool that holds all pages.
const POOL_BYTES: u64 = 512 << 20;
const DECODE_BYTES: u64 = 64 << 20;

/// A server of the files of a directory, and its address.
pub(crate) async fn start(
    directory: &Path,
    host: &str,
    join: Vec<String>,
) -> (BufferManager, Transport, String) {
    let manager = BufferManager::new(Options::with_pool_bytes(POOL_BYTES, DECODE_BYTES)).unwrap();
    let listener = TcpListener::bind((host, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let config = TransportConfig {
        address: address.clone(),
        join,
        zone: String::new(),
        credentials: Credentials::Key(directory.join(KEY)),
    };
    let stores = vec![Url::from_directory_path(directory).unwrap()];
    let options =
        ClusterOptions { stores: stores.into(), ring: Config::default(), circulates: false };
    let transport = Transport::start(listener, config, &manager, options).unwrap();
    (manager, transport, address)
}

/// A server that has none of the pages.
pub(crate) struct Asker {
    manager: BufferManager,
    transport: Transport,
    /// The files that the other server owns.
    table: SharedTable,
}

impl Asker {
    pub(crate) async fn join(
        directory: &Path,
        host: &str,
        owner: &str,
        options: FileOptions,
    ) -> Self {
        let join = vec![owner.to_owned()];
        let (manager, transport, _) = start(directory, host, join).await;
        let shares = |status| status == PeerStatus::Sharing;
        while !transport.peers().iter().any(|peer| shares(peer.status)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let url = Url::from_directory_path(directory).unwrap();
        let (store_url, store) = manager.stores().resolve(&url).unwrap();
        let (mut own, mut of_owner) = (Vec::new(), Vec::new());
        for index in 0..FILES {
            let path = directory.join(file_name(index));
            let path = object_store::path::Path::from_absolute_path(path).unwrap();
            let meta = store.head(&path).await.unwrap();
            let file = TableFile { store: Arc::clone(&store), store_url: store_url.clone(), meta };
            let opened = manager.open_files([file], options).await.unwrap();
            let table = register(&manager, opened.clone());
            let before = received(&transport);
            scan(&manager, &table).await;
            let is_sent = received(&transport) > before;
            if is_sent { &mut of_owner } else { &mut own }.extend(opened);
        }
        assert!(!of_owner.is_empty(), "the owner has some of {FILES} files");
        let table = register(&manager, of_owner);
        Self { manager, transport, table }
    }

    /// Reads the table until at least this number of bytes has come. Returns the number.
    pub(crate) async fn read(&self, bytes_min: u64) -> u64 {
        let before = received(&self.transport);
        loop {
            self.manager.evict_unneeded();
            scan(&self.manager, &self.table).await;
            let bytes = received(&self.transport) - before;
            if bytes >= bytes_min {
                let report = self.transport.cluster().report();
                assert_eq!(report.bytes_read_instead, 0, "the owner has sent all");
                return bytes;
            }
        }
    }

    /// Reads the table as often from the server's own pool, where it has been since it was last [read](Self::read).
    pub(crate) async fn read_own(&self, bytes_min: u64) -> u64 {
        let (before, layout) = (received(&self.transport), self.table.table().layout());
        let pages = (0..layout.page_count() as u32).map(PageIndex);
        let table_bytes: u64 = pages.map(|page| layout.bytes_of(page)).sum();
        let mut bytes = 0;
        while bytes < bytes_min {
            scan(&self.manager, &self.table).await;
            bytes += table_bytes;
        }
        assert_eq!(received(&self.transport), before, "all of it is in the pool");
        bytes
    }
}

fn register(
    manager: &BufferManager,
    files: Vec<Arc<coscan_runtime::storage::table::ParquetFile>>,
) -> SharedTable {
    manager.register(Arc::new(ParquetTable::of_files(files).unwrap()))
}

fn received(transport: &Transport) -> u64 {
    transport.cluster().report().bytes_received
}

async fn scan(manager: &BufferManager, table: &SharedTable) {
    let request = ScanRequest::of_columns(table, (0..COLUMNS).collect());
    let mut batches = manager.scan(table, &request.columns, &request.rows).unwrap();
    while let Some(batch) = batches.next().await {
        batch.unwrap();
    }
}
