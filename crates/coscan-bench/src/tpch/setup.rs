//! The setup of benchmarks that run TPC-H: tables, device, memory; and engines with it.

use std::path::PathBuf;
use std::sync::Arc;

use coscan_storage::table::FileOptions;

use crate::engines::{Device, EngineKind, Tables, manager_options};
use crate::runner::{Engine, EngineError};

/// The tables of TPC-H, the device, and how coscan reads from it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The name and the file of each table.
    pub tables: Vec<(&'static str, PathBuf)>,
    /// The TPC-H scale factor of all tables.
    pub scale_factor: f64,
    /// The device that they are read from.
    pub device: Device,
    /// coscan's pool, in bytes.
    pub pool_bytes: u64,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// coscan's memory for joins, aggregates and sorts, in bytes, in addition to both. Plain DataFusion has no limit.
    pub operator_bytes: u64,
    /// The options of coscan's tables: the size of chunks and the layout of pages.
    pub table_options: FileOptions,
    /// Whether each engine answers a query of each kind before it is measured.
    pub warm: bool,
}

impl Setup {
    /// Creates an engine. `one_of_each` has a query of each kind, to warm it if that is wanted.
    pub(crate) async fn engine(
        &self,
        kind: EngineKind,
        one_of_each: &[String],
    ) -> Result<Arc<dyn Engine>, EngineError> {
        let location = |(name, path): &(&'static str, PathBuf)| (*name, path.display().to_string());
        let locations = self.tables.iter().map(location).collect();
        let tables = Tables { locations, device: &self.device, options: self.table_options };
        let options = manager_options(self.pool_bytes, self.decode_bytes, self.operator_bytes);
        let engine = tables.engine(kind, options).await?;
        for sql in one_of_each.iter().filter(|_| self.warm) {
            engine.query(sql).await?;
        }
        Ok(Arc::new(engine))
    }
}
