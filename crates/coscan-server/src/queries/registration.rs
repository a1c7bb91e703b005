//! One query, from when it came until it has ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;

use crate::queries::admission::Admission;
use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::query_id::QueryId;
use crate::queries::{Queries, Slot, cut};
use crate::users::User;

/// What a query is doing, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryState {
    /// It waits for a slot.
    Waiting,
    /// It is parsed or planned.
    Planning,
    /// It runs, or its client reads the result.
    Running,
    /// It has been cancelled or has failed, and some of its work has not noticed yet. It keeps its slot.
    Ending,
    /// All rows were read.
    Done,
    /// It was cancelled, or its client went away.
    Cancelled,
    /// It failed.
    Failed,
    /// It never ran: too many queries ran and waited, or the server was about to stop.
    Refused,
}

impl QueryState {
    /// The final states.
    pub const ENDS: [Self; 4] = [Self::Done, Self::Cancelled, Self::Failed, Self::Refused];

    /// The word that `system.queries` shows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Planning => "planning",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What is known of a query.
#[derive(Clone, Debug)]
pub struct QueryReport {
    /// Its number.
    pub id: QueryId,
    /// Who asked.
    pub user: String,
    /// The text, cut off after [`SQL_BYTES_SHOWN`](super::SQL_BYTES_SHOWN) bytes.
    pub sql: String,
    /// What it is doing.
    pub state: QueryState,
    /// When it came.
    pub started: SystemTime,
    /// How long it waited for a slot, so far.
    pub waited: Duration,
    /// How long it has run, or ran, since it had a slot.
    pub ran: Duration,
    /// Rows returned so far.
    pub rows: u64,
    /// Why it failed; cut off as the text is.
    pub error: Option<String>,
}

/// The shared part of a query.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: QueryId,
    pub(super) user: String,
    sql: String,
    started: SystemTime,
    came: Instant,
    rows: AtomicU64,
    progress: Mutex<Progress>,
    /// Whether it is only planned: it is no query of the history, unless it took too long.
    is_planning: bool,
    pub(super) cancel: CancellationToken,
}

#[derive(Debug)]
struct Progress {
    state: QueryState,
    admitted: Option<Instant>,
    ended: Option<Instant>,
    error: Option<String>,
}

impl Entry {
    pub(super) fn new(id: QueryId, user: &str, sql: String, is_planning: bool) -> Self {
        Self {
            id,
            is_planning,
            user: user.to_owned(),
            sql,
            started: SystemTime::now(),
            came: Instant::now(),
            rows: AtomicU64::new(0),
            progress: Mutex::new(Progress {
                state: QueryState::Waiting,
                admitted: None,
                ended: None,
                error: None,
            }),
            cancel: CancellationToken::new(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of it once nothing works for it any more.
    pub(super) fn report(&self) -> QueryReport {
        let progress = self.progress();
        let end = progress.ended.unwrap_or_else(Instant::now);
        let admitted = progress.admitted.unwrap_or(end);
        QueryReport {
            id: self.id,
            user: self.user.clone(),
            sql: self.sql.clone(),
            state: progress.state,
            started: self.started,
            waited: admitted.duration_since(self.came),
            ran: end.duration_since(admitted),
            rows: self.rows.load(Ordering::Relaxed),
            error: progress.error.clone(),
        }
    }
}

impl Entry {
    /// What is known of it while something still works for it.
    pub(super) fn current_report(&self) -> QueryReport {
        let mut report = self.report();
        if QueryState::ENDS.contains(&report.state) {
            report.state = QueryState::Ending;
        }
        report
    }

    pub(super) fn state(&self) -> QueryState {
        self.progress().state
    }

    /// Whether it belongs to the history: planning does if it was cut short.
    pub(super) fn is_remembered(&self) -> bool {
        !self.is_planning || self.state() != QueryState::Done
    }

    /// Only the first end counts; returns whether this is it.
    fn end(&self, state: QueryState, error: Option<String>) -> bool {
        let mut progress = self.progress();
        let is_first = progress.ended.is_none();
        if is_first {
            progress.state = state;
            progress.ended = Some(Instant::now());
            progress.error = error;
        }
        is_first
    }
}

/// A query that is registered, for whoever asked. When it is dropped, the query is cancelled, unless it has ended.
#[derive(Debug)]
pub(crate) struct QueryRegistration {
    user: Arc<User>,
    held: Arc<Held>,
}

/// What works for a query, on other threads. The query is registered, and keeps its slot, until all of it is dropped: work
/// that does not notice that it was cancelled keeps others from starting as much again.
#[derive(Clone, Debug)]
pub(crate) struct Work(#[expect(dead_code, reason = "held, not read")] Arc<Held>);

/// When it is dropped, the query goes to the history, and its slot is free.
#[derive(Debug)]
struct Held {
    queries: Arc<Queries>,
    entry: Arc<Entry>,
    slot: Mutex<Option<Slot>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.slot.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        self.queries.forget(&self.entry);
    }
}

impl QueryRegistration {
    pub(super) fn new(queries: Arc<Queries>, entry: Arc<Entry>, user: &Arc<User>) -> Self {
        let held = Held { queries, entry, slot: Mutex::default() };
        Self { user: Arc::clone(user), held: Arc::new(held) }
    }

    pub(crate) fn id(&self) -> QueryId {
        self.held.entry.id
    }

    /// Cancelled once someone cancels the query, or its client has lost interest.
    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.held.entry.cancel
    }

    /// For whatever works for the query on another thread.
    pub(crate) fn work(&self) -> Work {
        Work(Arc::clone(&self.held))
    }

    /// Waits for a slot, in proportion to a weight, and runs.
    ///
    /// # Errors
    /// If the queue is full, no slot comes free in time, the server stops, or the query is cancelled.
    pub(crate) async fn admit(&self, weight: u32) -> Result<(), QueryError> {
        self.take_slot(&self.held.queries.admission, weight, QueryState::Running).await
    }

    /// Waits for a slot for planning.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit).
    pub(crate) async fn admit_planning(&self, weight: u32) -> Result<(), QueryError> {
        self.take_slot(&self.held.queries.planning, weight, QueryState::Planning).await
    }

    async fn take_slot(
        &self,
        admission: &Admission,
        weight: u32,
        state: QueryState,
    ) -> Result<(), QueryError> {
        let admitted = tokio::select! {
            biased;
            () = self.cancel_token().cancelled() => Err(cancelled()),
            admitted = admission.admit(&self.user, weight) => admitted,
        };
        let slot = admitted.inspect_err(|error| self.fail(error))?;
        *self.held.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
        self.begin(state);
        Ok(())
    }

    /// Notes that the query runs, without needing a slot.
    pub(crate) fn start(&self) {
        self.begin(QueryState::Running);
    }

    fn begin(&self, state: QueryState) {
        let mut progress = self.held.entry.progress();
        progress.state = state;
        progress.admitted = Some(Instant::now());
    }

    pub(crate) fn count_rows(&self, rows: u64) {
        self.held.entry.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Notes that all rows were read, or that the statement is planned.
    pub(crate) fn finish(&self) {
        self.held.entry.end(QueryState::Done, None);
    }

    /// Notes why the query failed.
    pub(crate) fn fail(&self, error: &QueryError) {
        let state = match error.kind {
            ErrorKind::Cancelled => QueryState::Cancelled,
            ErrorKind::Busy | ErrorKind::Stopping => QueryState::Refused,
            _ => QueryState::Failed,
        };
        self.held.entry.end(state, Some(cut(&error.text))); // It may quote a long value.
    }
}

impl Drop for QueryRegistration {
    fn drop(&mut self) {
        // If nothing has ended it before, its client has lost interest. Work that asks finds out.
        if self.held.entry.end(QueryState::Cancelled, None) {
            self.cancel_token().cancel();
        }
    }
}

/// The error of a query that someone cancelled.
pub(crate) fn cancelled() -> QueryError {
    QueryError::new(ErrorKind::Cancelled, "the query was cancelled")
}
