//! A running scan for observers: its progress, its waits and their reasons.

use std::sync::Arc;
use std::time::Duration;

use coscan_core::{ChunkIndex, Order, PriorityClass, ScanId, TableId, WaitsFor};

use crate::observe::metrics::ScanMetrics;

/// A report on a running scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanReport {
    /// Its id with the scheduler.
    pub id: ScanId,
    /// The id of its query, if the query gave one.
    pub query: Option<Arc<str>>,
    /// The table with the scheduler.
    pub table: TableId,
    /// The name of the table.
    pub table_name: Arc<str>,
    /// The columns that it reads.
    pub columns: Arc<[String]>,
    /// Its priority class, by its length beside the others.
    pub class: PriorityClass,
    /// Whether it takes its chunks in order.
    pub order: Order,
    /// Whether it reads selected pages of its chunks only.
    pub is_sparse: bool,
    /// Its weight beside others.
    pub weight: u32,
    /// The workers that share it.
    pub workers: usize,
    /// The workers that have a chunk to work on.
    pub workers_busy: usize,
    /// The time for which it has run.
    pub age: Duration,
    /// Its counters so far.
    pub metrics: ScanMetrics,
    /// Chunks that it was not handed yet.
    pub chunks_left: usize,
    /// The chunks left that have all their pages in the pool.
    pub chunks_ready: usize,
    /// The reason for which the worker that has waited longest waits, if one does.
    pub waits_for: ScanWait,
    /// The time for which it has waited for that.
    pub waiting: Duration,
}

/// The reason why a scan waits. Chunks are those of [`BufferManager::pool_map`](crate::BufferManager::pool_map).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanWait {
    /// It does not wait, because its workers work.
    Nothing,
    /// A chunk is being read.
    Load {
        /// The chunk.
        chunk: ChunkIndex,
        /// Running scans that need what is read of it, this one among them.
        scans: usize,
    },
    /// All slots of its device are taken.
    Device {
        /// The loads that take them.
        loads: usize,
    },
    /// The pool has no space for a chunk.
    Space,
    /// The policy serves others first.
    Turn,
    /// A chunk is ready, but workers of other scans have the processors.
    Processor {
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// It waits for memory to decode.
    Memory,
    /// It waits for its query, which does not take its rows.
    Consumer,
    /// It waits for its query to take the error with which it has failed.
    Failed,
}

impl From<WaitsFor> for ScanWait {
    fn from(waits_for: WaitsFor) -> Self {
        match waits_for {
            WaitsFor::Load { chunk, scans, .. } => Self::Load { chunk, scans },
            WaitsFor::Device { loads } => Self::Device { loads },
            WaitsFor::Space => Self::Space,
            WaitsFor::Processor { chunk } => Self::Processor { chunk },
            WaitsFor::Turn => Self::Turn,
        }
    }
}

impl ScanWait {
    /// A word for the reason, the same everywhere: `none`, `load`, `device`, `space`, `turn`, `processor`, `memory`,
    /// `consumer` or `failed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Load { .. } => "load",
            Self::Device { .. } => "device",
            Self::Space => "space",
            Self::Turn => "turn",
            Self::Processor { .. } => "processor",
            Self::Memory => "memory",
            Self::Consumer => "consumer",
            Self::Failed => "failed",
        }
    }
}

impl ScanReport {
    /// The reason why it waits, or that it does not, in words.
    #[must_use]
    pub fn why(&self) -> String {
        let why = match self.waits_for {
            ScanWait::Nothing => return self.works(),
            ScanWait::Failed => return "has failed; its query has not taken the error yet".into(),
            ScanWait::Consumer => return "waits for its query, which takes no rows now".into(),
            ScanWait::Load { chunk, scans: 0 | 1 } => {
                format!("waits for chunk {chunk}, which is being read for it")
            }
            ScanWait::Load { chunk, scans } => {
                format!("waits for chunk {chunk}, which is being read for {scans} scans")
            }
            ScanWait::Device { loads } => format!(
                "waits until its device is free: {} for other scans {} under way",
                counted(loads, "load"),
                if loads == 1 { "is" } else { "are" }
            ),
            ScanWait::Space => "waits for space in the pool, which others use".into(),
            ScanWait::Turn => "waits for its turn: the policy serves other scans first".into(),
            ScanWait::Processor { chunk } => {
                format!("waits for a processor: chunk {chunk} is ready, others work now")
            }
            ScanWait::Memory => "waits for memory to decode, which other queries hold".into(),
        };
        match self.workers_busy {
            0 => why,
            busy => format!("{why}; {busy} of {} workers go on", self.workers),
        }
    }

    fn works(&self) -> String {
        match (self.workers_busy, self.chunks_left) {
            (0, 0) => "was handed all its chunks".into(),
            (0, _) => "is about to take a chunk".into(),
            (busy, 0) => {
                format!("works on its last {}", if busy == 1 { "chunk" } else { "chunks" })
            }
            (busy, _) => format!("works on {}", counted(busy, "chunk")),
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(waits_for: ScanWait, workers_busy: usize) -> ScanReport {
        ScanReport {
            id: ScanId(4),
            query: None,
            table: TableId(0),
            table_name: "t".into(),
            columns: Arc::new([]),
            class: PriorityClass::Long,
            order: Order::Any,
            is_sparse: false,
            weight: 1,
            workers: 3,
            workers_busy,
            age: Duration::ZERO,
            metrics: ScanMetrics::default(),
            chunks_left: 9,
            chunks_ready: 0,
            waits_for,
            waiting: Duration::ZERO,
        }
    }

    #[test]
    fn words_say_what_is_waited_for() {
        let chunk = ChunkIndex(17);
        let why = |waits_for, busy| report(waits_for, busy).why();
        assert_eq!(
            why(ScanWait::Load { chunk, scans: 3 }, 0),
            "waits for chunk 17, which is being read for 3 scans"
        );
        assert_eq!(
            why(ScanWait::Load { chunk, scans: 1 }, 2),
            "waits for chunk 17, which is being read for it; 2 of 3 workers go on"
        );
        assert_eq!(
            why(ScanWait::Device { loads: 1 }, 0),
            "waits until its device is free: 1 load for other scans is under way"
        );
        assert_eq!(why(ScanWait::Nothing, 2), "works on 2 chunks");
    }
}
