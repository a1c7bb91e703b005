//! The state that the driver's lock guards: core, the bytes of pages, registered scans and tables.
//!
//! It is passed the time and never waits. Its decisions for the outside are noted in its [`Effects`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::log::RecordedManager;
use coscan_core::{ActiveBufferManager, ChunkIndex, LoadId, PageId, PolicyKind, ScanId, Time};

use super::decoded_slices::DecodedSlices;
use super::effects::Effects;
use super::load_in_flight::LoadInFlight;
use super::memory_requests::MemoryRequests;
use super::message::Message;
use super::peers::Peers;
use super::running_scan::RunningScan;
use super::walk::Walk;
use super::workers::Workers;
use crate::chunks::decode_cache::DecodeCache;
use crate::error::ScanError;
use crate::memory::{Credit, MemoryBudget};
use crate::observe::events::Subscribers;
use crate::observe::recorder::Recorder;
use crate::options::Options;
use crate::tables::registry::{Registry, STEP_SLICES};

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) loads: u64,
    pub(super) chunks_delivered: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_delivered: u64,
    pub(super) decisions: u64,
    /// Nanoseconds spent under the lock.
    pub(super) decision_ns: u64,
}

/// The state guarded by the driver's lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) core: RecordedManager,
    /// The receiver of core's record, while one is kept.
    pub(super) recorder: Option<Recorder>,
    pub(super) registry: Registry,
    /// The bytes of every cached page.
    pub(super) frames: BTreeMap<PageId, Bytes>,
    pub(super) loads: BTreeMap<LoadId, LoadInFlight>,
    /// Other servers, if there are any.
    pub(super) peers: Option<Box<Peers>>,
    /// The registered scans. Those that have ended stay until core has dropped their needs.
    pub(super) scans: BTreeMap<ScanId, RunningScan>,
    pub(super) workers: Workers,
    /// The reasons why pages could not be read, until core has decided which scans fail for them.
    pub(super) read_errors: BTreeMap<PageId, ScanError>,
    /// Work that goes in steps. The pump makes the steps, one walk after the other.
    pub(super) walks: VecDeque<Walk>,
    /// Slices that core may still forget while the lock is held this time.
    pub(super) slices_left: usize,
    /// Scans that have ended and still have a walk.
    pub(super) ended_scans: usize,
    /// The memory that core has handed out, for users who take it without the lock.
    pub(super) credit: Arc<Credit>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) memory_requests: MemoryRequests,
    pub(super) decoded: Arc<DecodeCache>,
    /// The slices of core of which columns are decoded.
    pub(super) decoded_slices: DecodedSlices,
    /// The time when the pump last looked for something to take back from workers that are not polled.
    pub(super) looked_for_unused: Time,
    /// The time when credit was last marked as wanted because the pool lacks it.
    pub(super) wanted_for_pool: Option<Time>,
    /// The time until which the pump sleeps.
    pub(super) armed: Option<Time>,
    pub(super) effects: Effects,
    pub(super) totals: Totals,
    pub(super) taps: Subscribers,
    /// The memory that core could have handed out when the pump last looked for some.
    pub(super) searched_available_bytes: u64,
    /// An empty list with which messages are swapped.
    pub(super) spare: Vec<Message>,
    /// The reason why no scan runs any more, if none does.
    end: Option<ScanError>,
}

impl State {
    pub(super) fn new(
        options: &Options,
        decoded: &Arc<DecodeCache>,
        memory: &Arc<MemoryBudget>,
        recorder: Option<Recorder>,
    ) -> Self {
        let core = ActiveBufferManager::new(options.core_config(), options.policy.build());
        let mut core = match recorder {
            Some(_) => RecordedManager::recording(core),
            None => RecordedManager::unrecorded(core),
        };
        let set = core.set_memory_limits(Time(0), options.memory_limits());
        set.expect("nothing is held yet");
        Self {
            core,
            recorder,
            registry: Registry::default(),
            frames: BTreeMap::new(),
            loads: BTreeMap::new(),
            peers: None,
            scans: BTreeMap::new(),
            workers: Workers::default(),
            read_errors: BTreeMap::new(),
            walks: VecDeque::new(),
            slices_left: STEP_SLICES,
            ended_scans: 0,
            credit: Arc::clone(memory.credit()),
            memory: Arc::clone(memory),
            memory_requests: MemoryRequests::default(),
            decoded: Arc::clone(decoded),
            decoded_slices: DecodedSlices::default(),
            looked_for_unused: Time(0),
            wanted_for_pool: None,
            armed: None,
            effects: Effects::default(),
            totals: Totals::default(),
            taps: Subscribers::default(),
            searched_available_bytes: 0,
            spare: Vec::new(),
            end: None,
        }
    }

    /// Ends all scans and registrations, because a panic has left them half changed. No scan can start any more.
    pub(super) fn poison(&mut self) {
        let mut core = ActiveBufferManager::new(self.core.config(), PolicyKind::default().build());
        self.keep_handed_out(&mut core);
        self.core = RecordedManager::unrecorded(core);
        self.recorder = None;
        self.armed = None;
        self.end = Some(ScanError::Broken);
        self.effects.registry = std::mem::take(&mut self.registry);
        let frames = std::mem::take(&mut self.frames);
        self.effects.evicted.extend(frames.into_values());
        self.loads.clear();
        self.wake_receivers_of_fragments();
        self.effects.peers = self.peers.take();
        self.effects.ended.extend(std::mem::take(&mut self.scans).into_values());
        self.read_errors.clear();
        self.walks.clear();
        while let Some(idle) = self.decoded.first_to_drop(None) {
            let removed = self.decoded.remove_unexpected(idle);
            self.effects.unneeded.extend(removed.map(|(slice, _)| slice));
        }
        self.decoded_slices = DecodedSlices::default();
        self.ended_scans = 0;
        self.effects.subscribers.push(std::mem::take(&mut self.taps));
        self.effects.woken.extend(self.workers.clear());
        self.close_requests();
    }

    /// Fails all scans and reads nothing more for them, because the runtime of loads is gone.
    pub(super) fn close(&mut self, now: Time) {
        self.end.get_or_insert(ScanError::ShutDown);
        let scans: Vec<_> = self.scans.keys().copied().collect();
        for &scan in &scans {
            self.fail(scan, &ScanError::ShutDown);
        }
        // No later step would be made.
        self.make_all_steps(now);
        self.close_requests();
    }

    /// Whether scans may run.
    ///
    /// # Errors
    /// [`ScanError::Broken`] if something panicked, [`ScanError::ShutDown`] if the runtime of loads is gone.
    pub(super) fn check(&self) -> Result<(), ScanError> {
        self.end.clone().map_or(Ok(()), Err)
    }

    /// Whether a panic has left nothing of what was registered.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.end, Some(ScanError::Broken))
    }

    /// The chunks that a scan was not handed yet.
    pub(super) fn needed(&self, scan: ScanId) -> impl Iterator<Item = ChunkIndex> + '_ {
        let scan = self.core.state().scan(scan);
        scan.into_iter().flat_map(|scan| scan.needed().iter())
    }

    /// Scans that have not ended.
    pub(super) fn running(&self) -> usize {
        self.scans.len() - self.ended_scans
    }

    /// Passes on the record of core. If it is no longer written, recording ends.
    pub(super) fn pass_on_record(&mut self) {
        let Some(recorder) = &self.recorder else { return };
        if !recorder.pass_on(self.core.take_entries()) {
            self.stop_recording();
        }
    }

    pub(super) fn stop_recording(&mut self) {
        self.core.stop_recording();
        self.recorder = None;
    }
}
