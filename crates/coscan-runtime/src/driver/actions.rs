//! What core says is done: at once where it is quick, else after the lock is given back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use coscan_core::{Action, ChunkIndex, ScanId, Time, WorkerIndex};

use super::Driver;
use super::inner::Inner;
use crate::error::ScanError;
use crate::lease::{Hold, Lease};
use crate::load::{self, Load, Source, Urgency};
use crate::memory::ElasticPool;

/// What is done after the lock is given back, because it takes other locks or time.
#[derive(Debug, Default)]
pub(super) struct DeferredActions {
    loads: Vec<Load>,
    timer: Option<Time>,
    evicted: Vec<Bytes>,
    /// Chunks whose worker has gone.
    pub(super) unclaimed: Vec<Lease>,
    /// Some scan no longer needs what it needed: decoded columns may be unwanted.
    pub(super) needs_dropped: bool,
}

impl DeferredActions {
    pub(super) fn is_empty(&self) -> bool {
        let Self { loads, timer, evicted, unclaimed, needs_dropped } = self;
        let is_nothing_dropped = evicted.is_empty() && unclaimed.is_empty() && !needs_dropped;
        loads.is_empty() && timer.is_none() && is_nothing_dropped
    }
}

impl Driver {
    /// Passes something to core, then does what core says.
    pub(super) fn command<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let result = self.decide(command);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.run_deferred();
        result
    }

    /// Passes something to core and notes what core says. [`Self::run_deferred`] has to follow.
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
            inner.deferred.timer = Some(time);
        }
        let held_bytes = inner.core.state().held_bytes();
        self.pool_held_bytes.store(held_bytes, Ordering::Relaxed);
        self.memory.note_pool_held(held_bytes);
        result
    }

    fn act(self: &Arc<Self>, inner: &mut Inner, action: Action) {
        match action {
            Action::Load { load, scan, table: _, chunk, pages, urgent } => {
                let urgency = Urgency::new(urgent);
                inner.loads.insert(load, urgency.clone());
                let scan = inner.scans.get(&scan).expect("core reads for running scans");
                let placement = Arc::clone(&scan.placement);
                let chunk = placement.to_table(chunk);
                let unreported =
                    pages.into_iter().map(|page| placement.page_of(chunk, page)).collect();
                let source = Source { driver: Arc::clone(self), placement, urgency };
                let load = Load {
                    id: load,
                    unreported,
                    source: Arc::new(source),
                    counters: Some(Arc::clone(&scan.counters)),
                };
                inner.deferred.loads.push(load);
            }
            Action::Escalate { load } => {
                if let Some(urgency) = inner.loads.get(&load) {
                    urgency.escalate();
                }
            }
            Action::Evict { page } => {
                let evicted = inner.frames.remove(&page);
                inner.deferred.evicted.extend(evicted);
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
        let running = &inner.scans[&scan];
        let placement = Arc::clone(&running.placement);
        let of_table = placement.to_table(chunk);
        let mut pages: Vec<_> = inner
            .core
            .state()
            .pages_of(registered, chunk)
            .into_iter()
            .map(|page| (placement.page_of(of_table, page), inner.frames[&page].clone()))
            .collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        running.polls.set_priority(inner.core.class_of(scan));
        running.polls.handed(worker, self.now());
        let lease = Lease {
            driver: Arc::clone(self),
            untaken: running.shared_columns(of_table),
            placement,
            scan,
            worker,
            chunk: of_table,
            pages,
            at_work: Some(self.processors.work(Arc::clone(&running.polls), worker)),
            hold: Hold::Untouched,
        };
        for &column in &lease.untaken {
            self.decoded.expect(lease.key(column));
        }
        self.leases.fetch_add(1, Ordering::Relaxed);
        lease
    }

    /// Does what was noted. That may give commands in its turn: a runtime that shuts down drops a load at once, and core
    /// decides the next one. So one does all of it, thing after thing.
    fn run_deferred(self: &Arc<Self>) {
        let mut doing = None;
        while let Some(deferred) = {
            let is_at_it = doing.is_some();
            self.lock().take_deferred(is_at_it)
        } {
            doing.get_or_insert_with(|| RunningDeferred(self));
            self.follow_up(deferred);
        }
        std::mem::forget(doing);
    }

    fn follow_up(self: &Arc<Self>, deferred: DeferredActions) {
        for load in deferred.loads {
            self.runtime().spawn(load::run(load));
        }
        if let Some(time) = deferred.timer {
            let driver = Arc::clone(self);
            let wait = Duration::from_nanos(time.since(self.now()));
            self.runtime().spawn(async move {
                tokio::time::sleep(wait).await;
                driver.handle_timeout(time);
            });
        }
        drop(deferred.evicted);
        drop(deferred.unclaimed); // What was handed to a worker that had gone goes back to its scan.
        if deferred.needs_dropped {
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
                driver.open_files().forget_closed();
            }
        });
    }

    fn handle_timeout(self: &Arc<Self>, time: Time) {
        self.command(|inner, now| {
            inner.timer_called(time);
            inner.report_pauses(now);
            inner.core.handle_timeout(now);
        });
    }

    /// The time as core counts it.
    pub(crate) fn now(&self) -> Time {
        self.processors.now()
    }
}

/// Lets others do what is left if it panics.
struct RunningDeferred<'a>(&'a Driver);

impl Drop for RunningDeferred<'_> {
    fn drop(&mut self) {
        self.0.lock().put_back_deferred();
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

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        if let Some(driver) = self.this.upgrade() {
            driver.run_deferred();
        }
    }

    fn freed(&self) {
        self.serve_line();
    }
}
