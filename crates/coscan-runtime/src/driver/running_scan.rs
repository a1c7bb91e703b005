//! The driver's record of a registered scan, beside that of core.

use std::sync::Arc;

use coscan_core::{ChunkIndex, Time, WorkerIndex};

use crate::error::ScanError;
use crate::metrics::ScanCounters;
use crate::row_selection::PartialChunks;
use crate::scan_request::ScanLabel;
use crate::snapshot::Snapshot;
use crate::worker_activity::WorkerActivity;

/// A registered scan.
#[derive(Clone, Debug)]
pub(crate) struct RunningScan {
    /// The snapshot that it reads.
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) label: ScanLabel,
    /// When it was registered.
    pub(crate) started: Time,
    /// The names of its columns.
    pub(crate) column_names: Arc<[String]>,
    /// Of the snapshot, sorted.
    pub(crate) columns: Vec<usize>,
    pub(crate) partial: Arc<PartialChunks>,
    pub(crate) counters: Arc<ScanCounters>,
    pub(crate) activity: Arc<WorkerActivity>,
    /// The chunks that its workers were handed.
    pub(crate) handed: Vec<(ChunkIndex, WorkerIndex)>,
    pub(crate) failed: Option<ScanError>,
    /// No more chunks are handed out, nor those that are returned.
    pub(crate) is_closed: bool,
}

impl RunningScan {
    /// Whether it takes no more chunks.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some() || self.is_closed
    }

    /// The columns of a chunk of the snapshot that it takes decoded whole if other scans want them, too.
    pub(super) fn shared_columns(&self, chunk: ChunkIndex) -> Vec<usize> {
        if self.partial.contains_key(&chunk) {
            return Vec::new();
        }
        let is_shared = |column: &&usize| self.snapshot.shared_column(chunk, **column).is_some();
        self.columns.iter().filter(is_shared).copied().collect()
    }

    /// Whether it takes a column of a file, decoded whole, of this chunk of core.
    pub(super) fn shares(&self, chunk: ChunkIndex, file_column: usize) -> bool {
        let chunk = self.snapshot.to_table(chunk);
        !self.partial.contains_key(&chunk)
            && self
                .columns
                .iter()
                .any(|&column| self.snapshot.shared_column(chunk, column) == Some(file_column))
    }
}
