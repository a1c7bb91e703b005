//! An engine with the tables of `support`.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use coscan_server::config::Limits;
use coscan_server::engine::{Engine, Proof, Session, Sql};
use coscan_server::queries::{QueryError, RunningQuery};
use datafusion::common::ParamValues;
use futures::TryStreamExt;

use crate::support::{PASSWORD, Tables};

/// Takes hours, and gives rows at once.
pub(crate) const LONG: &str = "SELECT a.id FROM numbers a, numbers b, numbers c";

pub(crate) struct Fixture {
    _tables: Tables,
    pub(crate) engine: Arc<Engine>,
}

impl Fixture {
    pub(crate) async fn new(limits: Limits) -> Self {
        let tables = Tables::new();
        let engine = tables.engine(&limits).await;
        Self { _tables: tables, engine }
    }

    pub(crate) async fn login(&self, name: &str) -> Session {
        self.engine.login(name, Proof::Password(PASSWORD)).await.unwrap()
    }

    pub(crate) async fn start(
        &self,
        session: &Session,
        sql: &str,
    ) -> Result<RunningQuery, QueryError> {
        let planned = self.engine.plan(session, Sql::Text(sql)).await?;
        self.engine.run(session, planned, ParamValues::List(Vec::new())).await
    }

    pub(crate) async fn rows(
        &self,
        session: &Session,
        sql: &str,
    ) -> Result<Vec<RecordBatch>, QueryError> {
        self.start(session, sql).await?.try_collect().await
    }

    pub(crate) async fn number(&self, session: &Session, sql: &str) -> i64 {
        let batches = self.rows(session, sql).await.unwrap();
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
        batch.column(0).as_primitive::<Int64Type>().value(0)
    }

    pub(crate) async fn error(&self, session: &Session, sql: &str) -> QueryError {
        match self.rows(session, sql).await {
            Ok(batches) => panic!("{sql} succeeded: {batches:?}"),
            Err(error) => error,
        }
    }
}
