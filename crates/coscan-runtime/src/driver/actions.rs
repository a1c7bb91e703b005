//! Commands to core, and the actions that follow: at once where that is quick, else after the lock is released.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_core::{Action, ChunkIndex, LoadId, PageId, ScanId, Time};

use super::deferred::DeferredActions;
use super::handle::Driver;
use super::inner::Inner;
use crate::error::ScanError;
use crate::load::{self, Load, Source, Urgency};

impl Driver {
    /// Gives core a command, then carries out what core decides.
    pub(super) fn command<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let result = self.decide(command);
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.run_deferred();
        result
    }

    /// Gives core a command and notes what core decides. [`Self::run_deferred`] has to follow.
    pub(super) fn decide<R>(self: &Arc<Self>, command: impl FnOnce(&mut Inner, Time) -> R) -> R {
        let mut inner = self.lock();
        let now = self.now();
        let result = command(&mut inner, now);
        while let Some(action) = inner.core.poll_action() {
            inner.totals.decisions += 1;
            inner.note_event(&action);
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
        inner.totals.decision_ns += self.now().since(now);
        result
    }

    fn act(self: &Arc<Self>, inner: &mut Inner, action: Action) {
        match action {
            Action::Load { load, scan, table: _, chunk, pages, urgent } => {
                let load = self.load(inner, (load, scan), chunk, pages, urgent);
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
                inner.totals.chunks_delivered += 1;
                inner.totals.bytes_delivered += lease.stored_bytes();
                inner.answer(scan, worker, Ok(Some(lease)));
            }
            Action::Finish { scan, worker } => inner.answer(scan, worker, Ok(None)),
            Action::Fail { scan, page } => {
                let error = inner.read_errors.get(&page).cloned().unwrap_or(ScanError::Cancelled);
                inner.fail(scan, &error);
            }
        }
    }

    fn load(
        self: &Arc<Self>,
        inner: &mut Inner,
        (id, scan): (LoadId, ScanId),
        chunk: ChunkIndex,
        pages: Vec<PageId>,
        is_urgent: bool,
    ) -> Load {
        let urgency = Urgency::new(is_urgent);
        inner.loads.insert(id, urgency.clone());
        inner.totals.loads += 1;
        let scan = inner.scans.get(&scan).expect("core reads for running scans");
        Load {
            owner: Arc::clone(self) as _,
            id,
            unreported: scan.parts.pages(chunk, &pages),
            source: Arc::new(Source {
                requests: Arc::clone(self.requests()),
                parts: Arc::clone(&scan.parts),
                urgency,
            }),
            attempts: self.options.read_attempts,
            counters: Arc::clone(&scan.counters),
        }
    }

    /// Carries out deferred actions. That may give core further commands: a runtime that shuts down drops a load at
    /// once, and core decides the next one. So one thread runs all of them, one after the other.
    pub(super) fn run_deferred(self: &Arc<Self>) {
        let mut running = None;
        while let Some(deferred) = {
            let is_runner = running.is_some();
            self.lock().take_deferred(is_runner)
        } {
            running.get_or_insert_with(|| RunningDeferred(self));
            self.follow_up(deferred);
        }
        std::mem::forget(running);
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
        drop(deferred.unclaimed); // Chunks of workers that are gone return to their scans.
        // One step of one scan, so that loads that others wait for start between two.
        let mut failed = deferred.failed.into_iter();
        if let Some(scan) = failed.next() {
            self.lock().deferred.failed.extend(failed);
            self.drop_needs(scan);
        }
        if deferred.needs_dropped {
            self.drop_unneeded_slices();
        }
    }

    fn handle_timeout(self: &Arc<Self>, time: Time) {
        self.command(|inner, now| {
            inner.timer_fired(time);
            inner.report_pauses(now);
            inner.core.handle_timeout(now);
        });
    }
}

/// Lets other threads run deferred actions if this one panics.
struct RunningDeferred<'a>(&'a Driver);

impl Drop for RunningDeferred<'_> {
    fn drop(&mut self) {
        self.0.lock().release_deferred();
    }
}
