//! Loads in flight: pages arrive, or are late or fail by a fault.

use coscan_core::{ChunkIndex, LoadId, PageIndex, ScanId, TableId};

use super::{Event, Simulation};
use crate::faults::LoadFate;
use crate::outcome::EventKind;
use crate::violation::{Broken, Rule, ensure};

/// A load in flight.
#[derive(Clone, Debug)]
pub(super) struct LoadRun {
    table: TableId,
    chunk: ChunkIndex,
    /// Pages not reported yet.
    unreported: Vec<PageIndex>,
    fate: LoadFate,
}

impl LoadRun {
    pub(super) fn table(&self) -> TableId {
        self.table
    }
}

impl Simulation<'_> {
    pub(super) fn start_load(
        &mut self,
        load: LoadId,
        scan: ScanId,
        table: TableId,
        chunk: ChunkIndex,
        pages: Vec<PageIndex>,
        urgent: bool,
    ) {
        let layout = &self.workload.tables[table.0 as usize].layout;
        let bytes = pages.iter().map(|&page| layout.bytes_of(page)).sum();
        self.record.requests += 1;
        self.record.pages_read += pages.len() as u64;
        self.record.bytes_read += bytes;
        if let Some(&query) = self.scans.get(&scan) {
            self.queries[query].requests += 1;
            self.queries[query].bytes_read += bytes;
            let table = table.0 as usize;
            let pages = || pages.clone();
            self.record.step(self.now, || EventKind::LoadStarted {
                load,
                query,
                table,
                chunk,
                pages: pages(),
                bytes,
            });
        }
        let fate = self
            .fault_injector
            .as_mut()
            .map(|fault_injector| fault_injector.of_load(&pages))
            .unwrap_or_default();
        if let Some(ns) = fate.cancelled_after_ns {
            self.plan_after(ns, Event::CancelLoad { load });
        }
        self.read_or_ask((load, scan), urgent, (table, chunk), &pages);
        self.loads.insert(load, LoadRun { table, chunk, unreported: pages, fate });
    }

    /// Handles a page that the disk has read.
    pub(super) fn arrive(&mut self, load: LoadId, page: PageIndex) -> Result<(), Broken> {
        if self.has_bypassed(load, page) {
            return Ok(());
        }
        let slow = self.loads.get(&load).is_some_and(|run| run.fate.slow);
        match &mut self.fault_injector {
            Some(fault_injector) if slow => {
                let ns = fault_injector.delay_ns();
                self.plan_after(ns, Event::Page { load, page });
                Ok(())
            }
            _ => self.report(load, page),
        }
    }

    /// Reports a page that arrived, or could not be read.
    pub(super) fn report(&mut self, load: LoadId, page: PageIndex) -> Result<(), Broken> {
        let failing = self.loads.get(&load).is_some_and(|run| run.fate.failing.contains(page));
        self.report_as(load, page, !failing)
    }

    /// Cancels a load. Pages that have not arrived fail.
    pub(super) fn cancel_load(&mut self, load: LoadId) -> Result<(), Broken> {
        let Some(unreported) = self.loads.get(&load).map(|run| run.unreported.clone()) else {
            return Ok(());
        };
        self.announce_cancelled(load);
        for page in unreported {
            self.report_as(load, page, false)?;
        }
        Ok(())
    }

    fn report_as(&mut self, load: LoadId, page: PageIndex, read: bool) -> Result<(), Broken> {
        let Some(run) = self.loads.get_mut(&load) else { return Ok(()) }; // It was cancelled.
        let (table, chunk) = (run.table.0 as usize, run.chunk);
        run.unreported.retain(|&unreported| unreported != page);
        let ended = run.unreported.is_empty();
        if ended {
            self.loads.remove(&load);
        }
        let number = self.numbers.id(table, page);
        let id = self.names.id(number).expect("what is being read is not removed");
        self.ledger.page_reported(load, number, read);
        self.record.step(self.now, || EventKind::PageArrived { load, table, page, read });
        if ended {
            self.record.step(self.now, || EventKind::LoadEnded { load, table, chunk });
        }
        if !read {
            self.tell_evicted(table, page);
        }
        if read {
            self.manager.page_loaded(self.now, load, id);
            self.settle_unless_batched()
        } else {
            self.manager.page_failed(self.now, load, id);
            self.settle()
        }
    }

    /// Changes the limit of the pool.
    pub(super) fn change_pool(&mut self, bytes: u64) -> Result<(), Broken> {
        let limit = self.manager.set_pool_bytes(self.now, bytes);
        self.record.step(self.now, || EventKind::PoolChanged { bytes: limit });
        ensure(limit == self.manager.state().pool_bytes(), Rule::Records, || {
            format!("the pool's limit is said to be {limit}, but is not")
        })?;
        self.ledger.pool_changed(bytes, limit)
    }
}
