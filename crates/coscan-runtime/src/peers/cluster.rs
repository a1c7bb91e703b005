//! The other servers, as a program sees them.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use coscan_ring::{GetId, NodeId, Share};
use coscan_storage::table::ParquetTable;

use crate::driver::{Driver, ServedFile};
use crate::manager::BufferManager;
use crate::peers::{
    CirculatingMessage, ClusterOptions, ClusterReport, FileName, FileOpener, FragmentSpace,
    Network, PeerMessage, SharedFileReport,
};
use crate::scans::parts::{ScanColumns, ScanParts};
use crate::scans::selection::PartialChunks;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::table::SharedTable;

/// The other servers with which a manager shares what it reads.
///
/// It lasts as long as the manager, or until the manager [leaves](Self::leave).
#[derive(Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    driver: Arc<Driver>,
    options: ClusterOptions,
    /// Files that others have asked for, as long as they do. This lock is taken before that of the manager's state,
    /// which has the same files.
    served: Mutex<BTreeMap<FileName, SharedTable>>,
    /// The memory for pages that are held for others outside of the pool, and for those that go round.
    _memory: MetadataReservation,
}

impl BufferManager {
    /// Shares reads with other servers from now on; `id` is this server. Tables that are registered already are not
    /// shared. `incarnation` is higher for each start of a server with this id, and at most 2⁴⁴, such as milliseconds
    /// since 1970. Returns `None` if the manager has joined before.
    ///
    /// # Panics
    /// If signs of life would come too late, see [`coscan_ring::Config::queued_ns`].
    #[must_use]
    pub fn join_cluster(
        &self,
        id: NodeId,
        incarnation: u64,
        options: ClusterOptions,
        network: Arc<dyn Network>,
    ) -> Option<Cluster> {
        let driver = Arc::clone(&self.driver);
        let shares = 1 + u64::from(options.circulates);
        let bytes = options.ring.transit_bytes_max.saturating_mul(shares);
        let memory = MetadataReservation::of_held(driver.memory(), bytes);
        let inner = Inner { driver, options, served: Mutex::default(), _memory: memory };
        let inner = Arc::new(inner);
        let opener = Arc::downgrade(&inner);
        if !self.driver.join_cluster(id, incarnation, &inner.options, network, opener) {
            return None;
        }
        let idle = Arc::downgrade(&inner);
        self.when_idle(move || idle.upgrade().map(|inner| inner.forget_idle()).is_some());
        Some(Cluster { inner })
    }
}

impl Cluster {
    /// Sets the servers that are alive, always including this one.
    pub fn set_members(&self, members: impl IntoIterator<Item = NodeId>) {
        self.inner.driver.set_members(members.into_iter().collect());
    }

    /// Notes that another server has a new connection to this one, or was started again. Its announcements are
    /// forgotten, and it repeats them. The needs of this server are announced again, too.
    pub fn reconnected(&self, peer: NodeId) {
        self.inner.driver.reconnected(peer);
    }

    /// Notes that the connection of another server to this one has ended. Its announcements are forgotten.
    pub fn disconnected(&self, peer: NodeId) {
        self.inner.driver.disconnected(peer);
    }

    /// Handles a message from another server, with the bytes of its pages if it is
    /// [`Pages`](coscan_ring::Message::Pages).
    pub fn receive(&self, from: NodeId, message: PeerMessage, pages: Vec<Bytes>) {
        self.inner.receive(from, message, pages);
    }

    /// Whether these pages were requested from that server and have not come, so that there is space for them. Others
    /// need not be taken from the network.
    #[must_use]
    pub fn expects(&self, from: NodeId, get: GetId, file: &FileName, pages: &[Range<u64>]) -> bool {
        self.inner.driver.expects(from, get, file, pages)
    }

    /// Handles a message from a neighbour on the ring, other than a fragment. It is ignored if it names a file that is
    /// not shared.
    pub fn receive_circulating(&self, message: CirculatingMessage) {
        if message.files.iter().all(|file| self.inner.is_shared(file)) {
            self.inner.driver.receive_circulating(message);
        }
    }

    /// Waits for space for the next fragment of the predecessor; `None` if nothing goes round here.
    pub async fn fragment_space(&self) -> Option<FragmentSpace> {
        let driver = &self.inner.driver;
        let bytes_max = poll_fn(|context| driver.poll_fragment_space(context.waker())).await?;
        Some(FragmentSpace::new(Arc::clone(driver), bytes_max))
    }

    /// Counts of what was exchanged so far.
    #[must_use]
    pub fn report(&self) -> ClusterReport {
        self.inner.driver.cluster_report()
    }

    /// The share of each server in the files that are shared. A server that is not listed owns nothing. For a moment
    /// after servers have come or gone, and after a file was opened, some extents count for no server, or for a former
    /// owner.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<NodeId, Share> {
        self.inner.driver.shares().into_iter().collect()
    }

    /// The files that are shared, one after the other. All pages of a file are looked at when it is asked for, a few at
    /// a time.
    pub fn shared_files(&self) -> impl Iterator<Item = SharedFileReport> + Send + use<> {
        let (driver, mut last) = (Arc::clone(&self.inner.driver), None);
        std::iter::from_fn(move || {
            let (file, report) = driver.next_shared_file(last)?;
            last = Some(file);
            Some(report)
        })
    }
}

impl Cluster {
    /// Leaves the other servers. The manager reads everything itself from now on, and sends nothing to others. They
    /// read themselves what they have asked it for.
    pub fn leave(&self) {
        self.inner.driver.leave_cluster();
        let served = std::mem::take(&mut *self.inner.served());
        drop(served); // Not under the lock.
    }
}

impl FileOpener for Inner {
    fn open(self: Arc<Self>, file: FileName) {
        let runtime = self.driver.runtime().clone();
        runtime.spawn(self.open_to_serve(file));
    }
}

impl Inner {
    fn receive(&self, from: NodeId, message: PeerMessage, pages: Vec<Bytes>) {
        if message.file().is_some_and(|file| !self.is_shared(file)) {
            self.driver.refuse(from, &message);
            return;
        }
        self.driver.receive(from, message, pages);
    }

    fn is_shared(&self, file: &FileName) -> bool {
        self.options.stores.contain(&file.url())
    }

    /// Opens a file that others ask for, as a table of its own.
    async fn open_to_serve(self: Arc<Self>, name: FileName) {
        let opened = self.table_of(&name).await;
        if opened.is_none() {
            log::warn!(
                "{} cannot be opened for other servers, which read it themselves",
                name.url()
            );
        }
        let served = opened.map(|table| {
            let columns: Vec<_> = (0..table.table().schema().fields().len()).collect();
            let columns = ScanColumns::new(table.snapshot(), &columns).expect("it has its columns");
            let parts = ScanParts::of_table(columns, PartialChunks::default());
            (ServedFile { table: table.id(), parts: Arc::new(parts) }, table)
        });
        let mut tables = self.served();
        let (served, table) = served.unzip();
        let before = table.and_then(|table| tables.insert(name.clone(), table));
        self.driver.opened_for_peers(&name, served);
        drop(tables);
        drop(before);
    }

    async fn table_of(&self, name: &FileName) -> Option<SharedTable> {
        let manager = BufferManager { driver: Arc::clone(&self.driver) };
        let (file, options) = name.locate(manager.stores())?;
        let files = manager.open_files([file], options).await;
        let files = files.inspect_err(|error| log::warn!("{error}")).ok()?;
        let table = ParquetTable::of_files(files).ok()?;
        Some(manager.register(Arc::new(table)))
    }

    /// Forgets the files that no server has asked for since the last call.
    fn forget_idle(&self) {
        let mut served = self.served();
        let idle = self.driver.forget_idle_files();
        let tables: Vec<_> = idle.iter().map(|name| served.remove(name)).collect();
        drop(served);
        drop(tables);
    }

    fn served(&self) -> MutexGuard<'_, BTreeMap<FileName, SharedTable>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
