//! Commands on scans: start, extend, prune, fail, close, end, and the chunks that they were handed.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, Index, ScanCounts, ScanId, ScanSpec, StartScanError, Time};

use super::handle::Driver;
use super::running_scan::RunningScan;
use super::state::State;
use super::walk::STEP_CHUNKS;
use crate::error::ScanError;
use crate::observe::events::EventKind;

impl Driver {
    /// Registers a scan step by step, so that the lock is not held for all its chunks.
    pub(crate) fn start_scan(
        self: &Arc<Self>,
        spec: &ScanSpec,
        running: &RunningScan,
    ) -> Result<ScanId, ScanError> {
        let mut steps = steps(&spec.chunks).into_iter();
        let chunks = steps.next().unwrap_or_default();
        // Core decides by this first step whether the scan reads selected pages or whole chunks.
        let first = ScanSpec { chunks, ..spec.clone() };
        let id = self.growing_pool(|state, now| {
            let id = state.core.start_scan(now, first.clone())?;
            running.activity.set_priority(state.core.priority_of(id));
            state.scans.insert(id, running.clone());
            if let Some(name) = &running.label.table {
                state.registry.name_table(spec.table, name);
            }
            state.taps.send(now, || EventKind::ScanStarted {
                scan: id,
                table: spec.table,
                label: running.label.clone(),
            });
            state.announce(id, first.chunk_indexes());
            Ok(id)
        })?;
        for chunks in steps {
            if let Err(error) = self.extend_step(id, &chunks) {
                self.cancel_scan(id);
                return Err(error);
            }
        }
        Ok(id)
    }

    /// Adds chunks to the needs of a running scan.
    ///
    /// # Errors
    /// The reason, and the chunks that were not added.
    pub(crate) fn extend_scan(
        self: &Arc<Self>,
        scan: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), (ScanError, Vec<ChunkIndex>)> {
        let steps = steps(chunks);
        for (done, step) in steps.iter().enumerate() {
            self.extend_step(scan, step).map_err(|error| {
                let left = steps[done..].iter().flatten();
                (error, left.flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex)).collect())
            })?;
        }
        Ok(())
    }

    fn extend_step(
        self: &Arc<Self>,
        scan: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Result<(), ScanError> {
        self.growing_pool(|state, now| {
            let Some(running) = state.scans.get(&scan).filter(|scan| !scan.is_over()) else {
                return Ok(()); // Its workers are told when they ask.
            };
            state.core.extend_scan(now, scan, chunks.to_vec())?;
            running.activity.set_priority(state.core.priority_of(scan));
            state.announce(scan, indexes(chunks));
            Ok(())
        })
    }

    /// Registers chunks. If the pool is too small only because it has shrunk for others, it grows for them.
    fn growing_pool<R>(
        self: &Arc<Self>,
        register: impl Fn(&mut State, Time) -> Result<R, StartScanError>,
    ) -> Result<R, ScanError> {
        let pool_bytes = self.memory.pool_ceiling_bytes();
        loop {
            // This takes one call, since the growth of the pool could be lost before the next one.
            let (registered, missing) = self.call(|state, now| {
                let registered = state.check().and_then(|()| Ok(register(state, now)?));
                let chunk_bytes = match registered {
                    Err(ScanError::Start(StartScanError::PoolTooSmall { chunk_bytes, .. })) => {
                        chunk_bytes
                    }
                    registered => return (registered, None),
                };
                if chunk_bytes > pool_bytes {
                    let too_small = StartScanError::PoolTooSmall { pool_bytes, chunk_bytes };
                    return (Err(too_small.into()), None);
                }
                state.collect_credit(now);
                match state.core.grow_pool(now, chunk_bytes) {
                    Ok(()) => (register(state, now).map_err(ScanError::from), None),
                    Err(missing) => (Err(self.exhausted(chunk_bytes)), Some(missing)),
                }
            });
            match missing {
                Some(missing) if self.reclaim(missing) => {}
                _ => return registered,
            }
        }
    }

    /// Removes chunks from the needs of a scan. Returns those that it did need.
    pub(crate) fn prune_scan(
        self: &Arc<Self>,
        scan: ScanId,
        chunks: &[ChunkIndex],
    ) -> Vec<ChunkIndex> {
        let step = |chunks: &[ChunkIndex]| {
            self.call(|state, now| {
                let running = state.core.state().scan(scan);
                let is_needed = |chunk: &&ChunkIndex| {
                    running.is_some_and(|running| running.needed().contains(**chunk))
                };
                let mut needed: Vec<_> = chunks.iter().filter(is_needed).copied().collect();
                needed.sort_unstable();
                needed.dedup();
                state.announce_unneeded(scan, needed.iter().copied());
                state.core.prune_scan(now, scan, needed.clone());
                needed
            })
        };
        chunks.chunks(STEP_CHUNKS).flat_map(step).collect()
    }

    /// The chunks that the workers of a scan were handed.
    pub(crate) fn handed_chunks(self: &Arc<Self>, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
        self.call(|state, _| handed(state, scan))
    }

    /// Fails a scan for all its workers because one of them has failed.
    pub(crate) fn fail_scan(self: &Arc<Self>, scan: ScanId, error: &ScanError) {
        self.call(|state, _| state.fail(scan, error));
    }

    /// Ends a scan and reports on it. All that it held is released when this returns.
    pub(crate) fn cancel_scan(self: &Arc<Self>, scan: ScanId) -> ScanCounts {
        let report = self.call(|state, _| {
            // The scan fails first: a worker must not end as if it had been handed all chunks
            // because the others are dropped.
            state.fail(scan, &ScanError::Cancelled);
            state.core.report(scan).unwrap_or_default()
        });
        while self.call(|state, now| state.drop_needs(scan, now)) {}
        self.call(|state, now| state.end_scan(scan, now));
        report
    }

    pub(crate) fn report_scan(self: &Arc<Self>, scan: ScanId) -> ScanCounts {
        self.call(|state, _| state.core.report(scan).unwrap_or_default())
    }

    /// Chunks that a scan was not handed yet, in ascending order.
    pub(crate) fn remaining_chunks(self: &Arc<Self>, scan: ScanId) -> Vec<ChunkIndex> {
        self.call(|state, _| state.needed(scan).collect())
    }

    pub(crate) fn is_handed_out(self: &Arc<Self>, scan: ScanId) -> bool {
        self.call(|state, _| is_handed_out(state, scan))
    }

    /// The chunks that the workers of a scan were handed, if all have been handed out.
    pub(crate) fn all_handed_out(
        self: &Arc<Self>,
        scan: ScanId,
    ) -> Option<Vec<(ChunkIndex, usize)>> {
        self.call(|state, _| is_handed_out(state, scan).then(|| handed(state, scan)))
    }

    /// Hands out no more chunks of a scan, nor those that its workers return from now on. Returns the chunks that they
    /// were handed.
    pub(crate) fn close_scan(self: &Arc<Self>, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
        // Chunks that workers are handed meanwhile count as handed out.
        while self.call(|state, now| state.drop_needs(scan, now)) {}
        self.call(|state, now| {
            // These chunks were returned meanwhile.
            let needed: Vec<_> = state.needed(scan).collect();
            state.core.prune_scan(now, scan, needed);
            if let Some(running) = state.scans.get_mut(&scan) {
                running.is_closed = true;
            }
            handed(state, scan)
        })
    }
}

/// The chunks of runs, one by one.
fn indexes(runs: &[Range<ChunkIndex>]) -> impl Iterator<Item = ChunkIndex> {
    runs.iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex))
}

fn is_handed_out(state: &State, scan: ScanId) -> bool {
    state.core.state().scan(scan).is_none_or(|scan| scan.needed().is_empty())
}

/// The chunks that the workers of a scan were handed, each with its worker.
fn handed(state: &State, scan: ScanId) -> Vec<(ChunkIndex, usize)> {
    let handed = state.scans.get(&scan).into_iter().flat_map(|scan| &scan.handed);
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
