//! One query, from when it came until it has ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;

use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::query_id::QueryId;
use crate::queries::{Queries, Slot, cut};

/// What a query is doing, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryState {
    /// It waits for a slot.
    Waiting,
    /// It runs, or its client reads the result.
    Running,
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
            Self::Running => "running",
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
    pub(super) fn new(id: QueryId, user: &str, sql: String) -> Self {
        Self {
            id,
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

/// A query that is registered. When it is dropped, the query has ended: it goes to the history, and its slot is free.
#[derive(Debug)]
pub(crate) struct QueryRegistration {
    pub(super) queries: Arc<Queries>,
    pub(super) entry: Arc<Entry>,
    slot: Option<Slot>,
}

impl QueryRegistration {
    pub(super) fn new(queries: Arc<Queries>, entry: Arc<Entry>) -> Self {
        Self { queries, entry, slot: None }
    }

    pub(crate) fn id(&self) -> QueryId {
        self.entry.id
    }

    /// Cancelled once someone cancels the query.
    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.entry.cancel
    }

    /// Waits for a slot, in proportion to a weight.
    ///
    /// # Errors
    /// If the queue is full, no slot comes free in time, the server stops, or the query is cancelled.
    pub(crate) async fn admit(&mut self, weight: u32) -> Result<(), QueryError> {
        let admitted = tokio::select! {
            biased;
            () = self.entry.cancel.cancelled() => Err(cancelled()),
            admitted = self.queries.admission.admit(&self.entry.user, weight) => admitted,
        };
        match admitted {
            Ok(slot) => {
                self.slot = Some(slot);
                self.start();
                Ok(())
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Notes that the query runs, with a slot or without needing one.
    pub(crate) fn start(&self) {
        let mut progress = self.entry.progress();
        progress.state = QueryState::Running;
        progress.admitted = Some(Instant::now());
    }

    pub(crate) fn count_rows(&self, rows: u64) {
        self.entry.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Notes that all rows were read.
    pub(crate) fn finish(&self) {
        self.end(QueryState::Done, None);
    }

    /// Notes why the query failed.
    pub(crate) fn fail(&self, error: &QueryError) {
        let state = match error.kind {
            ErrorKind::Cancelled => QueryState::Cancelled,
            ErrorKind::Busy | ErrorKind::Stopping => QueryState::Refused,
            _ => QueryState::Failed,
        };
        self.end(state, Some(cut(&error.text))); // It may quote a long value.
    }

    /// Only the first end counts.
    fn end(&self, state: QueryState, error: Option<String>) {
        let mut progress = self.entry.progress();
        if progress.ended.is_none() {
            progress.state = state;
            progress.ended = Some(Instant::now());
            progress.error = error;
        }
    }
}

impl Drop for QueryRegistration {
    fn drop(&mut self) {
        // Nothing has ended it before: its client has lost interest.
        self.end(QueryState::Cancelled, None);
        self.queries.forget(&self.entry);
    }
}

/// The error of a query that someone cancelled.
pub(crate) fn cancelled() -> QueryError {
    QueryError::new(ErrorKind::Cancelled, "the query was cancelled")
}
