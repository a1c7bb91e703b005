//! Carries out the manager's actions.

use coscan_core::{Action, ChunkIndex, ScanId, WorkerIndex};

use super::{Event, Simulation};
use crate::outcome::{End, EventKind};
use crate::violation::Broken;
use crate::workload::TablePage;

impl Simulation<'_> {
    /// Carries out actions until there is none.
    pub(super) fn settle(&mut self) -> Result<(), Broken> {
        self.cover_overdraft();
        loop {
            while let Some(action) = self.manager.poll_action() {
                self.record.decisions += 1;
                self.idle_timeouts = 0;
                let action = self.names.translated(action, self.manager.state());
                if self.memory.is_some() {
                    self.ledger.pool_moved(&self.manager);
                }
                self.ledger.acted(self.now, &action)?;
                self.carry_out(action)?;
            }
            if !self.settle_peers()? && !self.remove_unused()? {
                break;
            }
        }
        self.check_memory()?;
        self.ledger.check_settled(&self.manager)
    }

    /// Carries out actions between the commands of one event, unless several events are batched.
    pub(super) fn settle_unless_batched(&mut self) -> Result<(), Broken> {
        if self.options.batch_ns > 0 { Ok(()) } else { self.settle() }
    }

    fn carry_out(&mut self, action: Action) -> Result<(), Broken> {
        match action {
            Action::Load { load, scan, table, chunk, pages, urgent } => {
                let pages = pages.into_iter().map(|id| self.numbers.page(id).page).collect();
                self.start_load(load, scan, table, chunk, pages, urgent);
            }
            Action::Escalate { load } => self.disk.escalate(load),
            Action::Evict { page } => {
                let TablePage { table, page } = self.numbers.page(page);
                self.tell_evicted(table, page);
                self.record.step(self.now, || EventKind::Evicted { table, page });
            }
            Action::Deliver { scan, worker, chunk } => match self.served_by(scan) {
                Some(served) => self.served_ready(served),
                None => {
                    self.announce_unneeded(scan, &[chunk]);
                    return self.open(scan, worker, chunk);
                }
            },
            Action::NoSpace { scan } => {
                self.served_without_space(self.served_by(scan).expect("others wait for space"));
            }
            Action::Finish { scan, worker } => self.finish_worker(scan, worker),
            Action::Fail { scan, .. } => match self.served_by(scan) {
                Some(served) => self.served_failed(served),
                None => self.fail_scan(scan),
            },
            Action::Unneeded { .. } => {}
            Action::GrantMemory { ticket, bytes } => return self.granted(ticket, bytes),
        }
        Ok(())
    }

    pub(super) fn start_work(&mut self, scan: ScanId, worker: WorkerIndex, chunk: ChunkIndex) {
        let query = self.scans[&scan];
        let layout = &self.workload.tables[self.queries[query].query.table].layout;
        let bytes: u64 =
            self.queries[query].query.pages(layout, chunk).map(|page| layout.bytes_of(page)).sum();
        let rows = self.queries[query].rows_of(chunk);
        let work_ns = self.queries[query].query.chunk_ns(layout, chunk, rows);
        let job = self.processors.add(self.now, work_ns, (query, worker));
        self.queries[query].handed(self.now, worker, chunk, bytes, job);
        self.record.deliveries.push((query, chunk));
        self.record.step(self.now, || EventKind::Delivered { query, worker, chunk });
        let early = self
            .fault_injector
            .as_mut()
            .and_then(|fault_injector| fault_injector.early_release_ns(work_ns));
        if let Some(ns) = early {
            self.plan_after(ns, Event::Release { query, worker, chunk });
        }
    }

    fn finish_worker(&mut self, scan: ScanId, worker: WorkerIndex) {
        let query = self.scans[&scan];
        self.give_all(query, worker);
        self.queries[query].told_to_stop(self.now, worker);
        if self.queries[query].all_stopped() {
            self.end_query(query, End::Done);
        }
    }

    /// Ends a scan that has failed. A worker that waits for it reports to its query at once, one that works when it
    /// asks again. The scan needs nothing more.
    fn fail_scan(&mut self, scan: ScanId) {
        let query = self.scans[&scan];
        if self.queries[query].someone_waits() {
            self.end_query(query, End::Failed);
        } else {
            let failed = self.manager.state().scan(scan).expect("core fails running scans");
            let needed: Vec<_> = failed.needed().iter().collect();
            self.manager.prune_scan(self.now, scan, needed);
        }
    }
}
