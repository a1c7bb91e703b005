//! A query before, during and after its run, and its workers.

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, Index, IndexSet, ScanId, Time, WorkerIndex};

use crate::outcome::{End, QueryOutcome};
use crate::processor_sharing::Ticket;
use crate::workload::{Query, Workload};

/// The state of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Worker {
    Idle,
    Waiting { since: Time },
    Working { chunk: ChunkIndex, job: Ticket },
    Stopped,
}

/// A query before, during and after its run.
#[derive(Clone, Debug)]
pub(super) struct QueryRun<'a> {
    pub(super) query: &'a Query,
    pub(super) stream: usize,
    pub(super) index: usize,
    /// Whether its stream runs only while others do.
    pub(super) while_others_run: bool,
    /// Its scan, while it runs.
    pub(super) scan: Option<ScanId>,
    /// The version of its table that it sees, once it has started.
    pub(super) version: Option<usize>,
    /// The chunks that it needed when it started, and the number of rows that it reads of each.
    pub(super) needs: BTreeMap<ChunkIndex, u64>,
    pub(super) workers: Vec<Worker>,
    pub(super) started: Time,
    pub(super) ended: Option<(Time, End)>,
    pub(super) chunks: u64,
    pub(super) bytes_used: u64,
    pub(super) requests: u64,
    pub(super) bytes_read: u64,
    pub(super) longest_wait_ns: u64,
}

/// All queries, stream by stream.
pub(super) fn all(workload: &Workload) -> Vec<QueryRun<'_>> {
    let streams = workload.streams.iter().enumerate();
    let queries = streams.flat_map(|(stream, s)| {
        s.queries.iter().enumerate().map(move |(index, query)| QueryRun {
            query,
            stream,
            index,
            while_others_run: s.while_others_run,
            scan: None,
            version: None,
            needs: BTreeMap::new(),
            workers: vec![Worker::Idle; query.workers],
            started: Time::default(),
            ended: None,
            chunks: 0,
            bytes_used: 0,
            requests: 0,
            bytes_read: 0,
            longest_wait_ns: 0,
        })
    });
    queries.collect()
}

impl QueryRun<'_> {
    pub(super) fn handed(
        &mut self,
        now: Time,
        worker: WorkerIndex,
        chunk: ChunkIndex,
        bytes: u64,
        job: Ticket,
    ) {
        self.chunks += 1;
        self.bytes_used += bytes;
        self.stop_waiting(now, worker, Worker::Working { chunk, job });
    }

    pub(super) fn told_to_stop(&mut self, now: Time, worker: WorkerIndex) {
        self.stop_waiting(now, worker, Worker::Stopped);
    }

    pub(super) fn all_stopped(&self) -> bool {
        self.workers.iter().all(|worker| matches!(worker, Worker::Stopped))
    }

    pub(super) fn someone_waits(&self) -> bool {
        self.workers.iter().any(|worker| matches!(worker, Worker::Waiting { .. }))
    }

    pub(super) fn outcome(&self) -> QueryOutcome {
        let (ended, end) = self.ended.expect("a run lasts until every query has ended");
        QueryOutcome {
            stream: self.stream,
            index: self.index,
            label: self.query.label.clone(),
            started: self.started,
            ended,
            end,
            needed: self.needs.keys().copied().collect::<IndexSet<_>>(),
            chunks: self.chunks,
            bytes_used: self.bytes_used,
            requests: self.requests,
            bytes_read: self.bytes_read,
            longest_wait_ns: self.longest_wait_ns,
        }
    }

    pub(super) fn scan(&self) -> Option<ScanId> {
        self.scan
    }

    pub(super) fn has_started(&self) -> bool {
        self.scan.is_some() || self.ended.is_some()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The number of rows that it reads of a chunk that it needs.
    pub(super) fn rows_of(&self, chunk: ChunkIndex) -> u64 {
        self.needs[&chunk]
    }

    pub(super) fn stop_waiting(&mut self, now: Time, worker: WorkerIndex, to: Worker) {
        let from = std::mem::replace(&mut self.workers[worker.as_usize()], to);
        if let Worker::Waiting { since } = from {
            self.longest_wait_ns = self.longest_wait_ns.max(now.since(since));
        }
    }
}
