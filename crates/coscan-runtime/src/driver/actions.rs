//! What core says is done: at once where it is quick, else after the lock is given back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use coscan_core::{Action, ChunkIndex, PageId, ScanId, Time, WorkerIndex};

use super::inner::Inner;
use super::{Answer, Driver};
use crate::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::lease::Lease;
use crate::load::{self, Load, Source, Urgency};
use crate::memory::ElasticPool;

/// What is done after the lock is given back, because it takes other locks or time.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    loads: Vec<Load>,
    timer: Option<Time>,
    evicted: Vec<Bytes>,
    /// Chunks whose worker has gone.
    pub(super) unclaimed: Vec<Answer>,
    /// Some scan no longer needs what it needed: decoded columns may be unwanted.
    pub(super) needs_dropped: bool,
}

impl Driver {
    /// Passes something to core, then does what core says.
    pub(super) fn command<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let result = self.decide(command);
        self.do_afterwards();
        result
    }

    /// Passes something to core and notes what core says. [`Self::do_afterwards`] has to follow.
    fn decide<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let mut inner = self.lock();
        let now = self.now();
        let result = command(&mut inner, now);
        while let Some(action) = inner.core.poll_action() {
            self.act(&mut inner, action);
        }
        inner.read_errors.clear();
        inner.pass_on_record();
        if let Some(time) = inner.timer_to_arm(now) {
            inner.afterwards.timer = Some(time);
        }
        let held_bytes = inner.core.state().held_bytes();
        self.pool_held_bytes.store(held_bytes, Ordering::Relaxed);
        self.memory.note_pool_held(held_bytes);
        result
    }

    fn act(self: &Arc<Self>, inner: &mut Inner, action: Action) {
        match action {
            Action::Load { load, scan, table, chunk: _, pages, urgent } => {
                let urgency = Urgency::new(urgent);
                inner.loads.insert(load, urgency.clone());
                let source = Source {
                    driver: Arc::clone(self),
                    table: Arc::clone(&inner.tables[&table]),
                    urgency,
                };
                let load = Load {
                    id: load,
                    table_id: table,
                    unreported: pages,
                    source: Arc::new(source),
                    counters: inner.scans.get(&scan).map(|scan| Arc::clone(&scan.counters)),
                };
                inner.afterwards.loads.push(load);
            }
            Action::Hasten { load } => {
                if let Some(urgency) = inner.loads.get(&load) {
                    urgency.hasten();
                }
            }
            Action::Evict { page } => {
                let evicted = inner.frames.remove(&page);
                inner.afterwards.evicted.extend(evicted);
            }
            Action::Deliver { scan, worker, chunk } => {
                if let Some(running) = inner.scans.get_mut(&scan) {
                    running.handed.push((chunk, worker));
                }
                let lease = self.lease(inner, scan, worker, chunk);
                inner.answer(scan, worker, Ok(Some(lease)));
            }
            Action::Finish { scan, worker } => inner.answer(scan, worker, Ok(None)),
            Action::Fail { scan, page } => {
                let error = inner.read_errors.get(&page).cloned().unwrap_or(ScanError::Cancelled);
                inner.fail(scan, &error);
            }
        }
    }

    fn lease(
        self: &Arc<Self>,
        inner: &Inner,
        scan: ScanId,
        worker: WorkerIndex,
        chunk: ChunkIndex,
    ) -> Lease {
        let registered = inner.core.state().scan(scan).expect("core delivers to running scans");
        let table = registered.table();
        let layout = inner.tables[&table].layout();
        let mut pages: Vec<_> = registered
            .pages(layout, chunk)
            .map(|page| (page, inner.frames[&PageId { table, page }].clone()))
            .collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let untaken = inner.scans[&scan].shared_columns(chunk).to_vec();
        let at_work = Some(self.processors.work(inner.core.length_of(scan)));
        for &column in &untaken {
            self.decoded.expect(SliceKey { table, chunk, column });
        }
        self.leases.fetch_add(1, Ordering::Relaxed);
        Lease { driver: Arc::clone(self), table, scan, worker, chunk, pages, untaken, at_work }
    }

    fn do_afterwards(self: &Arc<Self>) {
        let afterwards = std::mem::take(&mut self.lock().afterwards);
        for load in afterwards.loads {
            self.runtime().spawn(load::run(load));
        }
        if let Some(time) = afterwards.timer {
            let driver = Arc::clone(self);
            let wait = Duration::from_nanos(time.since(self.now()));
            self.runtime().spawn(async move {
                tokio::time::sleep(wait).await;
                driver.handle_timeout();
            });
        }
        drop(afterwards.evicted);
        drop(afterwards.unclaimed);
        if afterwards.needs_dropped {
            self.drop_unwanted_slices();
        }
    }

    /// From now on, as long as there is a driver.
    pub(super) fn give_back_idle_pages(&self) {
        let (driver, keep_idle) = (self.this.clone(), self.options.keep_idle);
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(keep_idle).await;
                let Some(driver) = driver.upgrade() else { return };
                driver.command(|inner, now| inner.core.evict_idle(now));
            }
        });
    }

    fn handle_timeout(self: &Arc<Self>) {
        self.command(|inner, now| {
            inner.armed = None;
            inner.report_pauses(now);
            inner.core.handle_timeout(now);
        });
    }

    /// The time as core counts it.
    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl ElasticPool for Driver {
    fn set_limit_bytes(&self, bytes: u64) -> u64 {
        let driver = self.this.upgrade();
        driver.map_or(0, |driver| driver.decide(|inner, now| inner.core.set_pool_bytes(now, bytes)))
    }

    fn held_bytes(&self) -> u64 {
        self.pool_held_bytes.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        if let Some(driver) = self.this.upgrade() {
            driver.do_afterwards();
        }
    }
}
