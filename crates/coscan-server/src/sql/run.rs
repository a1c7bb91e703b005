//! Runs plans and streams their results.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::Schema;
use datafusion::common::ParamValues;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use tokio::time::Instant;

use crate::queries::{Deadline, QueryError, RunningQuery, cancelled};
use crate::sql::errors::from_datafusion;
use crate::sql::fair_share::{Taker, Turns};
use crate::sql::light::is_light;
use crate::sql::placement::Placement;
use crate::sql::plan::{Planned, Work, result_schema};
use crate::sql::plan_parameters::value_bytes;
use crate::sql::query_task::{QueryContext, run_on};
use crate::sql::state::QueryEnvironment;
use crate::sql::write_statements::{check, execute};
use crate::sql::{Session, SqlService};
use crate::users::User;

impl SqlService {
    /// Runs a statement: waits for a slot, if it needs one, and starts. Time limits count from then on. Dropping the
    /// future or the result cancels the query.
    ///
    /// # Errors
    /// If the queue is full, the query is cancelled or takes too long before its first rows, parameters do not fit, or
    /// it cannot start.
    pub async fn run(
        &self,
        session: &Session,
        planned: Planned,
        parameters: ParamValues,
    ) -> Result<RunningQuery, QueryError> {
        if let Work::Session(statement) = &planned.work {
            let batches = statement.run(session).await?;
            return Ok(RunningQuery::ready(planned.schema, batches));
        }
        if planned.command.is_change() {
            session.check_writable()?;
        }
        let work = planned.work;
        let registration = self.queries.register(&session.user, &planned.sql);
        let weight = session.settings().weight(&session.user);
        let name: Arc<str> = session.user.name.as_str().into();
        let (place, turns) = if work.plan().is_some_and(is_light) {
            registration.start();
            // Light statements inspect the server while queries keep their threads busy.
            (None, Turns::new(usize::MAX))
        } else {
            registration.admit(weight).await?;
            let place = self.pools.join(&name);
            (Some(place), Arc::clone(&self.turns))
        };
        let threads = match &place {
            Some(place) => place.threads(),
            None => self.light_threads.handle(),
        };
        let taker = Taker { turns, user: name, weight };
        let deadline = self.deadline(session);
        let cancel = registration.cancel_token().clone();
        let (state, environment) =
            (self.state(session), self.query_environment(session, registration.id(), work.plan()));
        let placement = self.placement(session);
        let user = Arc::clone(&session.user);
        let plan_memory = self.reserve_for_plan(&planned.sql);
        let plan_memory = plan_memory.inspect_err(|error| registration.fail(error))?;
        let memory = &environment.runtime.memory_pool;
        let query =
            QueryContext::new(&registration, &self.allocations, memory, taker, place, plan_memory);
        let started = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            error = deadline.passed() => Err(error),
            started = run_on(&threads, query, start(state, environment, work, parameters, user, placement)) => started,
        };
        match started {
            Ok((schema, batches)) => {
                let schema = result_schema(&schema, planned.is_of_catalog);
                Ok(RunningQuery::start(registration, schema, batches, deadline))
            }
            Err(error) => {
                registration.fail(&error);
                Err(error)
            }
        }
    }

    /// The time by which a query that starts now must have ended.
    pub(super) fn deadline(&self, session: &Session) -> Deadline {
        let limits: [(Option<Duration>, &'static str); 2] = [
            (self.limits.query_time_max, "query_time_max"),
            (session.settings().statement_timeout(), "statement_timeout"),
        ];
        let limits = limits.into_iter().filter_map(|(time, setting)| Some((time?, setting)));
        match limits.min() {
            Some((time, setting)) => Deadline { at: Instant::now().checked_add(time), setting },
            None => Deadline { at: None, setting: "" },
        }
    }
}

async fn start(
    state: SessionState,
    environment: QueryEnvironment,
    work: Work,
    parameters: ParamValues,
    user: Arc<User>,
    placement: Placement,
) -> Result<SendableRecordBatchStream, QueryError> {
    let none = || Box::pin(EmptyRecordBatchStream::new(Arc::new(Schema::empty())));
    let plan = match work {
        Work::Query(plan) => Arc::unwrap_or_clone(plan),
        Work::Tables(statement) => {
            let state = SessionStateBuilder::new_from_existing(state);
            let state = state.with_runtime_env(environment.runtime).build();
            return execute(state, *statement).await.map(|()| none() as _);
        }
        Work::Session(_) => return Ok(none()),
    };
    value_bytes(&plan, &parameters)?;
    let plan = plan.replace_params_with_values(&parameters).map_err(from_datafusion)?;
    check(&plan, &user)?;
    placement.execute(&state, &environment, plan).await.map_err(from_datafusion)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;

    use coscan_runtime::{BufferManager, Options};
    use futures::{TryStreamExt, poll};
    use tokio::runtime::Handle;

    use super::*;
    use crate::config::Limits;
    use crate::sql::query_threads::PoolMember;
    use crate::sql::{Proof, Sql};
    use crate::users::Users;

    /// A test that takes longer hangs.
    const HANG: Duration = Duration::from_secs(120);

    #[tokio::test]
    async fn system_tables_are_read_while_queries_keep_all_their_threads_busy() {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let users = Arc::new(Users::anyone());
        let limits = Limits { queries_running: 1, queries_waiting: 0, ..Limits::default() };
        let service = SqlService::new(&manager, users, &limits).unwrap();
        let session = service.login("ann", Proof::None).await.unwrap();
        let users = (0..10).map(|user| Arc::from(user.to_string()));
        let places: Vec<_> = users.map(|user| service.pools.join(&user)).collect();
        let keep_busy = |threads: Handle| {
            let (done, blocked) = std::sync::mpsc::channel::<()>();
            threads.spawn(async move { blocked.recv().ok() });
            done
        };
        let threads = places.iter().map(PoolMember::threads);
        let threads =
            threads.flat_map(|threads| vec![threads.clone(); threads.metrics().num_workers()]);
        let busy: Vec<_> = threads.map(keep_busy).collect();
        let other = service.queries.register(&session.user, "takes the only slot");
        other.admit(1).await.unwrap();
        for sql in [
            "SELECT count(*), min(state) FROM system.queries WHERE state = 'running'",
            "SELECT DISTINCT name FROM system.pool ORDER BY name LIMIT 1",
            "SELECT coscan_cancel(1000)",
        ] {
            let planned = service.plan(&session, Sql::Text(sql)).await.unwrap();
            let answered = async {
                let running = service.run(&session, planned, ParamValues::List(Vec::new())).await?;
                running.try_collect::<Vec<_>>().await
            };
            let batches = tokio::time::timeout(HANG, answered).await.unwrap().unwrap();
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1, "{sql}");
        }
        drop(busy);
    }

    #[tokio::test]
    async fn statements_that_need_no_slot_keep_the_threads_of_connections_free() {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let users = Arc::new(Users::anyone());
        let service = SqlService::new(&manager, users, &Limits::default()).unwrap();
        let session = service.login("ann", Proof::None).await.unwrap();
        let threads = service.light_threads.handle();
        let mut busy = Vec::new();
        for _ in 0..threads.metrics().num_workers() {
            let (done, blocked) = std::sync::mpsc::channel::<()>();
            let (started, is_started) = tokio::sync::oneshot::channel();
            threads.spawn(async move {
                started.send(()).ok();
                blocked.recv().ok();
            });
            is_started.await.unwrap();
            busy.push(done);
        }
        let planned = service.plan(&session, Sql::Text("SELECT * FROM system.pool")).await.unwrap();
        let mut running = pin!(service.run(&session, planned, ParamValues::List(Vec::new())));
        for _ in 0..1000 {
            assert!(poll!(&mut running).is_pending());
            tokio::task::yield_now().await;
        }
        drop(busy);
        let batches = running.await.unwrap().try_collect::<Vec<_>>();
        assert!(!tokio::time::timeout(HANG, batches).await.unwrap().unwrap().is_empty());
    }
}
