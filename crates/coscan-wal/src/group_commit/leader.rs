//! What the threads of a group commit share.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::PENDING_BYTES_MAX;
use crate::error::LogError;
use crate::log::Log;
use crate::lsn::Lsn;

/// Work that blocks.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs, each on a thread that may block.
pub type Executor = Box<dyn Fn(Job) + Send + Sync>;

pub(super) struct Shared {
    state: Mutex<State>,
    /// The log is back, or something is durable, or the log has failed.
    changed: Condvar,
    pub(super) executor: Executor,
}

pub(super) struct State {
    /// The log, unless somebody writes or it has failed.
    log: Option<Log>,
    /// What was submitted after the group that is being written.
    queue: Vec<Vec<u8>>,
    /// What was submitted and is not durable.
    pending_bytes: usize,
    pub(super) pending_bytes_max: usize,
    pub(super) submitted: Lsn,
    pub(super) durable: Lsn,
    failure: Option<LogError>,
    /// Async callers by the record that they wait for and a number of their own.
    pub(super) wakers: BTreeMap<(Lsn, u64), Waker>,
    next_waker: u64,
    /// Whether a job writes for them.
    pub(super) has_job: bool,
}

impl State {
    pub(super) fn submit(&mut self, payload: Vec<u8>) -> Result<Lsn, LogError> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.pending_bytes += payload.len();
        self.queue.push(payload);
        self.submitted = self.submitted.next();
        Ok(self.submitted)
    }

    /// The outcome of a record, if it has one.
    pub(super) fn outcome(&self, lsn: Lsn) -> Option<Result<(), LogError>> {
        if lsn <= self.durable {
            return Some(Ok(()));
        }
        if lsn > self.submitted {
            return Some(Err(LogError::NotSubmitted { lsn, last: self.submitted }));
        }
        self.failure().map(Err)
    }

    pub(super) fn failure(&self) -> Option<LogError> {
        self.failure.clone()
    }

    pub(super) fn is_full(&self) -> bool {
        self.pending_bytes >= self.pending_bytes_max
    }

    pub(super) fn new_waker(&mut self) -> u64 {
        self.next_waker += 1;
        self.next_waker
    }

    /// The wakers of those whose records have an outcome.
    fn take_woken(&mut self) -> BTreeMap<(Lsn, u64), Waker> {
        let later = self.wakers.split_off(&(self.durable.next(), 0));
        let woken = std::mem::replace(&mut self.wakers, later);
        if self.failure.is_none() {
            return woken;
        }
        woken.into_iter().chain(std::mem::take(&mut self.wakers)).collect()
    }
}

impl Shared {
    pub(super) fn new(log: Log, executor: Executor) -> Self {
        let durable = log.durable();
        let state = State {
            log: Some(log),
            queue: Vec::new(),
            pending_bytes: 0,
            pending_bytes_max: PENDING_BYTES_MAX,
            submitted: durable,
            durable,
            failure: None,
            wakers: BTreeMap::new(),
            next_waker: 0,
            has_job: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), executor }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes group after group, or waits while somebody else does, until there is a result.
    pub(super) fn lead_until<T>(&self, result: impl Fn(&mut State) -> Option<T>) -> T {
        let mut state = self.state();
        loop {
            if let Some(result) = result(&mut state) {
                return result;
            }
            state = match state.log.take() {
                Some(log) => {
                    let group = std::mem::take(&mut state.queue);
                    drop(state);
                    self.write(log, &group);
                    self.state()
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Writes a group as its leader.
    fn write(&self, mut log: Log, group: &[Vec<u8>]) {
        let panicked = EndOnPanic(self);
        let written = log.append_all(group);
        std::mem::forget(panicked);
        self.state().pending_bytes -= group.iter().map(Vec::len).sum::<usize>();
        self.give_back(log, &written);
    }

    /// Takes the log from all others.
    pub(super) fn take(&self) -> Result<Log, LogError> {
        let mut state = self.state();
        loop {
            if let Some(failure) = state.failure() {
                return Err(failure);
            }
            if let Some(log) = state.log.take() {
                return Ok(log);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the log back, or drops it if it has failed: then it can be opened again.
    pub(super) fn give_back<T>(&self, log: Log, result: &Result<T, LogError>) {
        let mut state = self.state();
        state.durable = log.durable();
        match result {
            Ok(_) => {
                state.log = Some(log);
                self.announce(state);
            }
            Err(error) => {
                drop(state);
                drop(log);
                self.end(LogError::Poisoned { cause: error.to_string() });
            }
        }
    }

    /// Ends the use of the log.
    pub(super) fn end(&self, failure: LogError) {
        let mut state = self.state();
        state.failure = Some(failure);
        state.queue = Vec::new();
        self.announce(state);
    }

    fn announce(&self, mut state: MutexGuard<'_, State>) {
        let woken = state.take_woken();
        drop(state);
        self.changed.notify_all();
        // Without the lock: a waker may run anything.
        woken.into_values().for_each(Waker::wake);
    }
}

/// Ends the use of the log when its leader panics, so that nobody waits for it.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.end(LogError::Poisoned { cause: "a thread panicked while it wrote".into() });
    }
}
