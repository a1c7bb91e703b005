//! Group commit: many threads share one sync.
//!
//! Whoever waits first leads: it writes and syncs all that was submitted until then. Whoever submits meanwhile follows, and
//! one of them leads the next group. So there is no thread and no timer, a group grows with the time that a sync takes, and
//! a single thread waits for nobody. (DeWitt et al., "Implementation techniques for main memory database systems",
//! SIGMOD 1984, §5.2)

mod commit_future;
mod leader;

use std::fmt;
use std::sync::Arc;

use crate::error::LogError;
use crate::log::{Log, check_size};
use crate::lsn::Lsn;
pub use commit_future::Commit;
use leader::Shared;
pub use leader::{Executor, Job};

/// How many bytes may be submitted and not durable before callers wait, unless another number is set: 64 MiB.
pub const PENDING_BYTES_MAX: usize = 64 << 20;

/// A log that many threads append to. Clones share it.
///
/// ```
/// use std::sync::Arc;
/// use coscan_wal::{GroupCommit, Log, LogOptions, SimulatedDisk};
///
/// let (log, _) = Log::open(Arc::new(SimulatedDisk::new(1)), LogOptions::default())?;
/// let log = GroupCommit::new(log);
/// log.make_room()?; // before the lock of the database is taken
/// let lsn = log.submit(*b"a change")?; // under it: the order of submitting is that of the log
/// log.wait(lsn)?; // after it was given back
/// assert_eq!(log.durable(), lsn);
/// # Ok::<(), coscan_wal::LogError>(())
/// ```
///
/// Async code awaits [`committed`](Self::committed) instead, with an executor that runs the writing elsewhere:
///
/// ```
/// # use std::sync::Arc;
/// # use coscan_wal::{GroupCommit, Log, LogOptions, SimulatedDisk};
/// # let (log, _) = Log::open(Arc::new(SimulatedDisk::new(1)), LogOptions::default())?;
/// // With tokio: |job| drop(tokio::task::spawn_blocking(job))
/// let log = GroupCommit::with_executor(log, |job| drop(std::thread::spawn(job)));
/// # Ok::<(), coscan_wal::LogError>(())
/// ```
#[derive(Clone)]
pub struct GroupCommit {
    shared: Arc<Shared>,
}

impl GroupCommit {
    /// Shares a log.
    #[must_use]
    pub fn new(log: Log) -> Self {
        Self::with_executor(log, |job| job())
    }

    /// Shares a log, with an executor for the jobs that write for async callers. It should run each of them on a thread that
    /// may block. At most one is running; it ends when no async caller waits. That of [`new`](Self::new) runs them at once:
    /// the first await then blocks.
    pub fn with_executor(log: Log, executor: impl Fn(Job) + Send + Sync + 'static) -> Self {
        Self { shared: Arc::new(Shared::new(log, Box::new(executor))) }
    }

    /// Sets how many bytes may be submitted and not durable before [`make_room`](Self::make_room) waits.
    #[must_use]
    pub fn with_pending_bytes_max(self, bytes: usize) -> Self {
        self.shared.state().pending_bytes_max = bytes;
        self
    }

    /// Takes a record into the log and returns its number. It is not durable before [`wait`](Self::wait) says so.
    ///
    /// This neither blocks nor writes, so the caller may hold a lock. Records have the order in which they were submitted.
    /// The memory for what is not durable is bounded if each caller calls [`make_room`](Self::make_room) before: by the
    /// limit and one record of each caller.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log has failed or [`LogError::RecordTooLarge`]: then nothing was submitted.
    pub fn submit(&self, payload: impl Into<Vec<u8>>) -> Result<Lsn, LogError> {
        let payload = payload.into();
        check_size(&payload)?;
        self.shared.state().submit(payload)
    }

    /// Waits until a record, and with it all before it, is durable. The caller may have to write for others, too.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log failed before: then the record may be there when the log is opened again or not.
    /// [`LogError::NotSubmitted`] if no such record was submitted.
    pub fn wait(&self, lsn: Lsn) -> Result<(), LogError> {
        self.shared.lead_until(|state| state.outcome(lsn))
    }

    /// Returns a future that is ready when a record is durable, with the errors of [`wait`](Self::wait).
    pub fn committed(&self, lsn: Lsn) -> Commit {
        Commit::new(Arc::clone(&self.shared), lsn)
    }

    /// Waits until there is room for another record: until less than the limit is submitted and not durable. To be called
    /// before [`submit`](Self::submit), without a lock that others need to finish.
    ///
    /// Async code awaits the last record if there is no room:
    /// `if log.is_full() { log.committed(log.submitted()).await? }`.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log has failed.
    pub fn make_room(&self) -> Result<(), LogError> {
        self.shared.lead_until(|state| {
            if state.is_full() { state.failure().map(Err) } else { Some(Ok(())) }
        })
    }

    /// Returns whether [`make_room`](Self::make_room) would wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shared.state().is_full()
    }

    /// Returns the last record that is durable. All before it are.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.shared.state().durable
    }

    /// Returns the last record that was submitted.
    #[must_use]
    pub fn submitted(&self) -> Lsn {
        self.shared.state().submitted
    }

    /// Removes old segments, as [`Log::cut_before`]. Commits wait meanwhile.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log had failed before, or the error of the disk, which poisons it.
    pub fn cut_before(&self, lsn: Lsn) -> Result<(), LogError> {
        let mut log = self.shared.take()?;
        let cut = log.cut_before(lsn);
        self.shared.give_back(log, &cut);
        cut
    }

    /// Makes all that was submitted durable and closes the log, as [`Log::close`]. Later calls fail.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log had failed before, or the error of the disk.
    pub fn close(&self) -> Result<(), LogError> {
        self.wait(self.submitted())?;
        let log = self.shared.take()?;
        self.shared.end(LogError::Closed);
        log.close()
    }
}

impl fmt::Debug for GroupCommit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        formatter
            .debug_struct("GroupCommit")
            .field("submitted", &state.submitted)
            .field("durable", &state.durable)
            .finish_non_exhaustive()
    }
}
