//! The state that the driver's lock guards.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use bytes::Bytes;
use coscan_core::log::RecordedManager;
use coscan_core::{
    ActiveBufferManager, ChunkIndex, GroupIndex, LoadId, PageId, PolicyKind, ScanId, TableId, Time,
    WorkerIndex,
};
use tokio::sync::oneshot;

use super::deferred::DeferredActions;
use super::running_scan::RunningScan;
use crate::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::events::Taps;
use crate::lease::{Answer, OnDrop};
use crate::load::Urgency;
use crate::options::Options;
use crate::recorder::Recorder;
use crate::registry::Registry;

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) loads: u64,
    pub(super) chunks_delivered: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_delivered: u64,
    pub(super) decisions: u64,
    /// Nanoseconds under the lock.
    pub(super) decision_ns: u64,
}

/// The state guarded by the driver's lock.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) core: RecordedManager,
    /// The receiver of core's record, while one is kept.
    pub(super) recorder: Option<Recorder>,
    pub(super) registry: Registry,
    /// The bytes of every cached page.
    pub(super) frames: BTreeMap<PageId, Bytes>,
    /// Whether the loads in flight are urgent.
    pub(super) loads: BTreeMap<LoadId, Urgency>,
    pub(super) scans: BTreeMap<ScanId, RunningScan>,
    pub(super) waiters: BTreeMap<(ScanId, WorkerIndex), oneshot::Sender<Answer>>,
    /// Workers that core counts as at work: they were handed a chunk, and neither ask, nor pause, nor have stopped.
    pub(super) at_work: BTreeSet<(ScanId, WorkerIndex)>,
    /// Why pages could not be read, until core has decided which scans fail for it.
    pub(super) read_errors: BTreeMap<PageId, ScanError>,
    /// The time at which the next timer fires.
    pub(super) armed: Option<Time>,
    pub(super) deferred: DeferredActions,
    pub(super) totals: Totals,
    pub(super) taps: Taps,
    /// A thread runs deferred actions.
    runs_deferred: bool,
    /// A panic has left this half changed: no scan runs any more.
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
            at_work: BTreeSet::new(),
            read_errors: BTreeMap::new(),
            armed: None,
            deferred: DeferredActions::default(),
            totals: Totals::default(),
            taps: Taps::default(),
            runs_deferred: false,
            is_broken: false,
        }
    }

    /// Gives up all scans and registrations, because a panic has left them half changed. No scan can start any more.
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
        self.at_work.clear();
        self.read_errors.clear();
        self.taps = Taps::default();
        for (_, waiter) in std::mem::take(&mut self.waiters) {
            // Workers that are gone need not know.
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

    /// Deferred actions for the thread that runs them, which the caller becomes if `is_runner` is false and there is
    /// none. `None` if there are no actions, or another thread runs them.
    pub(super) fn take_deferred(&mut self, is_runner: bool) -> Option<DeferredActions> {
        if self.runs_deferred != is_runner {
            return None;
        }
        self.runs_deferred = !self.deferred.is_empty();
        self.runs_deferred.then(|| std::mem::take(&mut self.deferred))
    }

    /// The thread that ran deferred actions has stopped before all were done.
    pub(super) fn release_deferred(&mut self) {
        self.runs_deferred = false;
    }

    /// The number of scans, of all tables that list the file, that still need a whole slice. Core counts by column
    /// group, which may hold several columns.
    pub(super) fn interested(&self, key: SliceKey) -> usize {
        let of_table = |(table, chunk)| {
            let interested = self.core.state().interested(table, chunk);
            let running = interested.filter_map(|scan| self.scans.get(&scan.id()));
            running.filter(|running| running.parts.shares(chunk, key)).count()
        };
        self.registry.listings(key.file, key.chunk).map(of_table).sum()
    }

    /// The slices of core that a decoded column belongs to, of all tables that list the file.
    pub(super) fn slices(&self, key: SliceKey) -> Vec<(TableId, ChunkIndex, GroupIndex)> {
        let listings = self.registry.listings(key.file, key.chunk);
        let of_table = |(table, chunk)| {
            let group = self.registry.group(table, key.file, key.column)?;
            Some((table, chunk, group))
        };
        listings.filter_map(of_table).collect()
    }

    pub(super) fn answer(&mut self, scan: ScanId, worker: WorkerIndex, answer: Answer) {
        if let Ok(Some(_)) = answer {
            self.at_work.insert((scan, worker));
        }
        let unclaimed = match self.waiters.remove(&(scan, worker)) {
            Some(sender) => sender.send(answer).err(),
            None => Some(answer),
        };
        if let Some(Ok(Some(mut lease))) = unclaimed {
            // At once: a new stream of the worker may ask before the lease is dropped.
            lease.on_drop = OnDrop::Nothing;
            self.deferred.unclaimed.push(lease);
            self.withdraw(self.core.state().now(), scan, worker);
        }
    }

    /// A worker stops, or returns the chunk that it was handed.
    pub(super) fn withdraw(&mut self, now: Time, scan: ScanId, worker: WorkerIndex) {
        self.waiters.remove(&(scan, worker));
        self.at_work.remove(&(scan, worker));
        self.core.withdraw_worker(now, scan, worker);
        if let Some(returned) = self.take_returned(scan, worker)
            && self.scans[&scan].is_over()
        {
            // No worker will take it.
            self.core.prune_scan(now, scan, vec![returned]);
        }
    }

    /// The chunk that a worker has returned, if it has: it no longer counts as handed to it.
    fn take_returned(&mut self, scan: ScanId, worker: WorkerIndex) -> Option<ChunkIndex> {
        let handed = &mut self.scans.get_mut(&scan)?.handed;
        let needed = self.core.state().scan(scan)?.needed();
        let last = handed.iter().rposition(|(_, to)| *to == worker)?;
        needed.contains(handed[last].0).then(|| handed.remove(last).0)
    }

    /// Tells core which workers are paused: their queries do not poll them.
    pub(super) fn report_pauses(&mut self, now: Time) {
        let Self { at_work, scans, core, .. } = self;
        at_work.retain(|&(scan, worker)| {
            let is_active = scans[&scan].activity.active_until(worker, now).is_some();
            if !is_active {
                core.pause_worker(now, scan, worker);
            }
            is_active
        });
    }

    /// Fails a scan for all its workers: those that wait are told now, the others when they ask. What it needs is
    /// dropped later.
    pub(super) fn fail(&mut self, scan: ScanId, error: &ScanError) {
        let Some(running) = self.scans.get_mut(&scan) else { return };
        running.failed.get_or_insert_with(|| error.clone());
        for (_, waiter) in self.waiters.extract_if(workers_of(scan), |_, _| true) {
            // Workers that are gone need not know.
            let _ = waiter.send(Err(error.clone()));
        }
        self.deferred.failed.push(scan);
    }

    /// Forgets a scan that has ended; true if it ran. Its workers that wait are cancelled.
    pub(super) fn forget_scan(&mut self, scan: ScanId) -> bool {
        self.waiters.extract_if(workers_of(scan), |_, _| true).for_each(drop);
        self.at_work.extract_if(workers_of(scan), |_| true).for_each(drop);
        self.scans.remove(&scan).is_some()
    }

    /// The chunks that a scan was not handed yet.
    pub(super) fn needed(&self, scan: ScanId) -> impl Iterator<Item = ChunkIndex> + '_ {
        let scan = self.core.state().scan(scan);
        scan.into_iter().flat_map(|scan| scan.needed().iter())
    }

    /// Passes on what core has recorded. If it is no longer written, recording ends.
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

    /// The timer for this time has fired. A later one for an earlier time may have replaced it.
    pub(super) fn timer_fired(&mut self, time: Time) {
        self.armed = self.armed.filter(|&armed| armed != time);
    }

    /// The time for which a timer has to be armed: core has a timeout, and no timer fires by then.
    pub(super) fn timer_to_arm(&mut self, now: Time) -> Option<Time> {
        let timeout = self.core.poll_timeout().filter(|&time| time > now)?;
        if self.armed.is_some_and(|armed| armed <= timeout) {
            return None;
        }
        self.armed = Some(timeout);
        Some(timeout)
    }
}

/// All workers that a scan may have.
fn workers_of(scan: ScanId) -> RangeInclusive<(ScanId, WorkerIndex)> {
    (scan, WorkerIndex(0))..=(scan, WorkerIndex(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_was_replaced_disarms_none() {
        let mut inner = Inner::new(&Options::with_memory_bytes(1 << 20), None);
        inner.armed = Some(Time(50));
        inner.timer_fired(Time(100));
        assert_eq!(inner.armed, Some(Time(50)));
        inner.timer_fired(Time(50));
        assert_eq!(inner.armed, None);
    }
}
