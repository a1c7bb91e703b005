//! The state of the server as tables: `system.queries`, `system.scans`, `system.pool`, `system.ring_nodes`,
//! `system.ring_pages`, `system.workers`.

mod cancel;
mod pool;
mod queries;
mod ring_nodes;
mod ring_pages;
mod scans;
mod workers;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use coscan_runtime::BufferManager;
use coscan_transport::Transport;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{SchemaProvider, Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use crate::known_workers::{KnownWorker, KnownWorkers};
use crate::queries::Queries;
use crate::users::User;

pub(crate) use cancel::cancel_function;

/// The system tables as a user sees them.
#[derive(Clone, Debug)]
pub(crate) struct SystemTables {
    pub(crate) user: Arc<User>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) manager: BufferManager,
    pub(crate) transport: Option<Arc<Transport>>,
    pub(crate) workers: KnownWorkers,
}

impl SystemTables {
    /// The connections to other servers, if there are any and the user may see the addresses and reads of other
    /// servers.
    fn seen_transport(&self) -> Option<&Arc<Transport>> {
        self.transport.as_ref().filter(|_| self.user.admin)
    }

    /// The workers that this server divides queries among, if the user may see the addresses of other servers.
    fn seen_workers(&self) -> Vec<KnownWorker> {
        if self.user.admin { self.workers.all() } else { Vec::new() }
    }
}

/// The names of the tables.
const TABLES: [&str; 6] = ["pool", "queries", "ring_nodes", "ring_pages", "scans", "workers"];

#[async_trait]
impl SchemaProvider for SystemTables {
    fn table_names(&self) -> Vec<String> {
        TABLES.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let (schema, rows): (_, fn(&SystemTables) -> Result<RecordBatch>) = match name {
            "queries" => (queries::schema(), queries::rows),
            "scans" => (scans::schema(), scans::rows),
            "pool" => (pool::schema(), pool::rows),
            "ring_nodes" => (ring_nodes::schema(), ring_nodes::rows),
            "workers" => (workers::schema(), workers::rows),
            "ring_pages" => return Ok(Some(Arc::new(ring_pages::table(self)?))),
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(SystemTable { tables: self.clone(), schema, rows })))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.contains(&name)
    }
}

/// A table whose rows are created when it is read.
#[derive(Debug)]
struct SystemTable {
    tables: SystemTables,
    schema: SchemaRef,
    rows: fn(&SystemTables) -> Result<RecordBatch>,
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = (self.rows)(&self.tables)?;
        let schema = Arc::clone(&self.schema);
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows]], schema, projection.cloned())?)
    }
}

/// Whether a table is a system table.
pub(crate) fn is_system_table(table: &dyn TableProvider) -> bool {
    table.downcast_ref::<SystemTable>().is_some()
}
