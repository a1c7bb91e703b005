//! The queries of the server: waiting, running and recent ones.
//!
//! A query is registered under a `query_id` and gets a `registration`. `admission` limits how many run at the same
//! time. Waiting queries are in a `fair_queue`. [`RunningQuery`] (`running`) is the stream of the result. The most
//! recent queries are kept, and `totals` of all.

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

/// The length of the kept start of a query's text, in bytes.
pub const SQL_BYTES_SHOWN: usize = 4096;

/// The number of ended queries that are kept.
const HISTORY: usize = 1000;

/// The number of statements that are planned at the same time, for each core. A user has at most half of these places.
const PLANNING_PER_CORE: usize = 2;

/// One slot in this many is not available to the user who has most.
const OF_OTHERS: usize = 4;

/// All queries of a server.
#[derive(Debug)]
pub struct Queries {
    /// Admits queries that run.
    admission: Admission,
    /// Admits statements that are planned.
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
    /// No such query runs, or it belongs to another user.
    NoSuchQuery,
}

impl Queries {
    /// Creates the registry without queries. If `users_are_known`, which is the case if they need passwords, some slots
    /// are kept for users other than the one with most queries.
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

    /// Cancels a query of this user. An administrator may cancel any query.
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

    /// The query with this number, if it waits or runs.
    #[must_use]
    pub fn find(&self, id: QueryId) -> Option<QueryReport> {
        let entry = self.current().get(&id).cloned();
        entry.map(|entry| entry.current_report())
    }

    /// All waiting and running queries, and the last ended ones, by number.
    #[must_use]
    pub fn list(&self) -> Vec<QueryReport> {
        // In this order, a query that ends in between is in both lists, instead of none.
        let current: Vec<_> = self.current().values().cloned().collect();
        let mut reports: Vec<_> = self.history().iter().cloned().collect();
        reports.extend(current.iter().map(|entry| entry.current_report()));
        reports.sort_by_key(|report| report.id); // Stable: what has ended comes first.
        reports.dedup_by_key(|report| report.id);
        reports
    }

    /// The queries of [`list`](Self::list) that a user may see. Administrators see all, other users their own.
    #[must_use]
    pub fn seen_by(&self, user: &User) -> Vec<QueryReport> {
        let mut reports = self.list();
        reports.retain(|report| user.admin || report.user == user.name);
        reports
    }

    /// The numbers of running and of waiting queries.
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

    /// Admits no more queries. Waiting ones are refused, and running ones continue.
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

    /// Moves a query that has ended to the history.
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
