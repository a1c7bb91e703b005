//! The driver: core behind its lock, and the state that is shared beside it.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use coscan_core::Time;
use coscan_storage::stores::Stores;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::inbox::Inbox;
use super::message::Message;
use super::state::State;
use crate::chunks::decode_cache::DecodeCache;
use crate::cpu::scheduler::CpuScheduler;
use crate::extensions::Extensions;
use crate::io::load_threads::IoRuntime;
use crate::io::requests::StoreRequests;
use crate::memory::{MemoryBudget, WaitingRequests};
use crate::observe::metrics::SliceCounters;
use crate::observe::recorder::Recorder;
use crate::options::Options;
use crate::peers::ClusterOptions;
use crate::sync::bell::Bell;
use crate::tables::metadata_cache::MetadataCache;
use crate::tables::open_files::OpenFiles;

/// Drives core.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) state: Mutex<State>,
    pub(super) inbox: Inbox<Message>,
    bell: Arc<Bell>,
    /// Whether the runtime of loads is gone. Then each thread applies what it posts.
    pub(super) is_closed: AtomicBool,
    /// The serial number of the next request of a worker.
    pub(super) requests_made: AtomicU64,
    pub(super) decoded: Arc<DecodeCache>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) waiting_requests: WaitingRequests,
    requests: Arc<StoreRequests>,
    pub(super) cpu_scheduler: Arc<CpuScheduler>,
    pub(super) options: Options,
    io_runtime: IoRuntime,
    pub(super) this: Weak<Driver>,
    slices_of_all: Arc<SliceCounters>,
    stores: Stores,
    open_files: OpenFiles,
    metadata_cache: Arc<MetadataCache>,
    extensions: Extensions,
    /// The options of sharing with other servers, if anything is shared.
    pub(super) shared_stores: OnceLock<ClusterOptions>,
}

impl Driver {
    pub(super) fn new(
        options: Options,
        io_runtime: IoRuntime,
        recorder: Option<Recorder>,
    ) -> Arc<Self> {
        let (bell, decoded) = (Arc::<Bell>::default(), Arc::default());
        Arc::new_cyclic(|driver: &Weak<Driver>| {
            let memory = MemoryBudget::new(&options, driver.clone() as _, Arc::clone(&bell));
            let memory = Arc::new(memory);
            Self {
                state: Mutex::new(State::new(&options, &decoded, &memory, recorder)),
                inbox: Inbox::default(),
                is_closed: AtomicBool::new(false),
                requests_made: AtomicU64::new(0),
                decoded,
                memory,
                waiting_requests: WaitingRequests::new(options.memory_limits()),
                bell,
                requests: Arc::new(StoreRequests::new(&options)),
                cpu_scheduler: Arc::new(CpuScheduler::new(Instant::now())),
                options,
                io_runtime,
                this: driver.clone(),
                slices_of_all: Arc::default(),
                stores: Stores::new(),
                open_files: OpenFiles::default(),
                metadata_cache: Arc::default(),
                extensions: Extensions::default(),
                shared_stores: OnceLock::new(),
            }
        })
    }

    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// The time as core counts it.
    pub(crate) fn now(&self) -> Time {
        self.cpu_scheduler.now()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn cpu_scheduler(&self) -> &Arc<CpuScheduler> {
        &self.cpu_scheduler
    }

    /// The runtime of loads and timers. Timers are entered here because a stream may be polled outside of a runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        self.io_runtime.handle()
    }

    pub(crate) fn requests(&self) -> &Arc<StoreRequests> {
        &self.requests
    }

    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
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

    pub(crate) fn metadata_cache(&self) -> &Arc<MetadataCache> {
        &self.metadata_cache
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Counts of the slices that all scans decoded and reused.
    pub(crate) fn slices_of_all(&self) -> &Arc<SliceCounters> {
        &self.slices_of_all
    }
}

impl Drop for Driver {
    /// Rings the bell: the pump ends when it finds that the driver is gone.
    fn drop(&mut self) {
        self.bell.ring();
    }
}
