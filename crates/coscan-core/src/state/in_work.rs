//! The chunks that scans of a computation work on, so that others of the same computation take other chunks first.

use std::collections::BTreeMap;

use super::State;
use crate::ids::{ChunkIndex, ComputationId, ScanId, TableId, WorkerIndex};
use crate::scan::{Scan, Worker};

/// The number of workers at each chunk of a table, for each computation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunksInWork {
    workers: BTreeMap<(TableId, ComputationId, ChunkIndex), usize>,
}

impl ChunksInWork {
    fn add(&mut self, table: TableId, computation: ComputationId, chunk: ChunkIndex) {
        *self.workers.entry((table, computation, chunk)).or_default() += 1;
    }

    fn remove(&mut self, table: TableId, computation: ComputationId, chunk: ChunkIndex) {
        let key = (table, computation, chunk);
        let workers = self.workers.get_mut(&key).expect("a worker that ends has begun");
        *workers -= 1;
        if *workers == 0 {
            self.workers.remove(&key);
        }
    }
}

impl State {
    /// Whether a scan that computes the same as this one works on a chunk.
    #[must_use]
    pub fn is_in_work(&self, scan: &Scan, chunk: ChunkIndex) -> bool {
        let at = |computation| (scan.table, computation, chunk);
        scan.computation
            .is_some_and(|computation| self.in_work.workers.contains_key(&at(computation)))
    }

    /// A worker of a scan was handed a chunk.
    pub(crate) fn begin_work(&mut self, scan: ScanId, chunk: ChunkIndex) {
        let Some(scan) = self.scans.get(&scan) else { return };
        if let Some(computation) = scan.computation {
            self.in_work.add(scan.table, computation, chunk);
        }
    }

    /// A worker of a scan is done with its chunk, if it has one.
    pub(crate) fn end_work(&mut self, scan: ScanId, worker: WorkerIndex) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        let (table, computation) = (scan.table, scan.computation);
        if let (Some(computation), Some(&mut Worker::Busy { chunk, .. })) =
            (computation, scan.worker(worker))
        {
            self.in_work.remove(table, computation, chunk);
        }
    }
}
