//! The SQL service with the tables of `support`.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{sort_to_indices, take_record_batch};
use arrow::datatypes::Int64Type;
use coscan_server::config::Limits;
use coscan_server::queries::{QueryError, RunningQuery};
use coscan_server::sql::{Proof, Session, Sql, SqlService, SqlServiceError};
use datafusion::common::ParamValues;
use futures::TryStreamExt;

use crate::support::{PASSWORD, Tables};

/// A query that takes hours, and returns rows at once.
pub(crate) const LONG: &str = "SELECT a.id FROM numbers a, numbers b, numbers c";

pub(crate) struct Fixture {
    tables: Tables,
    pub(crate) service: Arc<SqlService>,
}

impl Fixture {
    pub(crate) async fn new(limits: Limits) -> Self {
        let tables = Tables::new();
        let service = tables.service(&limits).await;
        Self { tables, service }
    }

    /// Creates a fixture without limits, and a session of Ann.
    pub(crate) async fn with_ann() -> (Self, Session) {
        let fixture = Self::new(Limits::default()).await;
        let ann = fixture.login("ann").await;
        (fixture, ann)
    }

    /// Creates a fixture with `numbers_by_word.parquet`, a replica of `numbers`.
    pub(crate) async fn with_replica() -> Self {
        let mut fixture = Self::new(Limits::default()).await;
        let path = fixture.tables.write("numbers_by_word", |rows| {
            let indices = sort_to_indices(rows.column(1), None, None).unwrap();
            take_record_batch(&rows, &indices).unwrap()
        });
        fixture.tables.locations.get_mut("numbers").unwrap().replicas.push(path);
        fixture.service.open_tables(&fixture.tables.locations).await.unwrap();
        fixture
    }

    /// Opens the tables with another replica of `numbers`.
    pub(crate) async fn open_with(&self, replica: String) -> Result<(), SqlServiceError> {
        let mut locations = self.tables.locations.clone();
        locations.get_mut("numbers").unwrap().replicas = vec![replica];
        self.service.open_tables(&locations).await
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) async fn login(&self, name: &str) -> Session {
        self.service.login(name, Proof::Password(PASSWORD)).await.unwrap()
    }

    pub(crate) async fn start(
        &self,
        session: &Session,
        sql: &str,
    ) -> Result<RunningQuery, QueryError> {
        let planned = self.service.plan(session, Sql::Text(sql)).await?;
        self.service.run(session, planned, ParamValues::List(Vec::new())).await
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
