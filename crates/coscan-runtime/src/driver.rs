//! Core under the machine's clock: commands go in under one lock, and what comes out is done.
//!
//! Commands are here, what they lead to in `actions`, what is behind the lock in `inner`; `slices` keeps decoded columns
//! for those who will take them, `room` finds memory to decode.
//!
//! Locks are taken in this order: the budget's, the driver's, the decode cache's. No array, chunk or load is dropped
//! under any of them: that gives memory and pages back, which takes them again.

mod actions;
mod inner;
mod room;
mod slices;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use coscan_core::{
    ChunkIndex, Index, PageId, PageIndex, RequestError, ScanId, ScanLength, ScanReport, ScanSpec,
    StartScanError, TableId, Time, WorkerIndex,
};
use coscan_storage::table::ParquetTable;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::decode_cache::DecodeCache;
use crate::error::ScanError;
use crate::gate::Gates;
use crate::lease::Lease;
use crate::load::Load;
use crate::memory::Memory;
use crate::metrics::{ManagerReport, SliceCounters};
use crate::options::Options;
use crate::processors::Processors;
use crate::reading::Reading;
use crate::recording::Recorder;
use inner::Inner;
pub(crate) use inner::RunningScan;

/// What a worker that asked for a chunk gets: a chunk, nothing more, or the reason why not.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// Drives core.
#[derive(Debug)]
pub(crate) struct Driver {
    inner: Mutex<Inner>,
    decoded: Arc<DecodeCache>,
    memory: Arc<Memory>,
    gates: Gates,
    processors: Arc<Processors>,
    options: Options,
    started: Instant,
    reading: Reading,
    this: Weak<Driver>,
    pool_held_bytes: AtomicU64,
    slices_of_all: Arc<SliceCounters>,
    /// Chunks in the hands of workers.
    pub(crate) leases: AtomicUsize,
}

impl Driver {
    pub(crate) fn new(options: Options, reading: Reading, recorder: Option<Recorder>) -> Arc<Self> {
        let driver = Arc::new_cyclic(|driver: &Weak<Driver>| Self {
            inner: Mutex::new(Inner::new(&options, recorder)),
            decoded: Arc::default(),
            memory: Arc::new(Memory::new(&options, driver.clone() as _)),
            gates: Gates::new(options.request_bytes_max, options.request_wait),
            processors: Arc::default(),
            options,
            started: Instant::now(),
            reading,
            this: driver.clone(),
            pool_held_bytes: AtomicU64::new(0),
            slices_of_all: Arc::default(),
            leases: AtomicUsize::new(0),
        });
        driver.give_back_idle_pages();
        driver
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn processors(&self) -> &Processors {
        &self.processors
    }

    /// Where timers of its waits are: a stream may be polled where there is no runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        self.reading.handle()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn decoded(&self) -> &Arc<DecodeCache> {
        &self.decoded
    }

    /// What reads pass on their way to a device.
    pub(crate) fn gates(&self) -> &Gates {
        &self.gates
    }

    /// What all scans decoded and reused.
    pub(crate) fn slices_of_all(&self) -> &Arc<SliceCounters> {
        &self.slices_of_all
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
        running: &RunningScan,
    ) -> Result<(ScanId, ScanLength), ScanError> {
        self.with_room(|inner, now| {
            let id = inner.core.start_scan(now, spec.clone())?;
            let length = inner.core.length_of(id);
            inner.scans.insert(id, running.clone());
            Ok((id, length))
        })
    }

    pub(crate) fn extend_scan(
        self: &Arc<Self>,
        scan: ScanId,
        rows: &[Range<u64>],
    ) -> Result<(), ScanError> {
        self.with_room(|inner, now| inner.core.extend_scan(now, scan, rows.to_vec()))
    }

    /// Tries a command again for which the pool is too small, as long as the pool can grow.
    fn with_room<R>(
        self: &Arc<Self>,
        command: impl Fn(&mut Inner, Time) -> Result<R, StartScanError>,
    ) -> Result<R, ScanError> {
        loop {
            let done = self.command(&command);
            let Err(StartScanError::PoolTooSmall { chunk_bytes, .. }) = done else {
                return Ok(done?);
            };
            let pool_bytes = self.memory.pool_bytes_max();
            if chunk_bytes > pool_bytes {
                return Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }.into());
            }
            // The pool has only given way to others.
            if !self.memory.grow_pool(chunk_bytes) && !self.drop_least_wanted(usize::MAX) {
                return Err(self.exhausted(chunk_bytes));
            }
        }
    }

    /// Asks for the next chunk of a worker. The answer comes when core decides it.
    pub(crate) fn request_chunk(
        self: &Arc<Self>,
        scan: ScanId,
        worker: WorkerIndex,
    ) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.command(|inner, now| {
            let refusal = match inner.scans.get(&scan) {
                None => ScanError::Cancelled,
                Some(RunningScan { failed: Some(error), .. }) => error.clone(),
                Some(_) => {
                    inner.waiters.insert((scan, worker), sender);
                    match inner.core.request_chunk(now, scan, worker) {
                        // An earlier stream of this worker asked and was dropped: this one takes its place.
                        Ok(()) | Err(RequestError::AlreadyWaiting(..)) => {}
                        Err(error) => unreachable!("a running scan's worker may ask: {error}"),
                    }
                    return;
                }
            };
            let _ = sender.send(Err(refusal));
        });
        receiver
    }

    pub(crate) fn release(self: &Arc<Self>, scan: ScanId, worker: WorkerIndex) {
        self.command(|inner, now| inner.core.release_chunk(now, scan, worker));
    }

    /// Takes chunks off what a scan needs; returns how many it did need.
    pub(crate) fn narrow_scan(self: &Arc<Self>, scan: ScanId, unwanted: &[ChunkIndex]) -> usize {
        self.command(|inner, now| {
            let needed =
                |inner: &Inner| inner.core.state().scan(scan).map_or(0, |it| it.needed().len());
            let before = needed(inner);
            inner.core.narrow_scan(now, scan, unwanted.to_vec());
            inner.afterwards.needs_dropped = true;
            before - needed(inner)
        })
    }

    /// The chunks that the workers of a scan were handed.
    pub(crate) fn handed_chunks(&self, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
        let inner = self.lock();
        let handed = inner.scans.get(&scan).into_iter().flat_map(|scan| &scan.handed);
        handed.map(|&(chunk, worker)| (chunk, worker.as_usize())).collect()
    }

    /// Ends a scan for all its workers, for what happened to one of them.
    pub(crate) fn fail_scan(self: &Arc<Self>, scan: ScanId, error: &ScanError) {
        self.command(|inner, now| {
            inner.fail(scan, error);
            let needed = inner.needed(scan);
            inner.core.narrow_scan(now, scan, needed);
        });
    }

    /// Ends a scan; returns what it got.
    pub(crate) fn cancel_scan(self: &Arc<Self>, scan: ScanId) -> ScanReport {
        self.command(|inner, now| {
            let report = inner.core.report(scan).unwrap_or_default();
            inner.core.cancel_scan(now, scan);
            inner.scans.remove(&scan);
            inner.waiters.retain(|&(waiting, _), _| waiting != scan);
            inner.afterwards.needs_dropped = true;
            report
        })
    }

    pub(crate) fn report_scan(&self, scan: ScanId) -> ScanReport {
        self.lock().core.report(scan).unwrap_or_default()
    }

    /// Chunks that a scan was not handed yet, in ascending order.
    pub(crate) fn remaining_chunks(&self, scan: ScanId) -> Vec<ChunkIndex> {
        self.lock().needed(scan)
    }

    pub(crate) fn is_handed_out(&self, scan: ScanId) -> bool {
        self.lock().core.state().scan(scan).is_none_or(|scan| scan.needed().is_empty())
    }

    /// Evicts every page that no scan needs.
    pub(crate) fn evict_unwanted(self: &Arc<Self>) {
        self.command(|inner, now| {
            inner.core.evict_unwanted(now);
            inner.afterwards.needs_dropped = true;
        });
    }

    pub(crate) fn report(&self) -> ManagerReport {
        let usage = self.memory.usage();
        let inner = self.lock();
        ManagerReport {
            scans: inner.scans.len(),
            loads_in_flight: inner.core.loads_in_flight(),
            chunks_in_use: self.leases.load(Ordering::Relaxed),
            slices_decoded: self.slices_of_all.decoded.load(Ordering::Relaxed),
            slices_reused: self.slices_of_all.reused.load(Ordering::Relaxed),
            pool_held_bytes: inner.core.state().held_bytes(),
            pool_limit_bytes: inner.core.state().pool_bytes(),
            decoded_bytes: usage.decoded_bytes,
            operator_bytes: usage.operator_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    /// Whether a scan still wants any of these pages.
    pub(crate) fn wants_any(&self, table: TableId, pages: &[PageIndex]) -> bool {
        let inner = self.lock();
        pages.iter().any(|&page| !inner.core.state().is_unwanted(PageId { table, page }))
    }

    /// Reports pages of a load, each read or not.
    pub(crate) fn report_pages(
        self: &Arc<Self>,
        load: &Load,
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
            if load.unreported.is_empty() {
                inner.loads.remove(&load.id);
            }
            inner.remove_doomed(now);
        });
    }

    /// Hands on the last of the record and keeps none from now on.
    pub(crate) fn stop_recording(&self) {
        let mut inner = self.lock();
        inner.pass_on_record();
        inner.stop_recording();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
