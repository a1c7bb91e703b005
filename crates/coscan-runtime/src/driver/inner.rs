//! What is behind the driver's lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::log::RecordedManager;
use coscan_core::{
    ActiveBufferManager, ChunkIndex, GroupIndex, LoadId, PageId, PolicyKind, ScanId, TableId, Time,
    WorkerIndex,
};
use tokio::sync::oneshot;

use super::Answer;
use super::actions::DeferredActions;
use crate::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::lease::Hold;
use crate::load::Urgency;
use crate::metrics::ScanCounters;
use crate::options::Options;
use crate::placement::Placement;
use crate::polls::Polls;
use crate::recording::Recorder;
use crate::registry::Registry;
use crate::scan::PartialChunks;

/// A registered scan, as far as core does not know it.
#[derive(Clone, Debug)]
pub(crate) struct RunningScan {
    /// The snapshot that it reads.
    pub(crate) placement: Arc<Placement>,
    /// Of the table, sorted.
    pub(crate) columns: Vec<usize>,
    pub(crate) partial: Arc<PartialChunks>,
    pub(crate) counters: Arc<ScanCounters>,
    pub(crate) polls: Arc<Polls>,
    /// The chunks that its workers were handed.
    pub(crate) handed: Vec<(ChunkIndex, WorkerIndex)>,
    pub(crate) failed: Option<ScanError>,
    /// Nothing more is handed out, also not what is given back.
    pub(crate) is_closed: bool,
}

impl RunningScan {
    /// The columns of the table that it takes decoded as a whole of a chunk of the table, if others want them, too.
    pub(super) fn shared_columns(&self, chunk: ChunkIndex) -> Vec<usize> {
        if self.partial.contains_key(&chunk) {
            return Vec::new();
        }
        let is_shared = |column: &&usize| self.placement.shared_column(chunk, **column).is_some();
        self.columns.iter().filter(is_shared).copied().collect()
    }

    /// Whether it takes a column of a file, decoded as a whole, of this chunk of core.
    fn shares(&self, chunk: ChunkIndex, file_column: usize) -> bool {
        let chunk = self.placement.to_table(chunk);
        !self.partial.contains_key(&chunk)
            && self
                .columns
                .iter()
                .any(|&column| self.placement.shared_column(chunk, column) == Some(file_column))
    }
}

/// All that is behind the one lock.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) core: RecordedManager,
    /// Where the record of core goes, while one is kept.
    pub(super) recorder: Option<Recorder>,
    pub(super) registry: Registry,
    /// The bytes of every cached page.
    pub(super) frames: BTreeMap<PageId, Bytes>,
    /// Whether the loads under way are urgent.
    pub(super) loads: BTreeMap<LoadId, Urgency>,
    pub(super) scans: BTreeMap<ScanId, RunningScan>,
    pub(super) waiters: BTreeMap<(ScanId, WorkerIndex), oneshot::Sender<Answer>>,
    /// Why pages could not be read, until core has said who fails for it.
    pub(super) read_errors: BTreeMap<PageId, ScanError>,
    /// When a timer will call.
    pub(super) armed: Option<Time>,
    pub(super) deferred: DeferredActions,
    /// Somebody does what is left for afterwards.
    is_at_afterwards: bool,
    /// Something panicked while it changed what is here: nothing runs any more.
    is_broken: bool,
}

impl Inner {
    pub(super) fn new(options: &Options, recorder: Option<Recorder>) -> Self {
        let core = ActiveBufferManager::new(options.core_config(), options.policy.build());
        let core = match recorder {
            Some(_) => RecordedManager::recording(core),
            None => RecordedManager::unrecorded(core),
        };
        Self {
            core,
            recorder,
            registry: Registry::default(),
            frames: BTreeMap::new(),
            loads: BTreeMap::new(),
            scans: BTreeMap::new(),
            waiters: BTreeMap::new(),
            read_errors: BTreeMap::new(),
            armed: None,
            deferred: DeferredActions::default(),
            is_at_afterwards: false,
            is_broken: false,
        }
    }

    /// Gives up all that runs, because a panic has left it half changed. Every scan is told, and none can start.
    pub(super) fn break_off(&mut self) {
        let core = ActiveBufferManager::new(self.core.config(), PolicyKind::default().build());
        self.core = RecordedManager::unrecorded(core);
        self.recorder = None;
        self.armed = None;
        self.is_broken = true;
        self.registry = Registry::default();
        self.frames.clear();
        self.loads.clear();
        self.scans.clear();
        self.read_errors.clear();
        for (_, waiter) in std::mem::take(&mut self.waiters) {
            // Whoever has gone need not know.
            let _ = waiter.send(Err(ScanError::Broken));
        }
    }

    /// Whether scans may run.
    ///
    /// # Errors
    /// [`ScanError::Broken`] if something panicked.
    pub(super) fn check(&self) -> Result<(), ScanError> {
        if self.is_broken { Err(ScanError::Broken) } else { Ok(()) }
    }

    /// What is left for afterwards, for whoever is at it; `None` if there is nothing, or another one is.
    pub(super) fn take_deferred(&mut self, is_at_it: bool) -> Option<DeferredActions> {
        if self.is_at_afterwards != is_at_it {
            return None;
        }
        self.is_at_afterwards = !self.deferred.is_empty();
        self.is_at_afterwards.then(|| std::mem::take(&mut self.deferred))
    }

    /// Whoever was at what is left for afterwards did not end it.
    pub(super) fn put_back_deferred(&mut self) {
        self.is_at_afterwards = false;
    }

    /// How many scans still need a slice as a whole, of all tables that list the file. Core counts by column group, which
    /// may hold more columns than one.
    pub(super) fn interested(&self, key: SliceKey) -> usize {
        let of_table = |(table, chunk)| {
            let interested = self.core.state().interested(table, chunk);
            let running = interested.filter_map(|scan| self.scans.get(&scan.id()));
            running.filter(|running| running.shares(chunk, key.column)).count()
        };
        self.registry.listings(key.file, key.chunk).map(of_table).sum()
    }

    /// The slices of core that a decoded column is part of, of all tables that list the file.
    pub(super) fn slices(&self, key: SliceKey) -> Vec<(TableId, ChunkIndex, GroupIndex)> {
        let listings = self.registry.listings(key.file, key.chunk);
        let of_table = |(table, chunk)| {
            let group = self.registry.group(table, key.file, key.column)?;
            Some((table, chunk, group))
        };
        listings.filter_map(of_table).collect()
    }

    pub(super) fn answer(&mut self, scan: ScanId, worker: WorkerIndex, answer: Answer) {
        let unclaimed = match self.waiters.remove(&(scan, worker)) {
            Some(sender) => sender.send(answer).err(),
            None => Some(answer),
        };
        if let Some(Ok(Some(mut lease))) = unclaimed {
            // At once: the worker may be taken up again and ask before the lease is dropped.
            lease.hold = Hold::Returned;
            self.deferred.unclaimed.push(lease);
            self.withdraw(self.core.state().now(), scan, worker);
        }
    }

    /// A worker has gone, or gives back the chunk that it was handed.
    pub(super) fn withdraw(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.waiters.remove(&(scan, worker));
        self.core.withdraw_worker(now, scan, worker);
        self.forget_returned(scan, worker);
        if self.scans.get(&scan).is_some_and(|scan| scan.failed.is_some() || scan.is_closed) {
            // Nobody will take what is given back.
            let needed = self.needed(scan).collect();
            self.core.prune_scan(now, scan, needed);
        }
    }

    /// What a worker gave back it was not handed.
    fn forget_returned(&mut self, scan: ScanId, worker: WorkerIndex) {
        let (Some(running), Some(needing)) =
            (self.scans.get_mut(&scan), self.core.state().scan(scan))
        else {
            return;
        };
        let last = running.handed.iter().rposition(|(_, to)| *to == worker);
        if let Some(last) = last.filter(|&last| needing.needed().contains(running.handed[last].0)) {
            running.handed.remove(last);
        }
    }

    /// Tells core which workers their queries have paused: those that are not polled.
    pub(super) fn report_pauses(&mut self, now: Time) {
        for (&scan, running) in &self.scans {
            for worker in running.polls.newly_paused(now) {
                self.core.pause_worker(now, scan, worker);
            }
        }
    }

    /// Tells all workers of a scan that it cannot go on: those that wait now, the others when they ask.
    pub(super) fn fail(&mut self, scan: ScanId, error: &ScanError) {
        let Some(running) = self.scans.get_mut(&scan) else { return };
        running.failed.get_or_insert_with(|| error.clone());
        let waiting: Vec<_> =
            self.waiters.keys().filter(|(waiting, _)| *waiting == scan).copied().collect();
        for (scan, worker) in waiting {
            self.answer(scan, worker, Err(error.clone()));
        }
        self.deferred.needs_dropped = true;
    }

    /// Chunks that a scan was not handed yet.
    pub(super) fn needed(&self, scan: ScanId) -> impl Iterator<Item = ChunkIndex> + '_ {
        let scan = self.core.state().scan(scan);
        scan.into_iter().flat_map(|scan| scan.needed().iter())
    }

    /// Hands on what core recorded. If nobody takes it any more, no record is kept.
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

    /// The timer for this time has called. It may have been followed by one for an earlier time, and that by others.
    pub(super) fn timer_called(&mut self, time: Time) {
        self.armed = self.armed.filter(|&armed| armed != time);
    }

    /// When a timer has to be armed: core wants to be called, and no timer will call by then.
    pub(super) fn timer_to_arm(&mut self, now: Time) -> Option<Time> {
        let wanted = self.core.poll_timeout().filter(|&time| time > now)?;
        if self.armed.is_some_and(|armed| armed <= wanted) {
            return None;
        }
        self.armed = Some(wanted);
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_another_one_has_replaced_disarms_none() {
        let mut inner = Inner::new(&Options::with_memory_bytes(1 << 20), None);
        inner.armed = Some(Time(50));
        inner.timer_called(Time(100));
        assert_eq!(inner.armed, Some(Time(50)));
        inner.timer_called(Time(50));
        assert_eq!(inner.armed, None);
    }
}
