//! A server among others, message by message.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{CHUNK_ROWS, file_bytes, ids, in_time, manager_with, until};
use coscan_runtime::ring::{Config, Message, NodeId};
use coscan_runtime::storage::table::{FileOptions, ParquetTable};
use coscan_runtime::{
    BufferManager, CirculatingMessage, Cluster, ClusterOptions, Network, Options, Outgoing,
    OutgoingFragment, PeerMessage, SharedTable,
};
use coscan_testing::{Faults, table_file};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;

const FILES: usize = 16;
const ROWS_OF_FILE: u64 = 10 * CHUNK_ROWS;
const ROWS: u64 = FILES as u64 * ROWS_OF_FILE;
const ASKER: NodeId = NodeId(0);
const OWNER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

/// The messages that a server sends.
#[derive(Debug, Default)]
struct Outbox(Mutex<Vec<Outgoing>>);

impl Network for Outbox {
    fn send(&self, message: Outgoing) {
        self.0.lock().unwrap().push(message);
    }

    fn send_circulating(&self, _: NodeId, _: CirculatingMessage) {
        panic!("nothing goes round");
    }

    fn send_fragment(&self, _: OutgoingFragment) {
        panic!("nothing goes round");
    }
}

impl Outbox {
    /// Takes the first message that is as wanted, once there is one.
    async fn take(&self, is_wanted: impl Fn(&Outgoing) -> bool) -> PeerMessage {
        let taken = async {
            loop {
                if let Some(message) = self.find(&is_wanted) {
                    return message;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        in_time(taken).await
    }

    fn find(&self, is_wanted: impl Fn(&Outgoing) -> bool) -> Option<PeerMessage> {
        let mut sent = self.0.lock().unwrap();
        let wanted = sent.iter().position(is_wanted)?;
        Some(sent.swap_remove(wanted).message.clone())
    }
}

struct Server {
    manager: BufferManager,
    cluster: Cluster,
    outbox: Arc<Outbox>,
}

async fn files() -> Arc<InMemory> {
    let files = Arc::new(InMemory::new());
    for file in 0..FILES {
        let bytes = file_bytes(ROWS_OF_FILE, Compression::UNCOMPRESSED);
        files.put(&Path::from(format!("shared/{file:02}.parquet")), bytes.into()).await.unwrap();
    }
    files
}

impl Server {
    fn start(id: NodeId, store: &Arc<dyn ObjectStore>) -> Self {
        let manager = manager_with(Options::with_pool_bytes(64 << 20, 64 << 20));
        manager.stores().register(&"memory:///".parse().unwrap(), Arc::clone(store));
        let outbox = Arc::new(Outbox::default());
        let shared = ClusterOptions {
            stores: vec!["memory:///shared".parse().unwrap()].into(),
            ring: Config::default(),
            circulates: false,
        };
        let cluster = manager.join_cluster(id, 0, shared, Arc::clone(&outbox) as _).unwrap();
        cluster.set_members([ASKER, OWNER]);
        Self { manager, cluster, outbox }
    }

    async fn table(&self, store: &Arc<dyn ObjectStore>) -> SharedTable {
        let mut files = Vec::new();
        for file in 0..FILES {
            files.push(table_file(store, &format!("shared/{file:02}.parquet")).await);
        }
        let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
        let opened = self.manager.open_files(files, options).await.unwrap();
        self.manager.register(Arc::new(ParquetTable::of_files(opened).unwrap()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_file_is_forgotten_with_its_connection() {
    let store: Arc<dyn ObjectStore> = files().await;
    let asker = Server::start(ASKER, &store);
    let table = asker.table(&store).await;
    let rows = 0..ROWS;
    let scan = asker.manager.scan(&table, &[0], std::slice::from_ref(&rows)).unwrap();
    let scan = tokio::spawn(ids(scan));
    let need = |sent: &Outgoing| matches!(sent.message, Message::Need { .. });
    let need = asker.outbox.take(need).await;
    let about_it = |sent: &Outgoing| {
        matches!(sent.message, Message::Get { .. }) && sent.message.file() == need.file()
    };
    let get = asker.outbox.take(about_it).await;
    scan.abort();

    let gate = Faults::default();
    gate.close();
    let owner = Server::start(OWNER, &gate.around(store));
    owner.cluster.receive(ASKER, need, Vec::new());
    owner.cluster.reconnected(ASKER); // A new process, which has no scan.
    owner.cluster.receive(OTHER, get, Vec::new());
    gate.open();
    // It is answered after all requests that waited, too. The network has taken its answer.
    owner.outbox.take(|sent| sent.to == OTHER).await;
    let scans = || owner.manager.tables().iter().map(|table| table.scans).sum::<usize>();
    until(|| {
        owner.outbox.0.lock().unwrap().clear();
        scans() == 0
    })
    .await;
}
