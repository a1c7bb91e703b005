//! A server as an engine of the workloads, queried over connections of a client library.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use coscan_storage::stores::StoreMetrics;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::runner::{Engine, EngineError, IoCount, Read};

/// The clients of a server, over the PostgreSQL protocol.
pub struct Clients {
    name: String,
    metrics: Arc<StoreMetrics>,
    /// The connections that no query uses.
    idle: Mutex<Vec<Client>>,
}

impl Clients {
    /// Opens `count` connections to the server at an address, each with these settings. `metrics` counts the server's
    /// reads.
    ///
    /// # Errors
    /// If the server accepts no connection, or a setting is invalid.
    pub async fn connect(
        name: &str,
        at: SocketAddr,
        metrics: Arc<StoreMetrics>,
        count: usize,
        settings: &str,
    ) -> Result<Self, EngineError> {
        let mut idle = Vec::new();
        for _ in 0..count {
            let mut config = tokio_postgres::Config::new();
            config.host(at.ip().to_string()).port(at.port()).user("bench").dbname("coscan");
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute(settings).await?;
            idle.push(client);
        }
        Ok(Self { name: name.to_owned(), metrics, idle: Mutex::new(idle) })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, sql: &str) -> Result<Vec<RecordBatch>, EngineError> {
        let client = self.idle().pop().ok_or("more queries at once than connections")?;
        let messages =
            client.simple_query(sql).await.map_err(|error| match error.as_db_error() {
                Some(answer) => EngineError::from(answer.message()),
                None => error.into(),
            })?;
        self.idle().push(client);
        rows(&messages)
    }
}

/// The rows as text.
fn rows(messages: &[SimpleQueryMessage]) -> Result<Vec<RecordBatch>, EngineError> {
    let rows: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })
        .collect();
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let columns = first.columns().iter().enumerate().map(|(index, column)| {
        let values: StringArray = rows.iter().map(|row| row.get(index)).collect();
        (column.name().to_owned(), Arc::new(values) as ArrayRef)
    });
    Ok(vec![RecordBatch::try_from_iter(columns)?])
}

impl Engine for Clients {
    fn name(&self) -> &str {
        &self.name
    }

    fn query<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<RecordBatch>, EngineError>> {
        self.answer(sql).boxed()
    }

    fn io(&self) -> IoCount {
        let counts = self.metrics.snapshot();
        IoCount { bytes: counts.bytes, requests: counts.requests }
    }

    fn take_reads(&self) -> Vec<Read> {
        Vec::new()
    }
}
