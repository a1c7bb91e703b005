//! Queries: their start, the requests and the work of their workers, their end, and the next query of the stream.

use coscan_core::{
    ChunkIndex, Index, Layout, PageIndex, RequestError, Scan, ScanId, ScanSpec, StartScanError,
    TableId, Time, WorkerIndex,
};

use super::{Event, Simulation};
use crate::outcome::{End, EventKind, QueryOutcome};
use crate::sharing::Ticket;
use crate::violation::Broken;
use crate::workload::{PageNumbers, Query, Workload};

/// The state of a worker.
#[derive(Clone, Copy, Debug)]
enum Worker {
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
    scan: Option<ScanId>,
    workers: Vec<Worker>,
    started: Time,
    ended: Option<(Time, End)>,
    chunks: u64,
    bytes_used: u64,
    pub(super) requests: u64,
    pub(super) bytes_read: u64,
    longest_wait_ns: u64,
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

    fn has_started(&self) -> bool {
        self.scan.is_some() || self.ended.is_some()
    }

    fn spec(&self, layout: &Layout, numbers: &PageNumbers) -> ScanSpec {
        let id = |&page: &PageIndex| numbers.id(self.query.table, page);
        ScanSpec {
            table: TableId::from_usize(self.query.table),
            groups: self.query.groups.clone(),
            chunks: layout.chunk_ranges(&self.query.rows),
            order: self.query.order,
            workers: self.query.workers,
            weight: self.query.weight,
            pages: self.query.selected.as_ref().map(|pages| pages.iter().map(id).collect()),
        }
    }

    fn stop_waiting(&mut self, now: Time, worker: WorkerIndex, to: Worker) {
        let from = std::mem::replace(&mut self.workers[worker.as_usize()], to);
        if let Worker::Waiting { since } = from {
            self.longest_wait_ns = self.longest_wait_ns.max(now.since(since));
        }
    }
}

impl Simulation<'_> {
    pub(super) fn start_query(&mut self, query: usize) -> Result<(), Broken> {
        if self.queries[query].has_started() {
            return Ok(()); // It is skipped.
        }
        let layout = &self.workload.tables[self.queries[query].query.table].layout;
        let spec = self.queries[query].spec(layout, &self.numbers);
        self.queries[query].started = self.now;
        self.record.step(self.now, || EventKind::Started { query });
        let scan = match self.manager.start_scan(self.now, &spec) {
            Ok(scan) => scan,
            Err(StartScanError::PoolTooSmall { .. }) => {
                self.end_query(query, End::Refused);
                return Ok(());
            }
            Err(error) => panic!("query {query} of the workload cannot start: {error}"),
        };
        self.queries[query].scan = Some(scan);
        self.scans.insert(scan, query);
        let is_sparse = self.manager.state().scan(scan).is_some_and(Scan::is_sparse);
        self.ledger.scan_started(scan, &spec, is_sparse)?;
        self.announce(scan);
        self.plan_fate(query);
        self.settle_unless_batched()?;
        for worker in (0..spec.workers).map(WorkerIndex::from_usize) {
            self.ask(query, worker)?;
        }
        Ok(())
    }

    fn plan_fate(&mut self, query: usize) {
        let fate = self
            .fault_injector
            .as_mut()
            .map(crate::faults::FaultInjector::of_query)
            .unwrap_or_default();
        let planned_ns = self.queries[query].query.cancel_after_ns;
        if let Some(ns) = planned_ns.into_iter().chain(fate.cancelled_after_ns).min() {
            self.plan_after(ns, Event::Cancel { query });
        }
        if let Some(ns) = fate.pruned_after_ns {
            self.plan_after(ns, Event::Prune { query });
        }
        for (ns, percent) in fate.pool_changes {
            let bytes = u128::from(self.workload.pool_bytes) * u128::from(percent) / 100;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            self.plan_after(ns, Event::Pool { bytes });
        }
    }

    /// Asks for the next chunk of a worker.
    pub(super) fn ask(&mut self, query: usize, worker: WorkerIndex) -> Result<(), Broken> {
        let Some(scan) = self.queries[query].scan else { return Ok(()) };
        match self.manager.request_chunk(self.now, scan, worker) {
            Ok(()) => {
                self.ledger.asks(self.now, scan, worker);
                self.queries[query].workers[worker.as_usize()] =
                    Worker::Waiting { since: self.now };
                self.record.step(self.now, || EventKind::Waiting { query, worker });
            }
            Err(RequestError::Failed(_)) => self.end_query(query, End::Failed),
            Err(error) => panic!("a worker that may ask is refused: {error}"),
        }
        self.settle_unless_batched()
    }

    /// Ends the work of a worker on its chunk.
    pub(super) fn work_ended(&mut self, query: usize, worker: WorkerIndex) -> Result<(), Broken> {
        if let Worker::Working { chunk, .. } = self.queries[query].workers[worker.as_usize()] {
            self.record.step(self.now, || EventKind::Released { query, worker, chunk });
        }
        self.give_all(query, worker);
        self.ask(query, worker)
    }

    /// Releases the pages of a worker's chunk before its work on it ends.
    pub(super) fn release_early(&mut self, query: usize, worker: WorkerIndex, chunk: ChunkIndex) {
        let run = &self.queries[query];
        let Some(scan) = run.scan else { return };
        if let Worker::Working { chunk: current, .. } = run.workers[worker.as_usize()]
            && current == chunk
        {
            self.manager.release_chunk(self.now, scan, worker);
            self.ledger.pages_released(scan, worker);
        }
    }

    pub(super) fn cancel_query(&mut self, query: usize) {
        if self.queries[query].scan.is_some() {
            self.end_query(query, End::Cancelled);
        }
    }

    pub(super) fn prune_query(&mut self, query: usize) {
        let run = &self.queries[query];
        let (Some(scan), Some(fault_injector)) = (run.scan, &mut self.fault_injector) else {
            return;
        };
        let chunks = self.workload.tables[run.query.table].layout.chunks();
        let pruned = fault_injector.chunks_to_prune(chunks);
        self.announce_unneeded(scan, &pruned);
        self.manager.prune_scan(self.now, scan, pruned.iter().copied());
        let chunks = self.ledger.pruned(scan, &pruned);
        self.record.step(self.now, || EventKind::Pruned { query, chunks });
    }

    /// Ends a query and plans the next one of its stream.
    pub(super) fn end_query(&mut self, query: usize, end: End) {
        let now = self.now;
        let workers = self.queries[query].workers.len();
        for worker in (0..workers).map(WorkerIndex::from_usize) {
            self.give_all(query, worker);
        }
        let run = &mut self.queries[query];
        for worker in (0..run.workers.len()).map(WorkerIndex::from_usize) {
            if let Worker::Working { job, .. } = run.workers[worker.as_usize()] {
                self.processors.remove(now, job);
            }
            run.stop_waiting(now, worker, Worker::Stopped);
        }
        run.ended = Some((now, end));
        if let Some(scan) = run.scan.take() {
            self.scans.remove(&scan);
            self.announce_end(scan);
            self.manager.cancel_scan(now, scan);
            self.ledger.scan_ended(scan);
        }
        self.record.step(now, || EventKind::Ended { query, end });
        self.queries_left -= 1;
        if !self.queries[query].while_others_run {
            self.awaited_left -= 1;
            if self.awaited_left == 0 {
                self.skip_queries();
            }
        }
        let next = query + 1;
        let stream = self.queries[query].stream;
        let follows = |next: &&QueryRun<'_>| next.stream == stream && !next.has_started();
        if let Some(run) = self.queries.get(next).filter(follows) {
            self.plan_after(run.query.think_ns, Event::Start { query: next });
        }
    }

    /// Skips queries that have not started in streams that run only while others do, because all other streams have
    /// ended.
    fn skip_queries(&mut self) {
        for run in self.queries.iter_mut().filter(|run| !run.has_started()) {
            run.started = self.now;
            run.ended = Some((self.now, End::Skipped));
            self.queries_left -= 1;
        }
    }
}
