//! Core under the machine's clock: commands go in under one lock, and what comes out is done.
//!
//! Commands are here, those on scans in `scans`; what they lead to is in `actions`, what is behind the lock in `inner`
//! (`locked` holds it); `slices` keeps decoded columns for those who will take them, `room` finds memory to decode.
//!
//! Locks are taken in this order: the budget's, the driver's, the decode cache's. No array, chunk or load is dropped
//! under any of them: that gives memory and pages back, which takes them again.

mod actions;
mod inner;
mod locked;
mod room;
mod scans;
mod slices;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use coscan_core::log::RecordedManager;
use coscan_core::{PageId, PageIndex, Time};
use coscan_storage::stores::Stores;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::concurrency_limit::ConcurrencyLimits;
use crate::decode_cache::DecodeCache;
use crate::error::ScanError;
use crate::extensions::Extensions;
use crate::lease::Lease;
use crate::load::Load;
use crate::memory::Memory;
use crate::metadata_cache::MetadataCache;
use crate::metrics::{ManagerReport, SliceCounters};
use crate::open_files::OpenFiles;
use crate::options::Options;
use crate::processors::Processors;
use crate::reading::Reading;
use crate::recording::Recorder;
use crate::registry::Registry;
use inner::Inner;
pub(crate) use inner::RunningScan;
use locked::Locked;
pub(crate) use room::LOOK_AGAIN;

/// What a worker that asked for a chunk gets: a chunk, nothing more, or the reason why not.
pub(crate) type Answer = Result<Option<Lease>, ScanError>;

/// Drives core.
#[derive(Debug)]
pub(crate) struct Driver {
    inner: Mutex<Inner>,
    decoded: Arc<DecodeCache>,
    memory: Arc<Memory>,
    concurrency_limits: ConcurrencyLimits,
    processors: Arc<Processors>,
    options: Options,
    reading: Reading,
    this: Weak<Driver>,
    pool_held_bytes: AtomicU64,
    /// How many commands core was given, but for those that change the limit of the pool.
    generation: AtomicU64,
    slices_of_all: Arc<SliceCounters>,
    stores: Stores,
    open_files: OpenFiles,
    kept: Arc<MetadataCache>,
    extensions: Extensions,
    /// Chunks in the hands of workers.
    pub(crate) leases: AtomicUsize,
}

impl Driver {
    pub(crate) fn new(options: Options, reading: Reading, recorder: Option<Recorder>) -> Arc<Self> {
        let driver = Arc::new_cyclic(|driver: &Weak<Driver>| Self {
            inner: Mutex::new(Inner::new(&options, recorder)),
            decoded: Arc::default(),
            memory: Arc::new(Memory::new(&options, driver.clone() as _)),
            concurrency_limits: ConcurrencyLimits::new(
                options.request_bytes_max,
                options.request_wait,
            ),
            processors: Arc::new(Processors::new(Instant::now())),
            options,
            reading,
            this: driver.clone(),
            pool_held_bytes: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            slices_of_all: Arc::default(),
            stores: Stores::new(),
            open_files: OpenFiles::default(),
            kept: Arc::default(),
            extensions: Extensions::default(),
            leases: AtomicUsize::new(0),
        });
        driver.give_back_idle_pages();
        driver
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn processors(&self) -> &Arc<Processors> {
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

    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    pub(crate) fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    /// Metadata that is there as long as there is memory for it.
    pub(crate) fn metadata_cache(&self) -> &Arc<MetadataCache> {
        &self.kept
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// What reads pass on their way to a device.
    pub(crate) fn concurrency_limits(&self) -> &ConcurrencyLimits {
        &self.concurrency_limits
    }

    /// What all scans decoded and reused.
    pub(crate) fn slices_of_all(&self) -> &Arc<SliceCounters> {
        &self.slices_of_all
    }

    /// A table or a file is registered; `None` if something has panicked: then nothing is known any more of what was
    /// registered before.
    pub(crate) fn registering<R>(
        self: &Arc<Self>,
        register: impl FnOnce(&mut Registry, &mut RecordedManager) -> R,
    ) -> Option<R> {
        self.command(|inner, _| {
            inner.check().ok().map(|()| register(&mut inner.registry, &mut inner.core))
        })
    }

    /// A table or a file has one less who holds it.
    pub(crate) fn leaving(
        self: &Arc<Self>,
        leave: impl FnOnce(&mut Registry, &mut RecordedManager, Time),
    ) {
        self.command(|inner, now| {
            if inner.check().is_ok() {
                leave(&mut inner.registry, &mut inner.core, now);
            }
        });
    }

    /// Evicts every page that no scan needs.
    pub(crate) fn evict_unwanted(self: &Arc<Self>) {
        self.command(|inner, now| {
            inner.core.evict_unwanted(now);
            inner.deferred.needs_dropped = true;
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
            footer_bytes: usage.footer_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    /// The bytes of a page, if it is in the pool. It stays there no longer for it.
    pub(crate) fn cached(&self, page: PageId) -> Option<Bytes> {
        self.lock().frames.get(&page).cloned()
    }

    /// Whether a scan still wants any of these pages.
    pub(crate) fn wants_any(&self, pages: impl IntoIterator<Item = PageId>) -> bool {
        let inner = self.lock();
        inner.check().is_ok() && pages.into_iter().any(|page| !inner.core.state().is_unwanted(page))
    }

    /// Reports pages of a load, each read or not.
    pub(crate) fn report_pages(
        self: &Arc<Self>,
        load: &Load,
        pages: Vec<(PageIndex, Result<Bytes, ScanError>)>,
    ) {
        self.command(|inner, now| {
            if inner.check().is_err() {
                return;
            }
            for (page, result) in pages {
                let id = load.source.placement.page_id(page);
                match result {
                    Ok(bytes) => {
                        inner.frames.insert(id, bytes);
                        inner.core.page_loaded(now, load.id, id);
                    }
                    Err(error) => {
                        inner.read_errors.insert(id, error);
                        inner.core.page_failed(now, load.id, id);
                    }
                }
            }
            if load.unreported.is_empty() {
                inner.loads.remove(&load.id);
            }
            inner.registry.let_go(&mut inner.core, now);
        });
    }

    /// Hands on the last of the record and keeps none from now on.
    pub(crate) fn stop_recording(&self) {
        let mut inner = self.lock();
        inner.pass_on_record();
        inner.stop_recording();
    }

    fn lock(&self) -> Locked<'_> {
        Locked::new(&self.inner)
    }
}

#[cfg(test)]
mod tests;
