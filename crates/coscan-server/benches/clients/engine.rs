//! A server that answers as an engine of the workloads, over connections of a client library.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use coscan_bench::runner::{Engine, EngineError, IoCount, Read};
use coscan_server::Server;
use coscan_storage::stores::StoreMetrics;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// The clients of a server.
pub(crate) struct Clients {
    name: String,
    metrics: Arc<StoreMetrics>,
    /// Connections that no query uses.
    idle: Mutex<Vec<Client>>,
}

impl Clients {
    /// So many connections, each with these settings.
    pub(crate) async fn connect(
        name: &str,
        server: &Server,
        metrics: Arc<StoreMetrics>,
        count: usize,
        settings: &str,
    ) -> Result<Self, EngineError> {
        let at = server.postgres.ok_or("the server listens for PostgreSQL clients")?;
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
        let messages = client.simple_query(sql).await?;
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
