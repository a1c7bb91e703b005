//! Queries: their start, the requests and the work of their workers, their end, and the next query of the stream.

use coscan_core::{
    ChunkIndex, ComputationId, Index, PageId, RequestError, Scan, ScanId, ScanSpec, StartScanError,
    TableId, WorkerIndex,
};

use super::id_map::runs;
use super::query_run::{QueryRun, Worker};
use super::{Event, Simulation};
use crate::outcome::{End, EventKind};
use crate::violation::Broken;
use crate::workload::Query;

impl Simulation<'_> {
    pub(super) fn start_query(&mut self, query: usize) -> Result<(), Broken> {
        if self.queries[query].has_started() {
            return Ok(()); // It is skipped.
        }
        let (of_manager, spec) = self.needs(query);
        self.queries[query].started = self.now;
        self.record.step(self.now, || EventKind::Started { query });
        let scan = match self.manager.start_scan(self.now, &of_manager) {
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
        self.take_known_results(query);
        self.plan_fate(query);
        self.settle_unless_batched()?;
        for worker in (0..spec.workers).map(WorkerIndex::from_usize) {
            self.ask(query, worker)?;
        }
        Ok(())
    }

    /// The request of a query for chunks of the version that it sees, in the names of the manager and in those of the
    /// workload.
    fn needs(&mut self, query: usize) -> (ScanSpec, ScanSpec) {
        let Query { table, version, order, .. } = *self.queries[query].query;
        let (version, snapshot) = self.hold_version(table, version);
        let of_manager = self.table_for(table, version, order);
        let run = &mut self.queries[query];
        let needs = run.query.needs(&self.workload.tables[table], &snapshot);
        run.version = Some(version);
        run.needs = needs.iter().copied().collect();
        let chunks: Vec<_> = needs.into_iter().map(|(chunk, _)| chunk).collect();
        let selected = run.query.selected.iter().flatten();
        let pages: Vec<_> = selected
            .map(|&page| self.numbers.id(table, page))
            .filter_map(|page| Some((page, self.names.id(page)?)))
            .collect();
        let is_selection = run.query.selected.is_some();
        let selected = |page: fn(&(PageId, PageId)) -> PageId| {
            is_selection.then(|| pages.iter().map(page).collect())
        };
        let spec = ScanSpec {
            table: TableId::from_usize(table),
            groups: run.query.groups.clone(),
            chunks: runs(chunks.iter().copied()),
            order,
            workers: run.query.workers,
            weight: run.query.weight,
            pages: selected(|&(number, _)| number),
            computation: run.query.computation.map(ComputationId),
        };
        let chunks = self.names.runs(of_manager, &chunks);
        let pages = selected(|&(_, id)| id);
        (ScanSpec { table: of_manager, chunks, pages, ..spec.clone() }, spec)
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
            self.publish_result(query, chunk);
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
        self.prune(query, scan, &pruned);
    }

    /// Removes chunks from the needs of a query.
    pub(super) fn prune(&mut self, query: usize, scan: ScanId, chunks: &[ChunkIndex]) {
        self.announce_unneeded(scan, chunks);
        let table = self.manager.state().scan(scan).expect("it runs").table();
        let indexes = chunks.iter().filter_map(|&chunk| self.names.index(table, chunk));
        self.manager.prune_scan(self.now, scan, indexes);
        let chunks = self.ledger.pruned(scan, chunks);
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
        self.release_versions(query);
        let workload_query = self.queries[query].query;
        if let Some(change) = workload_query.change.as_ref().filter(|_| end == End::Done) {
            self.change_table(change);
        }
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

    /// Releases the version of its table that a query saw, and the one that it names.
    fn release_versions(&mut self, query: usize) {
        let run = &self.queries[query];
        let table = run.query.table;
        for version in run.version.into_iter().chain(run.query.version) {
            self.release_version(table, version);
        }
    }

    /// Skips queries that have not started in streams that run only while others do, because all other streams have
    /// ended.
    fn skip_queries(&mut self) {
        for query in 0..self.queries.len() {
            let run = &mut self.queries[query];
            if run.has_started() {
                continue;
            }
            run.started = self.now;
            run.ended = Some((self.now, End::Skipped));
            self.queries_left -= 1;
            self.release_versions(query);
        }
    }
}
