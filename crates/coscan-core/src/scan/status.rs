//! The status of a scan: ready and arriving chunks, starvation, waiting workers.

use super::{Order, Scan, Ticket, Worker};
use crate::ids::{ChunkIndex, Index, Time, WorkerIndex};

impl Scan {
    /// The ready chunks that a scan needs to proceed without waiting: one for each worker and one more; none if it has
    /// failed or all its workers were withdrawn.
    #[must_use]
    pub fn chunks_ahead(&self) -> usize {
        let goes_on = |worker: &&Worker| !self.failed && **worker != Worker::Gone;
        match self.workers.iter().filter(goes_on).count() {
            0 => 0,
            workers => workers + 1,
        }
    }

    /// Its ready chunks: those that its workers have or could be handed at once [CS07 Figure 3,
    /// `numberOfAvailableChunks`]. In order, only those before the first one missing count, up to the number that
    /// decides whether it is starved.
    #[must_use]
    pub fn ready_chunks(&self) -> usize {
        let ready = match self.order {
            Order::Any => self.available.len(),
            Order::InOrder => self.run_length(|chunk| self.is_available(chunk)),
        };
        ready + self.busy_workers()
    }

    /// The number of arriving chunks: all their missing pages are being read. In order, only those before the first
    /// cold one count.
    #[must_use]
    pub fn arriving(&self) -> usize {
        match self.order {
            Order::Any => self.needed.len() - self.cold.len() - self.available.len(),
            Order::InOrder => {
                let covered = self.run_length(|chunk| self.is_covered(chunk));
                covered - self.run_length(|chunk| self.is_available(chunk))
            }
        }
    }

    /// The number of its next chunks that pass a test, before the first one that does not.
    fn run_length(&self, test: impl Fn(ChunkIndex) -> bool) -> usize {
        let next = self.needed.iter().take(self.chunks_ahead() + 1);
        next.take_while(|&chunk| test(chunk)).count()
    }

    /// The percentage of its column groups that are decoded in the chunk that it could be handed at once; of several chunks, the
    /// highest. 0 for a scan without column groups.
    #[must_use]
    pub fn decoded_percent(&self) -> usize {
        let decoded = match self.order {
            Order::Any => self.decoded.most(),
            Order::InOrder => self.needed.first().map_or(0, |first| self.decoded.of(first)),
        };
        match self.groups.len() {
            0 => 0,
            all => (decoded * 100).div_ceil(all),
        }
    }

    /// The chunks with the largest number of decoded column groups; none if no column group is decoded.
    pub fn most_decoded_chunks(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let chunks = self.decoded.with_most().filter(|_| self.order == Order::Any);
        let is_decoded = |chunk: &ChunkIndex| self.decoded.of(*chunk) > 0;
        let first = self.needed.first().filter(|_| self.order == Order::InOrder);
        chunks.chain(first.filter(is_decoded))
    }

    /// Whether a chunk counts as [ready](Self::ready_chunks) or [arriving](Self::arriving).
    #[must_use]
    pub fn depends_on(&self, chunk: ChunkIndex) -> bool {
        let soon = || self.needed.iter().take(self.chunks_ahead()).any(|next| next == chunk);
        self.is_covered(chunk) && (self.order == Order::Any || soon())
    }

    /// Whether it is starved: it works on its last ready chunk, or on none [CS07 §4].
    #[must_use]
    pub fn is_starved(&self) -> bool {
        !self.needed.is_empty() && self.ready_chunks() < self.chunks_ahead()
    }

    /// Whether it is starved, or would be with one ready chunk less [CS07 §4].
    #[must_use]
    pub fn is_almost_starved(&self) -> bool {
        self.spare_chunks().is_some_and(|spare| spare <= 1)
    }

    /// The ready chunks that it can do without before it is starved: 0 if it is. `None` if it needs nothing, or nothing is
    /// ever read for it.
    pub(crate) fn spare_chunks(&self) -> Option<usize> {
        let spare = (self.ready_chunks() + 1).saturating_sub(self.chunks_ahead());
        (!self.needed.is_empty() && !self.is_interest()).then_some(spare)
    }

    /// Whether it is starved, and its arriving chunks will not change that.
    #[must_use]
    pub fn needs_load(&self) -> bool {
        !self.needed.is_empty() && self.ready_chunks() + self.arriving() < self.chunks_ahead()
    }

    /// The workers that share it.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// Workers that work on a chunk.
    #[must_use]
    pub fn busy_workers(&self) -> usize {
        self.workers.iter().filter(|worker| matches!(worker, Worker::Busy { .. })).count()
    }

    /// The times since which the busy workers have been at work on their chunks, without those that their query has
    /// paused.
    pub(crate) fn active_since(&self) -> impl Iterator<Item = Time> + '_ {
        self.workers.iter().filter_map(|worker| match *worker {
            Worker::Busy { since, active: true, .. } => Some(since),
            _ => None,
        })
    }

    /// The time since which it has waited for pages; `None` if a chunk is ready and it waits for a processor only.
    #[must_use]
    pub fn starving_since(&self) -> Option<Time> {
        self.waiting_since().filter(|_| !self.is_deliverable())
    }

    /// The time since which the worker that has waited longest has waited.
    #[must_use]
    pub fn waiting_since(&self) -> Option<Time> {
        self.longest_waiting().map(|(_, since, _)| since)
    }

    /// The time since which it waits for its next turn: a worker waits, and none has been handed a chunk since.
    pub(crate) fn turn_since(&self) -> Option<Time> {
        self.waiting_since().map(|since| self.handed_at.map_or(since, |handed| since.max(handed)))
    }

    /// The worker that has waited longest: its ticket, since when it waits, and its index.
    pub(crate) fn longest_waiting(&self) -> Option<(Ticket, Time, WorkerIndex)> {
        let workers = self.workers.iter().enumerate();
        let waiting = workers.filter_map(|(worker, state)| match *state {
            Worker::Waiting { since, ticket } => {
                Some((ticket, since, WorkerIndex::from_usize(worker)))
            }
            _ => None,
        });
        waiting.min()
    }
}
