//! The driver's record of a registered scan, beside that of core.

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::{ChunkIndex, Time, WorkerIndex};

use crate::cpu::activity::WorkerActivity;
use crate::error::ScanError;
use crate::observe::metrics::ScanCounters;
use crate::scans::parts::ScanParts;
use crate::scans::request::ScanLabel;

/// A registered scan.
#[derive(Clone, Debug)]
pub(crate) struct RunningScan {
    /// The parts of chunks that it reads.
    pub(crate) parts: Arc<ScanParts>,
    pub(crate) label: ScanLabel,
    /// When it was registered.
    pub(crate) started: Time,
    /// The names of its columns.
    pub(crate) column_names: Arc<[String]>,
    pub(crate) counters: Arc<ScanCounters>,
    pub(crate) activity: Arc<WorkerActivity>,
    /// The chunks that its workers were handed.
    pub(crate) handed: Vec<(ChunkIndex, WorkerIndex)>,
    /// The number of times in a row that a chunk was taken back from each of its workers.
    pub(crate) revocations: BTreeMap<WorkerIndex, u32>,
    pub(crate) failed: Option<ScanError>,
    /// Whether no more chunks are handed out, nor those that are returned.
    pub(crate) is_closed: bool,
    /// Whether it is no longer held, so that only its needs are still to be dropped.
    pub(crate) has_ended: bool,
}

impl RunningScan {
    /// Whether it takes no more chunks.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some() || self.is_closed || self.has_ended
    }
}
