//! The result of a running query.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{SchemaRef, UInt64Type};
use futures::stream::BoxStream;
use futures::task::AtomicWaker;
use futures::{Stream, StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::query_id::QueryId;
use crate::queries::registration::{QueryRegistration, cancelled};

/// The batches of a query. Dropping it cancels the query.
///
/// The query may be cancelled, or exceed a time limit. It then ends even if nobody polls this stream, and the next item
/// of the stream is the error. Its slot and memory are free once the operators that work for it have noticed, which
/// they do between batches.
pub struct RunningQuery {
    /// The number of the query. `None` for statements such as SET, which are not queries.
    pub id: Option<QueryId>,
    /// The columns of the batches.
    pub schema: SchemaRef,
    shared: Arc<Shared>,
    /// Ends the task that watches the query.
    _watched: Option<DropGuard>,
}

struct Shared {
    /// `None` once the query has ended.
    active: Mutex<Option<Active>>,
    /// Set before `error` is used.
    is_stopped: AtomicBool,
    /// The reason why the query was stopped. It is returned once.
    error: Mutex<Option<QueryError>>,
    waker: AtomicWaker,
}

/// The resources that a query holds.
struct Active {
    batches: BoxStream<'static, Result<RecordBatch, QueryError>>,
    /// Comes after the batches, since the slot is free once they and all work for them are dropped.
    registration: Option<QueryRegistration>,
}

impl RunningQuery {
    /// Creates the complete result of a statement that needs no slot.
    #[must_use]
    pub(crate) fn ready(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let batches = stream::iter(batches).map(Ok).boxed();
        let shared = Shared::new(Active { batches, registration: None });
        Self { id: None, schema, shared, _watched: None }
    }

    /// The number of rows that a statement has changed, once it has ended.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) async fn changed_rows(mut self) -> Result<u64, QueryError> {
        let mut rows = 0;
        while let Some(batch) = self.next().await.transpose()? {
            let counts = batch.columns().first();
            let counts = counts.and_then(|counts| counts.as_primitive_opt::<UInt64Type>());
            rows += counts.into_iter().flat_map(|counts| counts.iter().flatten()).sum::<u64>();
        }
        Ok(rows)
    }

    /// Creates the result of an admitted query, which has to end before `deadline`.
    pub(crate) fn start(
        registration: QueryRegistration,
        schema: SchemaRef,
        batches: BoxStream<'static, Result<RecordBatch, QueryError>>,
        deadline: Deadline,
    ) -> Self {
        let (id, cancel) = (registration.id(), registration.cancel_token().clone());
        let shared = Shared::new(Active { batches, registration: Some(registration) });
        let watched = CancellationToken::new();
        let (watching, unwatched) = (Arc::clone(&shared), watched.clone());
        tokio::spawn(async move {
            let error = tokio::select! {
                () = unwatched.cancelled() => return,
                () = cancel.cancelled() => cancelled(),
                error = deadline.passed() => error,
            };
            watching.stop(error);
        });
        Self { id: Some(id), schema, shared, _watched: Some(watched.drop_guard()) }
    }
}

/// The time at which a query must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Option<Instant>,
    /// The setting that determines it, for the message.
    pub(crate) setting: &'static str,
}

impl Deadline {
    /// Completes with the error once the deadline has passed.
    pub(crate) async fn passed(self) -> QueryError {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => futures::future::pending().await,
        }
        let text = format!("the statement took longer than `{}` allows", self.setting);
        QueryError::new(ErrorKind::TimedOut, text)
    }
}

impl Shared {
    fn new(active: Active) -> Arc<Self> {
        Arc::new(Self {
            active: Mutex::new(Some(active)),
            is_stopped: AtomicBool::new(false),
            error: Mutex::default(),
            waker: AtomicWaker::new(),
        })
    }

    /// Ends the query with an error.
    fn stop(&self, error: QueryError) {
        *lock(&self.error) = Some(error);
        self.is_stopped.store(true, Ordering::SeqCst);
        // If the stream is being polled, the poller ends it afterwards.
        if let Ok(mut active) = self.active.try_lock() {
            self.end(active.take());
        }
        self.waker.wake();
    }

    /// Records the error and drops the resources of the query.
    fn end(&self, active: Option<Active>) {
        let error = lock(&self.error).clone();
        if let (Some(registration), Some(error)) =
            (active.as_ref().and_then(|a| a.registration.as_ref()), error)
        {
            registration.fail(&error);
        }
        drop(active);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        self.waker.register(context.waker());
        let mut active = lock(&self.active);
        let polled = match active.as_mut() {
            Some(query) if !self.is_stopped.load(Ordering::SeqCst) => {
                query.batches.poll_next_unpin(context)
            }
            _ => Poll::Ready(None),
        };
        match (&polled, active.as_ref().and_then(|active| active.registration.as_ref())) {
            (Poll::Ready(Some(Ok(batch))), Some(registration)) => {
                registration.count_rows(batch.num_rows() as u64);
            }
            (Poll::Ready(Some(Err(error))), Some(registration)) => registration.fail(error),
            (Poll::Ready(None), Some(registration)) if !self.is_stopped.load(Ordering::SeqCst) => {
                registration.finish();
            }
            _ => {}
        }
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            *active = None;
        }
        drop(active);
        if self.is_stopped.load(Ordering::SeqCst) {
            let stopped = lock(&self.active).take();
            self.end(stopped);
            return Poll::Ready(lock(&self.error).take().map(Err));
        }
        polled
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        let active = lock(&self.shared.active).take();
        drop(active); // Not under the lock.
    }
}

impl Stream for RunningQuery {
    type Item = Result<RecordBatch, QueryError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.poll(context)
    }
}

impl std::fmt::Debug for RunningQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningQuery").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use arrow::datatypes::Schema;

    use super::*;
    use crate::config::Limits;
    use crate::queries::{Queries, QueryState};
    use crate::users::Users;

    const NO_DEADLINE: Deadline = Deadline { at: None, setting: "" };

    /// A query that returns one batch, and then holds `held` and never ends.
    async fn endless(
        queries: &Arc<Queries>,
        held: Arc<()>,
        deadline: Deadline,
    ) -> (RunningQuery, Arc<crate::users::User>) {
        let user = Users::anyone().find("ann").unwrap();
        let registration = queries.register(&user, "SELECT");
        registration.admit(1).await.unwrap();
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = stream::once(async { Ok(batch) }).chain(stream::poll_fn(move |_| {
            let _ = &held;
            Poll::Pending
        }));
        (RunningQuery::start(registration, schema, batches.boxed(), deadline), user)
    }

    fn one_slot() -> Arc<Queries> {
        Queries::new(&Limits { queries_running: 1, ..Limits::default() }, false)
    }

    #[tokio::test]
    async fn a_cancelled_query_ends_with_an_error_and_frees_its_slot() {
        let (queries, held) = (one_slot(), Arc::new(()));
        let (mut query, user) = endless(&queries, Arc::clone(&held), NO_DEADLINE).await;
        query.next().await.unwrap().unwrap();
        queries.cancel(query.id.unwrap(), &user);
        let error = query.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(query.next().await.is_none());
        assert_eq!(Arc::strong_count(&held), 1);
        let _next = endless(&queries, held, NO_DEADLINE).await;
        assert_eq!(queries.list()[0].state, QueryState::Cancelled);
    }

    #[tokio::test]
    async fn a_cancelled_query_gives_back_what_it_holds_though_nobody_reads_it() {
        let (queries, held) = (one_slot(), Arc::new(()));
        let (query, user) = endless(&queries, Arc::clone(&held), NO_DEADLINE).await;
        queries.cancel(query.id.unwrap(), &user);
        queries.drained().await;
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn a_query_ends_at_its_deadline() {
        let (queries, held) = (one_slot(), Arc::new(()));
        let at = Some(Instant::now() + Duration::from_millis(1));
        let deadline = Deadline { at, setting: "query_time_max" };
        let (mut query, _) = endless(&queries, held, deadline).await;
        query.next().await.unwrap().unwrap();
        let error = query.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::TimedOut);
        assert!(error.text.contains("query_time_max"), "{error}");
        assert_eq!(queries.list()[0].state, QueryState::Failed);
    }

    #[tokio::test]
    async fn dropping_a_query_frees_its_slot_at_once() {
        let (queries, held) = (one_slot(), Arc::new(()));
        let (query, _) = endless(&queries, Arc::clone(&held), NO_DEADLINE).await;
        drop(query);
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(queries.counts(), (0, 0));
        assert_eq!(queries.list()[0].state, QueryState::Cancelled);
    }
}
