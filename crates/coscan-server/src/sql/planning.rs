//! Parses and plans statements on threads that serve no connections and run no queries. Some statements take long and
//! cannot be interrupted everywhere. Work that does not end in time keeps its thread and its slot until it does. Other
//! statements get new threads.

use std::future::Future;
use std::sync::Arc;

use tokio::time::Instant;

use crate::queries::{Deadline, QueryError, cancelled};
use crate::sql::errors::panicked;
use crate::sql::{Session, SqlService};

impl SqlService {
    /// Does some work for a statement, within the user's share of the planning threads.
    /// Meanwhile the query is listed in `system.queries`. Dropping the future cancels it.
    ///
    /// # Errors
    /// The error of the work. Also if it takes too long, is cancelled, or must not start.
    pub(super) async fn on_planning_thread<T: Send + 'static>(
        &self,
        session: &Session,
        text: &str,
        work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let registration = self.queries.register_planning(&session.user, text);
        registration.admit_planning(session.settings().weight(&session.user)).await?;
        let planning = Instant::now().checked_add(self.limits.planning_time_max);
        let deadline = match self.deadline(session) {
            own if own.at.is_some_and(|at| planning.is_none_or(|planning| at < planning)) => own,
            _ => Deadline { at: planning, setting: "planning_time_max" },
        };
        let user: Arc<str> = session.user.name.as_str().into();
        let (threads, held) = (self.light_threads.handle(), registration.work());
        let planned = self.turns.plan(&user);
        let handle = threads.clone();
        let working = threads.spawn_blocking(move || {
            let result = handle.block_on(work);
            drop((planned, held));
            result
        });
        let cancel = registration.cancel_token().clone();
        let result = tokio::select! {
            biased;
            result = working => Ok(result.unwrap_or_else(|_| Err(panicked("planning")))),
            () = cancel.cancelled() => Err(cancelled()),
            error = deadline.passed() => Err(error),
        };
        match &result {
            Ok(_) => registration.finish(),
            Err(error) => {
                registration.fail(error);
                cancel.cancel(); // For what is left of the work.
            }
        }
        result?
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc;

    use coscan_runtime::{BufferManager, Options};

    use super::*;
    use crate::config::Limits;
    use crate::queries::{ErrorKind, QueryState};
    use crate::sql::{Proof, Sql};
    use crate::users::{Users, Verifier};

    #[tokio::test]
    async fn planning_that_does_not_end_is_left_and_keeps_no_one_else_from_planning() {
        let verifier = Verifier::of_password("x").unwrap();
        let entry = |name| format!("[users.{name}]\nverifier = '{verifier}'\n");
        let users = Arc::new(Users::parse(&(entry("ann") + &entry("bob"))).unwrap());
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let limits = Limits { queries_waiting: 0, ..Limits::default() };
        let service = Arc::new(SqlService::new(&manager, users, &limits).unwrap());
        let mut sessions = Vec::new();
        for name in ["ann", "bob"] {
            sessions.push(Arc::new(service.login(name, Proof::Password("x")).await.unwrap()));
        }
        let [ann, bob] = &sessions[..] else { panic!("two users") };
        // Ann's statements occupy all the threads that she may have.
        let (mut done, mut left) = (Vec::new(), 0);
        loop {
            let (end, blocked) = mpsc::channel::<()>();
            let (busy, is_busy) = tokio::sync::oneshot::channel();
            let (service, ann) = (Arc::clone(&service), Arc::clone(ann));
            let planning = tokio::spawn(async move {
                let work = async move {
                    busy.send(()).ok();
                    blocked.recv().ok();
                    Ok(())
                };
                service.on_planning_thread(&ann, "SELECT 1", work).await
            });
            if is_busy.await.is_err() {
                let refused = planning.await.unwrap().unwrap_err();
                assert_eq!(refused.kind, ErrorKind::Busy);
                break;
            }
            planning.abort(); // As if the client had gone.
            planning.await.ok();
            done.push(end);
            left += 1;
        }
        let ending = service.queries().list();
        let ending = ending.iter().filter(|query| query.state == QueryState::Ending);
        assert_eq!(ending.count(), left);
        service.plan(bob, Sql::Text("SELECT 1")).await.unwrap();
        drop(done);
        service.queries().drained().await;
        service.plan(ann, Sql::Text("SELECT 1")).await.unwrap();
    }
}
