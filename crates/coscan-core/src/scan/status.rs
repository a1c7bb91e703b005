//! How a scan stands: what it has at hand, what is on its way, since when it waits.

use super::{Order, Scan, Turn, Worker};
use crate::ids::{ChunkIndex, Index, Time, WorkerIndex};

impl Scan {
    /// How many chunks a scan keeps before it to go on without waiting: one for each worker and one more; none if all
    /// its workers were withdrawn.
    #[must_use]
    pub fn chunks_ahead(&self) -> usize {
        match self.workers.iter().filter(|worker| **worker != Worker::Gone).count() {
            0 => 0,
            workers => workers + 1,
        }
    }

    /// Chunks it works on or could work on at once [CS07 Figure 3, `numberOfAvailableChunks`]. In order, only those
    /// before the first one missing, and no more of them than decide whether it is starved.
    #[must_use]
    pub fn ready_chunks(&self) -> usize {
        let ready = match self.order {
            Order::Any => self.available.len(),
            Order::InOrder => self.run(|chunk| self.is_available(chunk)),
        };
        ready + self.busy_workers()
    }

    /// Chunks on their way: everything missing is being read. In order, only those before the first one to be asked
    /// for.
    #[must_use]
    pub fn arriving(&self) -> usize {
        match self.order {
            Order::Any => self.needed.len() - self.cold.len() - self.available.len(),
            Order::InOrder => {
                let covered = self.run(|chunk| self.is_covered(chunk));
                covered - self.run(|chunk| self.is_available(chunk))
            }
        }
    }

    /// How many chunks a scan in order could go through before the first one that is not `there`.
    fn run(&self, there: impl Fn(ChunkIndex) -> bool) -> usize {
        let next = self.needed.iter().take(self.chunks_ahead() + 1);
        next.take_while(|&chunk| there(chunk)).count()
    }

    /// Of the chunks that it could be handed at once, the one of which most column groups are decoded: how many that are.
    #[must_use]
    pub fn most_decoded(&self) -> usize {
        match self.order {
            Order::Any => self.decoded.most(),
            Order::InOrder => self.needed.first().map_or(0, |first| self.decoded.of(first)),
        }
    }

    /// The chunks that it could be handed at once of which so many are decoded; none if nothing is.
    pub fn most_decoded_chunks(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let chunks = self.decoded.with_most().filter(|_| self.order == Order::Any);
        let is_decoded = |chunk: &ChunkIndex| self.decoded.of(*chunk) > 0;
        let first = self.needed.first().filter(|_| self.order == Order::InOrder);
        chunks.chain(first.filter(is_decoded))
    }

    /// Whether a chunk is in its [`ready_chunks`](Self::ready chunks), or on its way there.
    #[must_use]
    pub fn counts_on(&self, chunk: ChunkIndex) -> bool {
        let soon = || self.needed.iter().take(self.chunks_ahead()).any(|next| next == chunk);
        self.is_covered(chunk) && (self.order == Order::Any || soon())
    }

    /// Starved: it works on its last chunk, or on none [CS07 §4].
    #[must_use]
    pub fn is_starved(&self) -> bool {
        !self.needed.is_empty() && self.ready_chunks() < self.chunks_ahead()
    }

    /// At the border of starvation: one chunk less makes it starved [CS07 §4].
    #[must_use]
    pub fn is_almost_starved(&self) -> bool {
        !self.needed.is_empty() && self.ready_chunks() <= self.chunks_ahead()
    }

    /// Starved, and what is being read will not change that.
    #[must_use]
    pub fn wants_load(&self) -> bool {
        !self.needed.is_empty() && self.ready_chunks() + self.arriving() < self.chunks_ahead()
    }

    /// Workers that work on a chunk.
    #[must_use]
    pub fn busy_workers(&self) -> usize {
        self.workers.iter().filter(|worker| matches!(worker, Worker::Busy { .. })).count()
    }

    /// Since when each of those is at work, but for those that their query has paused.
    pub(crate) fn active_since(&self) -> impl Iterator<Item = Time> + '_ {
        self.workers.iter().filter_map(|worker| match *worker {
            Worker::Busy { since, active: true, .. } => Some(since),
            _ => None,
        })
    }

    /// Since when it waits for pages: not if there is a chunk for it and it only waits for processors.
    #[must_use]
    pub fn starving_since(&self) -> Option<Time> {
        self.waiting_since().filter(|_| !self.is_deliverable())
    }

    /// Since when its longest waiting worker waits.
    #[must_use]
    pub fn waiting_since(&self) -> Option<Time> {
        self.longest_waiting().map(|(_, since, _)| since)
    }

    /// The worker that waits longest: its turn, since when it waits, and which one it is.
    pub(crate) fn longest_waiting(&self) -> Option<(Turn, Time, WorkerIndex)> {
        let workers = self.workers.iter().enumerate();
        let waiting = workers.filter_map(|(worker, state)| match *state {
            Worker::Waiting { since, turn } => Some((turn, since, WorkerIndex::from_usize(worker))),
            _ => None,
        });
        waiting.min()
    }
}
