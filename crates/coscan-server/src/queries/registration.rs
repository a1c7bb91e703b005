//! One query, from its arrival until it has ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;

use crate::queries::admission::Admission;
use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::query_id::QueryId;
use crate::queries::{Queries, Slot, cut};
use crate::users::User;

/// The state of a query, which is what it does now or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryState {
    /// The query waits for a slot.
    Waiting,
    /// The query is parsed or planned.
    Planning,
    /// The query runs, or its client reads the result.
    Running,
    /// The query was cancelled or has failed, and some of its work has not ended yet. It keeps its slot.
    Ending,
    /// All rows were read.
    Done,
    /// The query was cancelled, or its client disconnected.
    Cancelled,
    /// The query failed.
    Failed,
    /// The query never ran, since too many queries ran and waited, or the server was about to stop.
    Refused,
}

impl QueryState {
    /// The final states.
    pub const ENDS: [Self; 4] = [Self::Done, Self::Cancelled, Self::Failed, Self::Refused];

    /// The name that `system.queries` shows.
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

/// The state and figures of a query.
#[derive(Clone, Debug)]
pub struct QueryReport {
    /// The number of the query.
    pub id: QueryId,
    /// The user of the query.
    pub user: String,
    /// The text, cut off after [`SQL_BYTES_SHOWN`](super::SQL_BYTES_SHOWN) bytes.
    pub sql: String,
    /// The state of the query.
    pub state: QueryState,
    /// The time of its arrival.
    pub started: SystemTime,
    /// The time for which it has waited for a slot so far.
    pub waited: Duration,
    /// The time for which it has run since it got a slot.
    pub ran: Duration,
    /// The number of rows returned so far.
    pub rows: u64,
    /// The reason why it failed, cut off like the text.
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
    /// Whether the statement is only planned. It is not a query of the history, unless it took too long.
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

    /// The report once no work of the query is left.
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
    /// The report while some work of the query is left.
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

    /// Whether the query belongs to the history. Planning does if it was ended early.
    pub(super) fn is_remembered(&self) -> bool {
        !self.is_planning || self.state() != QueryState::Done
    }

    /// Sets the end of the query. Only the first end counts. Returns whether this is the first.
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

/// The registration of a query. When it is dropped, the query is cancelled, unless it has ended.
#[derive(Debug)]
pub(crate) struct QueryRegistration {
    user: Arc<User>,
    held: Arc<Held>,
}

/// The work for a query on other threads. The query stays registered, and keeps its slot, until all of its work is
/// dropped. Work that does not notice a cancellation thus keeps others from starting as much again.
#[derive(Clone, Debug)]
pub(crate) struct Work(#[expect(dead_code, reason = "held, not read")] Arc<Held>);

/// The slot of a query. When it is dropped, the query is moved to the history, and its slot is free.
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

    /// Cancelled once the query is cancelled, or its client has dropped it.
    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.held.entry.cancel
    }

    /// A handle for work on another thread.
    pub(crate) fn work(&self) -> Work {
        Work(Arc::clone(&self.held))
    }

    /// Waits for a slot, in proportion to a weight, and starts.
    ///
    /// # Errors
    /// If the queue is full, no slot is free in time, the server stops, or the query is cancelled.
    pub(crate) async fn admit(&self, weight: u32) -> Result<(), QueryError> {
        self.take_slot(&self.held.queries.admission, weight, QueryState::Running).await
    }

    /// Waits for a slot for planning. Fails as [`admit`](Self::admit) does.
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

    /// Records that the query runs, without needing a slot.
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

    /// Records that all rows were read, or that the statement is planned.
    pub(crate) fn finish(&self) {
        self.held.entry.end(QueryState::Done, None);
    }

    /// Records the reason why the query failed.
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
        // If nothing has ended the query before, its client has dropped it. Its work is cancelled.
        if self.held.entry.end(QueryState::Cancelled, None) {
            self.cancel_token().cancel();
        }
    }
}

/// The error of a query that was cancelled.
pub(crate) fn cancelled() -> QueryError {
    QueryError::new(ErrorKind::Cancelled, "the query was cancelled")
}
