//! Commands on scans: start, extend, prune, ask for chunks, end.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{
    ChunkIndex, Index, RequestError, ScanId, ScanReport, ScanSpec, StartScanError, Time,
    WorkerIndex,
};
use tokio::sync::oneshot;

use super::handle::Driver;
use super::inner::Inner;
use super::running_scan::RunningScan;
use crate::error::ScanError;
use crate::events::EventKind;
use crate::lease::Answer;

/// Chunks that a scan is registered for, or that are removed from it, while the lock is held once.
const STEP_CHUNKS: usize = 1024;

impl Driver {
    /// Registers a scan, step by step: the lock is not held for all its chunks.
    pub(crate) fn start_scan(
        self: &Arc<Self>,
        spec: &ScanSpec,
        running: &RunningScan,
    ) -> Result<ScanId, ScanError> {
        let mut steps = steps(&spec.chunks).into_iter();
        let chunks = steps.next().unwrap_or_default();
        // An index selection has few chunks, and takes no more later.
        let first = match spec.pages {
            None => ScanSpec { chunks, ..spec.clone() },
            Some(_) => spec.clone(),
        };
        let id = self.growing_pool(|inner, now| {
            let id = inner.core.start_scan(now, first.clone())?;
            running.activity.set_priority(inner.core.class_of(id));
            inner.scans.insert(id, running.clone());
            if let Some(name) = &running.label.table {
                inner.registry.name_table(spec.table, name);
            }
            inner.taps.send(now, || EventKind::ScanStarted {
                scan: id,
                table: spec.table,
                label: running.label.clone(),
            });
            Ok(id)
        })?;
        if spec.pages.is_some() {
            return Ok(id);
        }
        for chunks in steps {
            if let Err(error) = self.extend_step(id, &chunks) {
                self.cancel_scan(id);
                return Err(error);
            }
        }
        Ok(id)
    }

    /// A running scan needs these chunks, too.
    ///
    /// # Errors
    /// Why not, and of which of them.
    pub(crate) fn extend_scan(
        self: &Arc<Self>,
        scan: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), (ScanError, Vec<ChunkIndex>)> {
        let steps = steps(chunks);
        for (done, step) in steps.iter().enumerate() {
            self.extend_step(scan, step).map_err(|error| {
                let left = steps[done..].iter().flatten();
                let left = left.flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex));
                (error, left.collect())
            })?;
        }
        Ok(())
    }

    fn extend_step(
        self: &Arc<Self>,
        scan: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), ScanError> {
        self.growing_pool(|inner, now| {
            let Some(running) = inner.scans.get(&scan).filter(|scan| scan.failed.is_none()) else {
                return Ok(()); // Its workers are told when they ask.
            };
            inner.core.extend_scan(now, scan, chunks.to_vec())?;
            running.activity.set_priority(inner.core.class_of(scan));
            Ok(())
        })
    }

    /// Registers chunks; if the pool is too small only because it has given way to others, it grows for them.
    fn growing_pool<R>(
        self: &Arc<Self>,
        register: impl Fn(&mut Inner, Time) -> Result<R, StartScanError>,
    ) -> Result<R, ScanError> {
        loop {
            let registered = self.command(|inner, now| {
                inner.check()?;
                register(inner, now).map_err(ScanError::from)
            });
            let Err(ScanError::Start(StartScanError::PoolTooSmall { chunk_bytes, .. })) =
                registered
            else {
                return registered;
            };
            let pool_bytes = self.memory.pool_ceiling_bytes();
            if chunk_bytes > pool_bytes {
                return Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }.into());
            }
            if let Err(missing) = self.memory.grow_pool(chunk_bytes)
                && !self.reclaim(missing)
            {
                return Err(self.exhausted(chunk_bytes));
            }
        }
    }

    /// Asks for the next chunk of a worker. The answer comes when core has decided.
    pub(crate) fn request_chunk(
        self: &Arc<Self>,
        scan: ScanId,
        worker: WorkerIndex,
    ) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.command(|inner, now| {
            let refusal = match inner.scans.get(&scan) {
                None => inner.check().err().unwrap_or(ScanError::Cancelled),
                Some(RunningScan { failed: Some(error), .. }) => error.clone(),
                Some(_) => {
                    inner.waiters.insert((scan, worker), sender);
                    inner.at_work.remove(&(scan, worker));
                    match inner.core.request_chunk(now, scan, worker) {
                        // An earlier stream of this worker has asked and was dropped: this one replaces it.
                        Ok(()) | Err(RequestError::AlreadyWaiting(..)) => {}
                        Err(error) => unreachable!("a running scan's worker may ask: {error}"),
                    }
                    return;
                }
            };
            let _ = sender.send(Err(refusal));
        });
        receiver
    }

    /// A scan no longer needs these chunks. Returns how many of them it did need.
    pub(crate) fn prune_scan(self: &Arc<Self>, scan: ScanId, chunks: &[ChunkIndex]) -> usize {
        let step = |chunks: &[ChunkIndex]| {
            self.command(|inner, now| {
                let needed = |inner: &Inner| {
                    inner.core.state().scan(scan).map_or(0, |scan| scan.needed().len())
                };
                let before = needed(inner);
                inner.core.prune_scan(now, scan, chunks.to_vec());
                inner.deferred.needs_dropped = true;
                before - needed(inner)
            })
        };
        chunks.chunks(STEP_CHUNKS).map(step).sum()
    }

    /// Drops the needs of a scan step by step, until few are left: the lock is not held for all its chunks.
    fn prune_most(self: &Arc<Self>, scan: ScanId) {
        while self.command(|inner, now| {
            let needed: Vec<_> = inner.needed(scan).take(STEP_CHUNKS).collect();
            let is_long = needed.len() == STEP_CHUNKS;
            if is_long {
                inner.core.prune_scan(now, scan, needed);
            }
            is_long
        }) {}
    }

    /// The chunks that the workers of a scan were handed.
    pub(crate) fn handed_chunks(&self, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
        handed(&self.lock(), scan)
    }

    /// Fails a scan for all its workers because one of them has failed.
    pub(crate) fn fail_scan(self: &Arc<Self>, scan: ScanId, error: &ScanError) {
        self.command(|inner, _| inner.fail(scan, error));
    }

    /// Drops what a scan needs that has failed: a step of it, and the others later. Loads for other scans go first.
    pub(super) fn drop_needs(self: &Arc<Self>, scan: ScanId) {
        self.command(|inner, now| {
            let needed: Vec<_> = inner.needed(scan).take(STEP_CHUNKS).collect();
            match needed.len() < STEP_CHUNKS {
                true => inner.deferred.needs_dropped = true,
                false => inner.deferred.failed.push(scan),
            }
            inner.core.prune_scan(now, scan, needed);
        });
    }

    /// Ends a scan and reports on it.
    pub(crate) fn cancel_scan(self: &Arc<Self>, scan: ScanId) -> ScanReport {
        let report = self.report_scan(scan);
        self.prune_most(scan);
        self.command(|inner, now| {
            inner.core.cancel_scan(now, scan);
            if inner.forget_scan(scan) {
                inner.taps.send(now, || EventKind::ScanEnded { scan });
            }
            inner.deferred.needs_dropped = true;
        });
        report
    }

    pub(crate) fn report_scan(&self, scan: ScanId) -> ScanReport {
        self.lock().core.report(scan).unwrap_or_default()
    }

    /// Chunks that a scan was not handed yet, in ascending order.
    pub(crate) fn remaining_chunks(&self, scan: ScanId) -> Vec<ChunkIndex> {
        self.lock().needed(scan).collect()
    }

    pub(crate) fn is_handed_out(&self, scan: ScanId) -> bool {
        self.lock().core.state().scan(scan).is_none_or(|scan| scan.needed().is_empty())
    }

    /// The chunks that the workers of a scan were handed, if all have been handed out.
    pub(crate) fn all_handed_out(&self, scan: ScanId) -> Option<Vec<(ChunkIndex, usize)>> {
        let inner = self.lock();
        let is_all = inner.core.state().scan(scan).is_none_or(|scan| scan.needed().is_empty());
        is_all.then(|| handed(&inner, scan))
    }

    /// Hands out no more chunks of a scan, nor those that its workers return from now on. Returns what they were
    /// handed.
    pub(crate) fn close_scan(self: &Arc<Self>, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
        // What workers are handed meanwhile counts as handed out.
        self.prune_most(scan);
        self.command(|inner, now| {
            let needed = inner.needed(scan).collect();
            inner.core.prune_scan(now, scan, needed);
            inner.deferred.needs_dropped = true;
            if let Some(running) = inner.scans.get_mut(&scan) {
                running.is_closed = true;
            }
            handed(inner, scan)
        })
    }
}

/// The chunks that the workers of a scan were handed, each with its worker.
fn handed(inner: &Inner, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
    let handed = inner.scans.get(&scan).into_iter().flat_map(|scan| &scan.handed);
    handed.map(|&(chunk, worker)| (chunk, worker.as_usize())).collect()
}

/// Runs of chunks, in steps of a bounded number of chunks.
fn steps(chunks: &[Range<ChunkIndex>]) -> Vec<Vec<Range<ChunkIndex>>> {
    let mut steps = vec![Vec::new()];
    let mut room = STEP_CHUNKS;
    for run in chunks {
        let mut start = run.start.as_usize();
        while start < run.end.as_usize() {
            if room == 0 {
                steps.push(Vec::new());
                room = STEP_CHUNKS;
            }
            let end = run.end.as_usize().min(start + room);
            let step = steps.last_mut().expect("there is one");
            step.push(ChunkIndex::from_usize(start)..ChunkIndex::from_usize(end));
            room -= end - start;
            start = end;
        }
    }
    steps
}
