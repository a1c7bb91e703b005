//! The executions of a plan: however often its partitions are executed, when, and in which tasks, one stream of each
//! partition makes the table together, every row once.
//!
//! - Which partition owns which chunks is fixed for this instance of the plan: each has a share ([`Shares`]).
//! - As long as each partition is executed once, the partitions are workers of one scan, which needs the shares of
//!   those executed so far. The first worker to ask is handed a chunk of any of these shares, and its partition owns it
//!   from then on.
//! - When a partition is executed again, chunks not handed out stay with their owners. Running streams read the rest of
//!   their partition in scans of their own, and so does every later stream.
//! - A stream that is dropped leaves the rest of its share to its partition.
//! - A partition owns the chunks of which it has taken the state from another query.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use coscan_runtime::ScanStream;
use coscan_runtime::core::ChunkIndex;
use datafusion::error::Result;

use crate::execution::chunk_scan::{ChunkScan, ChunkScanPlan};
use crate::execution::shares::Shares;
use crate::shared_results::{ChunkState, Subscription};

/// The executions of a plan.
#[derive(Debug)]
pub(crate) struct Executions {
    plan: Arc<ChunkScanPlan>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shares: Shares,
    partitions: Vec<PartitionState>,
    /// Whether chunks keep their owners from now on.
    is_fixed: bool,
    /// The scan that the partitions share, as long as they have streams.
    shared: Option<Arc<ChunkScan>>,
    /// The number of streams that share it, or will.
    sharing: usize,
}

/// A partition that was executed at most once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PartitionState {
    /// The partition was not executed yet.
    New,
    /// The partition was executed, but its stream was not polled yet.
    Executed,
    /// The shared scan reads the share of the partition.
    Reading,
    /// The stream of the partition has ended or was dropped.
    Left,
}

impl Executions {
    pub(crate) fn new(plan: ChunkScanPlan, shares: Shares) -> Self {
        let state = State {
            shares,
            partitions: vec![PartitionState::New; plan.request.workers],
            is_fixed: false,
            shared: None,
            sharing: 0,
        };
        Self { plan: Arc::new(plan), state: Mutex::new(state) }
    }

    /// Executes a partition. Nothing is read before [`Execution::next`].
    pub(crate) fn execute(self: &Arc<Self>, partition: usize) -> Execution {
        let mut state = self.lock();
        if state.partitions[partition] != PartitionState::New {
            state.fix();
        }
        let is_sharing = !state.is_fixed;
        if is_sharing {
            state.partitions[partition] = PartitionState::Executed;
            state.sharing += 1;
        }
        drop(state);
        Execution { executions: Arc::clone(self), partition, is_sharing, chunk_scan: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Fixes the owners of chunks. Each partition owns the chunks that it was handed and the rest of its share.
    fn fix(&mut self) {
        self.is_fixed = true;
        self.end_sharing();
    }

    /// Ends the shared scan. Chunks belong to the partitions that they were handed to.
    fn end_sharing(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        self.assign(shared.close());
    }

    fn assign(&mut self, handed: Vec<(ChunkIndex, usize)>) {
        for (chunk, partition) in handed {
            self.shares.assign(chunk, partition);
        }
    }

    /// Whether a sharing partition has to request more. If not, the chunks of its share that other partitions hold
    /// become theirs, since a worker that cannot open its chunk may give it back after this partition has ended.
    fn goes_on(&mut self, shared: &ChunkScan) -> Result<bool> {
        if shared.go_on()? {
            return Ok(true);
        }
        let Some(handed) = shared.all_handed_out() else { return Ok(true) };
        self.assign(handed);
        Ok(false)
    }

    /// The shared scan, with the shares of all partitions that were executed so far.
    fn share(&mut self, plan: &Arc<ChunkScanPlan>) -> Result<Arc<ChunkScan>> {
        let new = || Arc::new(ChunkScan::shared(plan, self.partitions.len()));
        let shared = Arc::clone(self.shared.get_or_insert_with(new));
        let is_waiting = |state: &PartitionState| *state == PartitionState::Executed;
        if self.partitions.iter().any(is_waiting) {
            shared.add(self.shares.of(|partition| is_waiting(&self.partitions[partition])));
            let waiting = self.partitions.iter_mut().filter(|state| is_waiting(state));
            waiting.for_each(|state| *state = PartitionState::Reading);
        }
        shared.go_on()?;
        Ok(shared)
    }

    /// Called when the stream of a sharing partition has ended or was dropped.
    fn leave(&mut self, partition: usize) {
        self.sharing -= 1;
        if self.is_fixed {
            return;
        }
        self.partitions[partition] = PartitionState::Left;
        if self.sharing == 0 {
            self.end_sharing();
        } else if let Some(shared) = &self.shared {
            shared.give_up(|chunk| self.shares.owner(chunk) == partition);
        }
    }
}

/// An execution of one partition.
#[derive(Debug)]
pub(crate) struct Execution {
    executions: Arc<Executions>,
    partition: usize,
    /// Whether the execution is, or will be, a worker of the shared scan. Otherwise it reads alone.
    is_sharing: bool,
    /// The scan of its worker, once there is one.
    chunk_scan: Option<Arc<ChunkScan>>,
}

impl Execution {
    /// The next stream of batches, or `None` if there are no more. It is called again when the returned stream has
    /// ended.
    pub(crate) fn next(&mut self) -> Result<Option<ScanStream>> {
        if !self.is_sharing {
            return match self.chunk_scan.clone() {
                None => self.read_alone(&[]),
                Some(alone) => Ok(if alone.go_on()? { alone.worker(0) } else { None }),
            };
        }
        let mut state = self.executions.lock();
        let Some(shared) = self.chunk_scan.take() else {
            if !state.is_fixed {
                let shared = state.share(&self.executions.plan)?;
                self.chunk_scan = Some(Arc::clone(&shared));
                return Ok(shared.worker(self.partition));
            }
            state.leave(self.partition);
            self.is_sharing = false;
            drop(state);
            return self.read_alone(&[]);
        };
        if !state.is_fixed {
            let goes_on = state.goes_on(&shared)?;
            let worker = if goes_on { shared.worker(self.partition) } else { None };
            self.chunk_scan = Some(shared);
            return Ok(worker);
        }
        state.leave(self.partition);
        self.is_sharing = false;
        drop(state);
        shared.count();
        let mut given = shared.handed();
        given.retain(|(_, partition)| *partition == self.partition);
        let mut given: Vec<_> = given.into_iter().map(|(chunk, _)| chunk).collect();
        given.sort_unstable();
        self.read_alone(&given)
    }

    /// Starts to read the chunks of its partition, except `given`, the chunks that were given already, in ascending
    /// order.
    fn read_alone(&mut self, given: &[ChunkIndex]) -> Result<Option<ScanStream>> {
        let mut chunks = self.executions.lock().shares.of(|owner| owner == self.partition);
        chunks.retain(|chunk| given.binary_search(chunk).is_err());
        let chunk_scan = Arc::new(ChunkScan::new(&self.executions.plan, 1));
        chunk_scan.add(chunks);
        chunk_scan.go_on()?;
        let worker = chunk_scan.worker(0);
        self.chunk_scan = Some(chunk_scan);
        Ok(worker)
    }

    /// The state of a chunk that another query has published. The partition does not read this chunk. If there is none, the
    /// caller is woken when there may be one.
    pub(crate) fn take_state(&self, waker: &Waker) -> Option<Arc<ChunkState>> {
        self.chunk_scan.as_ref()?.take_state(self.partition, waker)
    }

    /// The partition does not wait for states.
    pub(crate) fn does_not_wait(&self) {
        if let Some(subscription) = self.subscription() {
            subscription.remove_waker(self.partition);
        }
    }

    /// The query among those that share results with it, once it reads.
    pub(crate) fn subscription(&self) -> Option<&Subscription> {
        self.chunk_scan.as_ref()?.subscription()
    }

    /// Drops chunks that dynamic filters have ruled out.
    pub(crate) fn prune(&self) {
        self.chunk_scan.iter().for_each(|chunk_scan| chunk_scan.prune());
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.does_not_wait();
        if self.is_sharing {
            self.executions.lock().leave(self.partition);
            // Others' code, so not under the lock. Another worker takes the states that this one was woken for.
            self.subscription().into_iter().for_each(Subscription::wake_one);
        }
        self.chunk_scan.iter().for_each(|chunk_scan| chunk_scan.count());
    }
}
