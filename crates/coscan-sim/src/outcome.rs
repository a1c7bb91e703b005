//! The outcome of a run: each query, the totals, and on request every event, in order.

use coscan_core::{ChunkIndex, IndexSet, LoadId, PageIndex, Time, WorkerIndex};

use crate::table::TableChange;

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The name of the policy.
    pub policy: String,
    /// The outcome of each query: those of the first stream, then those of the second, and so on.
    pub queries: Vec<QueryOutcome>,
    /// The time when each stream began.
    pub stream_starts: Vec<Time>,
    /// Nanoseconds from time 0 to the end of the last query.
    pub total_ns: u64,
    /// Loads: the papers' chunk-sized I/O requests.
    pub requests: u64,
    /// Requests to the disk. Neighbouring pages of a load make one.
    pub disk_requests: u64,
    /// Pages read, including those that then failed.
    pub pages_read: u64,
    /// Bytes of those pages.
    pub bytes_read: u64,
    /// Core nanoseconds of work.
    pub processor_busy_ns: u64,
    /// Nanoseconds during which some page was being read.
    pub disk_busy_ns: u64,
    /// Actions of the buffer manager.
    pub decisions: u64,
    /// Cores of the machine.
    pub cores: u32,
    /// Memory beside the pool.
    pub memory: MemoryOutcome,
    /// The chunks that were handed out, first ones first: the query, as a position in [`Outcome::queries`], and the
    /// chunk.
    pub deliveries: Vec<(usize, ChunkIndex)>,
    /// The events in order; empty unless [`crate::Options::timeline`] is set.
    pub timeline: Vec<Step>,
}

/// The outcome of memory beside the pool. All is 0 without [`crate::Options::memory`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryOutcome {
    /// Requests that were met after they had been queued.
    pub requests: u64,
    /// The longest wait of a request, in nanoseconds.
    pub longest_wait_ns: u64,
    /// The number of attempts to take memory at once.
    pub takes: u64,
    /// The number of these attempts that were refused.
    pub refused: u64,
    /// Nanoseconds during which memory was waited for.
    pub short_ns: u64,
    /// Nanoseconds during which nothing was read, although a scan waited for data that would have fitted into the pool
    /// with all free memory.
    pub idle_ns: u64,
    /// The largest overdraft in bytes.
    pub overdraft_bytes_max: u64,
}

/// The outcome of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryOutcome {
    /// Its stream.
    pub stream: usize,
    /// Its position in the stream.
    pub index: usize,
    /// Its kind, see [`crate::Query::label`].
    pub label: String,
    /// When it started.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// The way in which it ended.
    pub end: End,
    /// The chunks that it needed when it started.
    pub needed: IndexSet<ChunkIndex>,
    /// The number of chunks that it was handed.
    pub chunks: u64,
    /// Bytes of the pages of those chunks; a page that serves two of them counts twice.
    pub bytes_used: u64,
    /// Loads that were decided for it.
    pub requests: u64,
    /// Bytes of the pages of those loads.
    pub bytes_read: u64,
    /// The longest time, in nanoseconds, that one of its workers waited for a chunk.
    pub longest_wait_ns: u64,
}

/// The way in which a query ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// It was handed all chunks that it needed.
    Done,
    /// A page that it needed could not be read.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It could not start, because the pool was smaller than one chunk of it.
    Refused,
    /// It did not run, because its stream runs only while others do, and they had ended.
    Skipped,
}

/// An event and its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The time.
    pub at: Time,
    /// The event.
    pub what: EventKind,
}

/// An event. Queries are positions in [`Outcome::queries`], tables in [`crate::Workload::tables`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A query started its scan.
    Started {
        /// The query.
        query: usize,
    },
    /// A query ended.
    Ended {
        /// The query.
        query: usize,
        /// The way in which it ended.
        end: End,
    },
    /// A worker asked for a chunk and waits from now on. A delivery at the same time ends the wait at once.
    Waiting {
        /// The query.
        query: usize,
        /// The worker.
        worker: WorkerIndex,
    },
    /// A worker was handed a chunk and works on it from now on.
    Delivered {
        /// The query.
        query: usize,
        /// The worker.
        worker: WorkerIndex,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// A worker has finished a chunk.
    Released {
        /// The query.
        query: usize,
        /// The worker.
        worker: WorkerIndex,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// A load was decided and submitted to the disk.
    LoadStarted {
        /// The load.
        load: LoadId,
        /// The query that it is for.
        query: usize,
        /// The table.
        table: usize,
        /// The chunk.
        chunk: ChunkIndex,
        /// Pages of that chunk.
        pages: Vec<PageIndex>,
        /// Bytes of those pages.
        bytes: u64,
    },
    /// A page of a load arrived, or could not be read.
    PageArrived {
        /// The load.
        load: LoadId,
        /// The table.
        table: usize,
        /// The page.
        page: PageIndex,
        /// Whether it could be read.
        read: bool,
    },
    /// All pages of a load have arrived or failed.
    LoadEnded {
        /// The load.
        load: LoadId,
        /// The table.
        table: usize,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// A page left the pool.
    Evicted {
        /// The table.
        table: usize,
        /// The page.
        page: PageIndex,
    },
    /// Chunks that a scan still needed were pruned.
    Pruned {
        /// The query.
        query: usize,
        /// The number of chunks.
        chunks: usize,
    },
    /// A table changed: its next version is the newest.
    TableChanged(TableChange),
    /// The limit of the pool changed.
    PoolChanged {
        /// Bytes that it may hold.
        bytes: u64,
    },
}

impl QueryOutcome {
    /// Whether it ran.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.end != End::Skipped
    }

    /// Nanoseconds from start to end.
    #[must_use]
    pub fn latency_ns(&self) -> u64 {
        self.ended.since(self.started)
    }
}

impl Outcome {
    /// Nanoseconds from the start of each stream to the end of its last query [CS07 §5.2].
    #[must_use]
    pub fn stream_times_ns(&self) -> Vec<u64> {
        let mut times = vec![0; self.stream_starts.len()];
        for query in &self.queries {
            times[query.stream] = query.ended.since(self.stream_starts[query.stream]);
        }
        times
    }

    /// The average of the streams' times, in seconds; 0 if there is none.
    #[must_use]
    pub fn stream_avg_s(&self) -> f64 {
        average(self.stream_times_ns().into_iter().map(|ns| ns as f64 / 1e9))
    }

    /// Whether every query was handed its chunks in the order of their rows.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let mut last = vec![None; self.queries.len()];
        let mut follows = |&(query, chunk): &(usize, ChunkIndex)| {
            last[query].replace(chunk).is_none_or(|before| before < chunk)
        };
        self.deliveries.iter().all(&mut follows)
    }

    /// The part of the processor time that was used, 0 to 1.
    #[must_use]
    pub fn cpu_use(&self) -> f64 {
        part(self.processor_busy_ns, self.total_ns.saturating_mul(u64::from(self.cores)))
    }

    /// The part of the time during which the disk was busy, 0 to 1.
    #[must_use]
    pub fn disk_use(&self) -> f64 {
        part(self.disk_busy_ns, self.total_ns)
    }
}

fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

/// The arithmetic mean, or zero without values.
pub(crate) fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}
