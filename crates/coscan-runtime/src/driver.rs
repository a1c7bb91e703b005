//! Core under the machine's clock: commands go in under one lock, and what comes out is done.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coscan_core::{
    Action, ActiveBufferManager, ChunkIndex, GroupIndex, PageId, PageIndex, ScanId, ScanReport,
    ScanSpec, TableId, Time, WorkerIndex,
};
use coscan_storage::table::ParquetTable;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::decode_cache::{DecodeCache, SliceKey};
use crate::error::ScanError;
use crate::lease::Lease;
use crate::load;
use crate::memory::{ElasticPool, Memory};
use crate::metrics::{ManagerReport, ScanCounters};
use crate::options::Options;

/// What a worker that asked for a chunk gets: a chunk, nothing more, or the reason why not.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// A registered scan, as far as core does not know it.
#[derive(Debug)]
struct RunningScan {
    columns: Vec<usize>,
    counters: Arc<ScanCounters>,
    failed: Option<ScanError>,
}

/// All that is behind the one lock.
#[derive(Debug)]
struct Inner {
    core: ActiveBufferManager,
    tables: BTreeMap<TableId, Arc<ParquetTable>>,
    /// Tables that go when their last load has ended.
    doomed: Vec<TableId>,
    /// The bytes of every cached page.
    frames: BTreeMap<PageId, Bytes>,
    scans: BTreeMap<ScanId, RunningScan>,
    waiters: BTreeMap<(ScanId, WorkerIndex), oneshot::Sender<Answer>>,
    /// Why pages could not be read, until core has said who fails for it.
    read_errors: BTreeMap<PageId, ScanError>,
    /// When a timer will call.
    armed: Option<Time>,
}

/// Drives core.
#[derive(Debug)]
pub(crate) struct Driver {
    inner: Mutex<Inner>,
    decoded: Arc<DecodeCache>,
    memory: Arc<Memory>,
    options: Options,
    started: Instant,
    runtime: Handle,
    this: Weak<Driver>,
    pool_held_bytes: AtomicU64,
    /// Chunks in the hands of workers.
    pub(crate) leases: AtomicUsize,
}

/// What is done after the lock is given back, because it takes other locks or time.
#[derive(Default)]
struct Afterwards {
    loads: Vec<load::Load>,
    timer: Option<Time>,
    evicted: Vec<Bytes>,
    /// Chunks whose worker has gone.
    unclaimed: Vec<Answer>,
}

impl Driver {
    pub(crate) fn new(options: Options, runtime: Handle) -> Arc<Self> {
        let config = coscan_core::Config {
            pool_bytes: options.pool_bytes,
            loads_in_flight_max: options.loads_in_flight_max,
            ..coscan_core::Config::default()
        };
        Arc::new_cyclic(|driver: &Weak<Driver>| Self {
            inner: Mutex::new(Inner {
                core: ActiveBufferManager::new(config, options.policy.build()),
                tables: BTreeMap::new(),
                doomed: Vec::new(),
                frames: BTreeMap::new(),
                scans: BTreeMap::new(),
                waiters: BTreeMap::new(),
                read_errors: BTreeMap::new(),
                armed: None,
            }),
            decoded: Arc::default(),
            memory: Arc::new(Memory::new(&options, driver.clone() as _)),
            options,
            started: Instant::now(),
            runtime,
            this: driver.clone(),
            pool_held_bytes: AtomicU64::new(0),
            leases: AtomicUsize::new(0),
        })
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn decoded(&self) -> &Arc<DecodeCache> {
        &self.decoded
    }

    pub(crate) fn register_table(self: &Arc<Self>, table: Arc<ParquetTable>) -> TableId {
        self.command(|inner, _| {
            let id = inner.core.register_table(Arc::clone(table.layout()));
            inner.tables.insert(id, table);
            id
        })
    }

    pub(crate) fn remove_table(self: &Arc<Self>, table: TableId) {
        self.command(|inner, now| {
            inner.doomed.push(table);
            inner.remove_doomed(now);
        });
    }

    pub(crate) fn start_scan(
        self: &Arc<Self>,
        spec: &ScanSpec,
        columns: Vec<usize>,
        counters: Arc<ScanCounters>,
    ) -> Result<ScanId, ScanError> {
        self.command(|inner, now| {
            let id = inner.core.start_scan(now, spec)?;
            inner.scans.insert(id, RunningScan { columns, counters, failed: None });
            Ok(id)
        })
    }

    /// Asks for the next chunk of a worker. The answer comes when core decides it.
    pub(crate) fn request_chunk(
        self: &Arc<Self>,
        scan: ScanId,
        worker: WorkerIndex,
    ) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let refused = self.command(|inner, now| match inner.scans.get(&scan) {
            None => Some((sender, ScanError::Cancelled)),
            Some(RunningScan { failed: Some(error), .. }) => Some((sender, error.clone())),
            Some(_) => {
                inner.waiters.insert((scan, worker), sender);
                inner
                    .core
                    .request_chunk(now, scan, worker)
                    .expect("a stream asks for one chunk at a time");
                None
            }
        });
        if let Some((sender, error)) = refused {
            let _ = sender.send(Err(error));
        }
        receiver
    }

    pub(crate) fn release(self: &Arc<Self>, scan: ScanId, worker: WorkerIndex) {
        self.command(|inner, now| inner.core.release_chunk(now, scan, worker));
    }

    pub(crate) fn narrow_scan(self: &Arc<Self>, scan: ScanId, unwanted: &[ChunkIndex]) {
        self.command(|inner, now| inner.core.narrow_scan(now, scan, unwanted.iter().copied()));
    }

    /// Ends a scan; returns what it got.
    pub(crate) fn cancel_scan(self: &Arc<Self>, scan: ScanId) -> ScanReport {
        let report = self.command(|inner, now| {
            let report = inner.core.report(scan).unwrap_or_default();
            inner.core.cancel_scan(now, scan);
            inner.scans.remove(&scan);
            inner.waiters.retain(|&(waiting, _), _| waiting != scan);
            report
        });
        self.drop_unwanted_slices();
        report
    }

    pub(crate) fn report_scan(&self, scan: ScanId) -> ScanReport {
        self.lock().core.report(scan).unwrap_or_default()
    }

    pub(crate) fn remaining_chunks(&self, scan: ScanId) -> Vec<ChunkIndex> {
        self.lock()
            .core
            .state()
            .scan(scan)
            .map_or_else(Vec::new, |scan| scan.needed().iter().collect())
    }

    /// Evicts every page that no scan needs.
    pub(crate) fn evict_unwanted(self: &Arc<Self>) {
        self.drop_unwanted_slices();
        self.command(|inner, now| inner.core.evict_unwanted(now));
    }

    /// How many scans still need each of these slices.
    pub(crate) fn interested(&self, slices: impl IntoIterator<Item = SliceKey>) -> Vec<usize> {
        let inner = self.lock();
        slices.into_iter().map(|key| inner.interested(key)).collect()
    }

    /// Tells core which slices are decoded now, and which no longer are.
    pub(crate) fn note_decoded(self: &Arc<Self>, decoded: &[SliceKey], dropped: &[SliceKey]) {
        let mut inner = self.lock();
        for &key in decoded {
            if let Some(group) = inner.group(key) {
                inner.core.slice_decoded(key.table, key.chunk, group);
            }
        }
        for &key in dropped {
            if let Some(group) = inner.group(key) {
                inner.core.slice_dropped(key.table, key.chunk, group);
            }
        }
    }

    /// Drops decoded slices that nobody expects and no scan needs.
    pub(crate) fn drop_unwanted_slices(self: &Arc<Self>) {
        let ready: Vec<_> =
            self.decoded.ready().into_iter().filter(|(_, expected)| *expected == 0).collect();
        let wanted = self.interested(ready.iter().map(|(key, _)| *key));
        let unwanted =
            ready.iter().zip(wanted).filter(|(_, wanted)| *wanted == 0).map(|((key, _), _)| *key);
        let dropped: Vec<_> = unwanted.filter(|&key| self.decoded.remove_unexpected(key)).collect();
        self.note_decoded(&[], &dropped);
    }

    pub(crate) fn report(&self) -> ManagerReport {
        let usage = self.memory.usage();
        let inner = self.lock();
        ManagerReport {
            scans: inner.scans.len(),
            loads_in_flight: inner.core.loads_in_flight(),
            chunks_in_use: self.leases.load(Ordering::Relaxed),
            pool_held_bytes: inner.core.state().held_bytes(),
            pool_limit_bytes: inner.core.state().pool_bytes(),
            decoded_bytes: usage.decoded_bytes,
            operator_bytes: usage.operator_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    /// Reports the pages of a load, each read or not.
    pub(crate) fn finish_load(
        self: &Arc<Self>,
        load: &load::Load,
        pages: Vec<(PageIndex, Result<Bytes, ScanError>)>,
    ) {
        self.command(|inner, now| {
            for (page, result) in pages {
                let id = PageId { table: load.table_id, page };
                match result {
                    Ok(bytes) => {
                        inner.frames.insert(id, bytes);
                        inner.core.page_loaded(now, load.id, page);
                    }
                    Err(error) => {
                        inner.read_errors.insert(id, error);
                        inner.core.page_failed(now, load.id, page);
                    }
                }
            }
            inner.remove_doomed(now);
        });
    }

    fn handle_timeout(self: &Arc<Self>) {
        self.command(|inner, now| {
            inner.armed = None;
            inner.core.handle_timeout(now);
        });
    }

    /// Passes something to core, then does what core says.
    fn command<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let mut afterwards = Afterwards::default();
        let mut inner = self.lock();
        let now = self.now();
        let result = command(&mut inner, now);
        while let Some(action) = inner.core.poll_action() {
            self.act(&mut inner, action, &mut afterwards);
        }
        inner.read_errors.clear();
        afterwards.timer = inner.timer_to_arm(now);
        let held_bytes = inner.core.state().held_bytes();
        self.pool_held_bytes.store(held_bytes, Ordering::Relaxed);
        drop(inner);
        self.do_afterwards(afterwards);
        result
    }

    fn act(self: &Arc<Self>, inner: &mut Inner, action: Action, afterwards: &mut Afterwards) {
        match action {
            Action::Load { load, scan, table, chunk: _, pages } => {
                let counters = inner.scans.get(&scan).map(|scan| Arc::clone(&scan.counters));
                let table_id = table;
                let table = Arc::clone(&inner.tables[&table]);
                afterwards.loads.push(load::Load { id: load, table_id, table, pages, counters });
            }
            Action::Evict { page } => afterwards.evicted.extend(inner.frames.remove(&page)),
            Action::Deliver { scan, worker, chunk } => {
                let lease = self.lease(inner, scan, worker, chunk);
                inner.answer(scan, worker, Ok(Some(lease)), afterwards);
            }
            Action::Finish { scan, worker } => inner.answer(scan, worker, Ok(None), afterwards),
            Action::Fail { scan, page } => inner.fail(scan, page, afterwards),
        }
    }

    fn lease(
        self: &Arc<Self>,
        inner: &Inner,
        scan: ScanId,
        worker: WorkerIndex,
        chunk: ChunkIndex,
    ) -> Lease {
        let registered = inner.core.state().scan(scan).expect("core delivers to running scans");
        let table = registered.table();
        let mut pages: Vec<_> = inner
            .core
            .state()
            .pages(table, chunk, registered.groups())
            .into_iter()
            .map(|id| (id.page, inner.frames[&id].clone()))
            .collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let untaken = inner.scans[&scan].columns.clone();
        for &column in &untaken {
            self.decoded.expect(SliceKey { table, chunk, column });
        }
        self.leases.fetch_add(1, Ordering::Relaxed);
        Lease { driver: Arc::clone(self), table, scan, worker, chunk, pages, untaken }
    }

    fn do_afterwards(self: &Arc<Self>, afterwards: Afterwards) {
        self.memory.note_pool_held(self.pool_held_bytes.load(Ordering::Relaxed));
        for load in afterwards.loads {
            self.runtime.spawn(load::run(Arc::clone(self), load));
        }
        if let Some(time) = afterwards.timer {
            let driver = Arc::clone(self);
            let wait = Duration::from_nanos(time.since(self.now()));
            self.runtime.spawn(async move {
                tokio::time::sleep(wait).await;
                driver.handle_timeout();
            });
        }
        drop(afterwards.evicted);
        drop(afterwards.unclaimed);
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ElasticPool for Driver {
    fn set_limit_bytes(&self, bytes: u64) -> u64 {
        let driver = self.this.upgrade();
        driver
            .map_or(0, |driver| driver.command(|inner, now| inner.core.set_pool_bytes(now, bytes)))
    }

    fn held_bytes(&self) -> u64 {
        self.pool_held_bytes.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn interested(&self, key: SliceKey) -> usize {
        self.group(key)
            .map_or(0, |group| self.core.state().interested_in_slice(key.table, key.chunk, group))
    }

    fn group(&self, key: SliceKey) -> Option<GroupIndex> {
        self.tables.get(&key.table).map(|table| table.group_of_column(key.column))
    }

    fn answer(
        &mut self,
        scan: ScanId,
        worker: WorkerIndex,
        answer: Answer,
        afterwards: &mut Afterwards,
    ) {
        match self.waiters.remove(&(scan, worker)) {
            Some(sender) => afterwards.unclaimed.extend(sender.send(answer).err()),
            None => afterwards.unclaimed.push(answer),
        }
    }

    fn fail(&mut self, scan: ScanId, page: PageId, afterwards: &mut Afterwards) {
        let error = self.read_errors.remove(&page).unwrap_or(ScanError::Cancelled);
        let workers: Vec<_> =
            self.waiters.keys().filter(|(waiting, _)| *waiting == scan).copied().collect();
        for (scan, worker) in workers {
            self.answer(scan, worker, Err(error.clone()), afterwards);
        }
        if let Some(scan) = self.scans.get_mut(&scan) {
            scan.failed = Some(error);
        }
    }

    fn remove_doomed(&mut self, now: Time) {
        let mut doomed = std::mem::take(&mut self.doomed);
        doomed.retain(|&table| self.core.remove_table(now, table).is_err());
        self.tables.retain(|id, _| {
            doomed.contains(id) || self.core.state().tables().any(|(known, _)| known == *id)
        });
        self.doomed = doomed;
    }

    /// When a timer has to be armed: core wants to be called, and no timer will call by then.
    fn timer_to_arm(&mut self, now: Time) -> Option<Time> {
        let wanted = self.core.poll_timeout().filter(|&time| time > now)?;
        if self.armed.is_some_and(|armed| armed <= wanted) {
            return None;
        }
        self.armed = Some(wanted);
        Some(wanted)
    }
}
