//! An engine on several tables of files.

use coscan_runtime::{BufferManager, ManagerReport, Options};
use coscan_sim::report::draw::numbers::bytes;
use coscan_storage::table::FileOptions;

use super::{Device, EngineKind, Source, SqlEngine};
use crate::runner::EngineError;

/// Tables of one store, and the settings with which all engines read them.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    /// The name and the location of each table.
    pub(crate) locations: Vec<(&'a str, String)>,
    pub(crate) device: &'a Device,
    pub(crate) options: FileOptions,
}

impl Tables<'_> {
    /// Creates an engine on the tables. `options` are those of coscan's manager, except for the policy.
    pub(crate) async fn engine(
        &self,
        kind: EngineKind,
        options: Options,
    ) -> Result<SqlEngine, EngineError> {
        let Some(policy) = kind.policy() else { return self.open(None).await };
        let engine = self.open(Some(BufferManager::new(options.policy(policy))?)).await?;
        Ok(engine.with_kind(kind))
    }

    /// Creates an engine on the tables: coscan with this manager, or plain DataFusion.
    pub(crate) async fn open(
        &self,
        manager: Option<BufferManager>,
    ) -> Result<SqlEngine, EngineError> {
        let Some(((name, location), others)) = self.locations.split_first() else {
            return Err("there are no tables".into());
        };
        let source = Source { location: location.clone(), device: self.device.clone() };
        let engine = match manager {
            None => SqlEngine::datafusion(&source, name).await?,
            Some(manager) => SqlEngine::coscan(&source, name, manager, self.options).await?,
        };
        for (name, location) in others {
            engine.add_table(name, location).await?;
        }
        Ok(engine)
    }
}

/// The words for a manager that held more than its budget. `None` if it never did.
pub(crate) fn memory_fault(manager: &ManagerReport) -> Option<String> {
    let (held, budget) = (manager.held_bytes_max, manager.memory_bytes);
    (held > budget).then(|| format!("held {} of {}", bytes(held), bytes(budget)))
}

/// The options of a manager with memory for operators beside the pool and decoded columns, all in bytes.
pub(crate) fn manager_options(pool_bytes: u64, decode_bytes: u64, operator_bytes: u64) -> Options {
    let usual = Options::with_pool_bytes(pool_bytes, decode_bytes);
    Options { memory_bytes: usual.memory_bytes.saturating_add(operator_bytes), ..usual }
}
