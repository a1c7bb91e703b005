//! What is behind the driver's lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::log::RecordedManager;
use coscan_core::{
    ActiveBufferManager, ChunkIndex, GroupIndex, LoadId, PageId, ScanId, TableId, Time, WorkerIndex,
};
use coscan_storage::table::ParquetTable;
use tokio::sync::oneshot;

use super::Answer;
use super::actions::Afterwards;
use crate::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::load::Urgency;
use crate::metrics::ScanCounters;
use crate::options::Options;
use crate::polls::Polls;
use crate::recording::Recorder;
use crate::scan::PartialChunks;

/// A worker that was not polled for this long is paused: a query at work takes a batch every few milliseconds.
const PAUSE_NS: u64 = 20_000_000;

/// A registered scan, as far as core does not know it.
#[derive(Clone, Debug)]
pub(crate) struct RunningScan {
    /// Sorted.
    pub(crate) columns: Vec<usize>,
    pub(crate) partial: Arc<PartialChunks>,
    pub(crate) counters: Arc<ScanCounters>,
    pub(crate) polls: Arc<Polls>,
    /// The chunks that its workers were handed.
    pub(crate) handed: Vec<(ChunkIndex, WorkerIndex)>,
    pub(crate) failed: Option<ScanError>,
}

impl RunningScan {
    /// The columns that it takes decoded as a whole of a chunk, if others want them, too.
    pub(super) fn shared_columns(&self, chunk: ChunkIndex) -> &[usize] {
        if self.partial.contains_key(&chunk) { &[] } else { &self.columns }
    }
}

/// All that is behind the one lock.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) core: RecordedManager,
    /// Where the record of core goes, while one is kept.
    pub(super) recorder: Option<Recorder>,
    pub(super) tables: BTreeMap<TableId, Arc<ParquetTable>>,
    /// Tables that go when their last load has ended.
    pub(super) doomed: Vec<TableId>,
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
    pub(super) afterwards: Afterwards,
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
            tables: BTreeMap::new(),
            doomed: Vec::new(),
            frames: BTreeMap::new(),
            loads: BTreeMap::new(),
            scans: BTreeMap::new(),
            waiters: BTreeMap::new(),
            read_errors: BTreeMap::new(),
            armed: None,
            afterwards: Afterwards::default(),
        }
    }

    /// How many scans still need a slice as a whole. Core counts by column group, which may hold more columns than one.
    pub(super) fn interested(&self, key: SliceKey) -> usize {
        if !self.tables.contains_key(&key.table) {
            return 0;
        }
        let reads = |scan: &ScanId| {
            let columns = self.scans.get(scan).map(|scan| scan.shared_columns(key.chunk));
            columns.is_some_and(|columns| columns.binary_search(&key.column).is_ok())
        };
        let interested = self.core.state().interested(key.table, key.chunk);
        interested.filter(|scan| reads(&scan.id())).count()
    }

    pub(super) fn group(&self, key: SliceKey) -> Option<GroupIndex> {
        self.tables.get(&key.table).map(|table| table.group_of_column(key.column))
    }

    pub(super) fn answer(&mut self, scan: ScanId, worker: WorkerIndex, answer: Answer) {
        let unclaimed = match self.waiters.remove(&(scan, worker)) {
            Some(sender) => sender.send(answer).err(),
            None => Some(answer),
        };
        self.afterwards.unclaimed.extend(unclaimed);
    }

    /// Tells core which workers their queries have paused: those that were not polled for a while.
    pub(super) fn report_pauses(&mut self, now: Time) {
        for (&scan, running) in &self.scans {
            for worker in running.polls.before(Time(now.0.saturating_sub(PAUSE_NS))) {
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
        self.afterwards.needs_dropped = true;
    }

    /// Chunks that a scan was not handed yet.
    pub(super) fn needed(&self, scan: ScanId) -> Vec<ChunkIndex> {
        let scan = self.core.state().scan(scan);
        scan.into_iter().flat_map(|scan| scan.needed().iter()).collect()
    }

    /// Takes off the tables that nobody holds any more, once their last load has ended.
    pub(super) fn remove_doomed(&mut self, now: Time) {
        let (core, tables) = (&mut self.core, &mut self.tables);
        self.doomed.retain(|table| {
            let is_removed = core.remove_table(now, *table).is_ok();
            if is_removed {
                tables.remove(table);
            }
            !is_removed
        });
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
