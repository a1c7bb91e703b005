//! The queries of the server: waiting, running and recent ones.
//!
//! A query is registered under a `query_id` and gets a `registration`. `admission` limits how many run at once; those
//! that wait do so in a `fair_queue`.
//! [`RunningQuery`] (`running`) is the stream of its result. The most recent queries are kept, and `totals` of all.

mod admission;
mod error;
mod fair_queue;
mod query_id;
mod registration;
mod running;
mod totals;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::Notify;

use crate::config::Limits;
use crate::users::User;
use admission::{Admission, Bounds, Slot};
pub use error::{ErrorKind, QueryError};
pub use query_id::QueryId;
pub(crate) use registration::{QueryRegistration, Work, cancelled};
pub use registration::{QueryReport, QueryState};
pub(crate) use running::Deadline;
pub use running::RunningQuery;
pub use totals::Totals;

/// How much of a query's text is kept, in bytes.
pub const SQL_BYTES_SHOWN: usize = 4096;

/// Ended queries that are kept.
const HISTORY: usize = 1000;

/// Statements that are planned at once, for each core. A user has at most half of these places.
const PLANNING_PER_CORE: usize = 2;

/// One of so many slots is not for the user who has most.
const OF_OTHERS: usize = 4;

/// All queries of a server.
#[derive(Debug)]
pub struct Queries {
    /// For queries that run.
    admission: Admission,
    /// For statements that are planned.
    planning: Admission,
    next_id: AtomicU64,
    current: Mutex<BTreeMap<QueryId, Arc<registration::Entry>>>,
    history: Mutex<VecDeque<QueryReport>>,
    totals: Totals,
    /// Notified whenever a query has ended.
    ended: Notify,
}

/// The outcome of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The query ends now.
    Yes,
    /// No such query runs, or it is another user's.
    NoSuchQuery,
}

impl Queries {
    /// None yet. If `users_are_known`, which they are if they need passwords, some slots are kept for others than the
    /// one with most queries.
    #[must_use]
    pub fn new(limits: &Limits, users_are_known: bool) -> Arc<Self> {
        let Limits { queries_running, queries_waiting, wait_max, .. } = *limits;
        let planning = PLANNING_PER_CORE * available_parallelism().map_or(1, usize::from);
        let bounds = |running_max, of_user_max, texts| Bounds {
            running_max,
            of_user_max: if users_are_known { of_user_max } else { running_max },
            waiting_max: queries_waiting,
            wait_max,
            texts,
        };
        let of_user_max = queries_running - queries_running / OF_OTHERS;
        let queries = ("queries run", ", or raise `queries_running` or `queries_waiting`");
        let plans = ("statements are planned", "");
        Arc::new(Self {
            admission: Admission::new(bounds(queries_running, of_user_max, queries)),
            planning: Admission::new(bounds(planning, planning / 2, plans)),
            next_id: AtomicU64::new(1),
            current: Mutex::default(),
            history: Mutex::default(),
            totals: Totals::new(),
            ended: Notify::new(),
        })
    }

    /// Registers a query, which does not run yet.
    pub(crate) fn register(self: &Arc<Self>, user: &Arc<User>, sql: &str) -> QueryRegistration {
        self.register_as(user, sql, false)
    }

    /// Registers a statement that is to be parsed or planned.
    pub(crate) fn register_planning(
        self: &Arc<Self>,
        user: &Arc<User>,
        sql: &str,
    ) -> QueryRegistration {
        self.register_as(user, sql, true)
    }

    fn register_as(
        self: &Arc<Self>,
        user: &Arc<User>,
        sql: &str,
        is_planning: bool,
    ) -> QueryRegistration {
        let id = QueryId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let entry = Arc::new(registration::Entry::new(id, &user.name, cut(sql), is_planning));
        self.current().insert(id, Arc::clone(&entry));
        QueryRegistration::new(Arc::clone(self), entry, user)
    }

    /// Cancels a query of this user; an administrator may cancel any.
    pub fn cancel(&self, id: QueryId, by: &User) -> Cancelled {
        let entry = self.current().get(&id).cloned();
        match entry.filter(|entry| by.admin || entry.user == by.name) {
            Some(entry) => {
                entry.cancel.cancel();
                Cancelled::Yes
            }
            None => Cancelled::NoSuchQuery,
        }
    }

    /// A query that waits or runs.
    #[must_use]
    pub fn find(&self, id: QueryId) -> Option<QueryReport> {
        let entry = self.current().get(&id).cloned();
        entry.map(|entry| entry.current_report())
    }

    /// All queries that wait and run, and those that ended last, by number.
    #[must_use]
    pub fn list(&self) -> Vec<QueryReport> {
        // In this order: one that ends in between is in both, and not in neither.
        let current: Vec<_> = self.current().values().cloned().collect();
        let mut reports: Vec<_> = self.history().iter().cloned().collect();
        reports.extend(current.iter().map(|entry| entry.current_report()));
        reports.sort_by_key(|report| report.id); // Stable: what has ended comes first.
        reports.dedup_by_key(|report| report.id);
        reports
    }

    /// Those of [`list`](Self::list) that a user may see: all for administrators, else the user's own.
    #[must_use]
    pub fn seen_by(&self, user: &User) -> Vec<QueryReport> {
        let mut reports = self.list();
        reports.retain(|report| user.admin || report.user == user.name);
        reports
    }

    /// Queries that run, and that wait.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let current = self.current();
        let (mut running, mut waiting) = (0, 0);
        for entry in current.values() {
            match entry.state() {
                QueryState::Waiting => waiting += 1,
                QueryState::Planning => {}
                _ => running += 1,
            }
        }
        (running, waiting)
    }

    /// Totals of all queries that have ended.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Admits no more queries. Those that wait are refused; those that run go on.
    pub fn close(&self) {
        self.planning.close();
        self.admission.close();
    }

    /// Cancels all queries.
    pub fn cancel_all(&self) {
        let entries: Vec<_> = self.current().values().cloned().collect();
        for entry in entries {
            entry.cancel.cancel();
        }
    }

    /// Completes once no query runs or waits.
    pub async fn drained(&self) {
        loop {
            let ended = self.ended.notified();
            if self.current().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// A query has ended.
    fn forget(&self, entry: &registration::Entry) {
        if entry.is_remembered() {
            let report = entry.report();
            self.totals.count(&report);
            totals::log_end(&report);
            let mut history = self.history();
            if history.len() == HISTORY {
                history.pop_front();
            }
            history.push_back(report);
        }
        self.current().remove(&entry.id);
        self.ended.notify_waiters();
    }

    fn current(&self) -> MutexGuard<'_, BTreeMap<QueryId, Arc<registration::Entry>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> MutexGuard<'_, VecDeque<QueryReport>> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of a text.
fn cut(sql: &str) -> String {
    let end = sql.floor_char_boundary(SQL_BYTES_SHOWN);
    if end == sql.len() { sql.to_owned() } else { format!("{}…", &sql[..end]) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::users::{Users, Verifier};

    fn users() -> Users {
        let verifier = Verifier::of_password("x").unwrap();
        let entry =
            |name, admin| format!("[users.{name}]\nverifier = '{verifier}'\nadmin = {admin}\n");
        Users::parse(&(entry("ann", false) + &entry("bob", false) + &entry("root", true))).unwrap()
    }

    #[tokio::test]
    async fn only_the_owner_and_administrators_see_and_cancel_a_query() {
        let users = users();
        let [ann, bob, root] = ["ann", "bob", "root"].map(|name| users.find(name).unwrap());
        let queries = Queries::new(&Limits::default(), false);
        let registration = queries.register(&ann, "SELECT 1");
        registration.admit(1).await.unwrap();
        assert_eq!(queries.seen_by(&bob).len(), 0);
        assert_eq!(queries.cancel(registration.id(), &bob), Cancelled::NoSuchQuery);
        assert!(!registration.cancel_token().is_cancelled());
        assert_eq!(queries.seen_by(&root).len(), 1);
        assert_eq!(queries.cancel(registration.id(), &ann), Cancelled::Yes);
        assert!(registration.cancel_token().is_cancelled());
        drop(registration);
        let [report] = &queries.seen_by(&ann)[..] else { panic!("one query") };
        assert_eq!(report.state, QueryState::Cancelled);
        assert_eq!(queries.cancel(report.id, &root), Cancelled::NoSuchQuery);
        queries.drained().await;
    }

    #[test]
    fn the_history_has_a_bound() {
        let ann = users().find("ann").unwrap();
        let queries = Queries::new(&Limits::default(), false);
        for _ in 0..HISTORY + 5 {
            queries.register(&ann, &"x".repeat(10_000)).finish();
        }
        let error = QueryError::new(ErrorKind::Invalid, "x".repeat(10_000));
        queries.register(&ann, "SELECT 1").fail(&error);
        let reports = queries.list();
        assert_eq!(reports.len(), HISTORY);
        assert_eq!(reports[0].id, QueryId(7));
        assert_eq!(reports[0].state, QueryState::Done);
        assert!(reports[0].sql.len() < SQL_BYTES_SHOWN + 10);
        let error = reports[HISTORY - 1].error.as_ref().unwrap();
        assert!(error.len() < SQL_BYTES_SHOWN + 10);
    }
}
