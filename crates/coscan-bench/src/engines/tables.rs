//! An engine on several tables of files.

use std::path::PathBuf;

use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::FileOptions;

use super::{Device, EngineKind, Source, SqlEngine};
use crate::runner::EngineError;

/// Tables by name, and the settings with which all engines read them.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    /// The name and the file of each table.
    pub(crate) files: &'a [(&'static str, PathBuf)],
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
        let Some(((name, path), others)) = self.files.split_first() else {
            return Err("there are no tables".into());
        };
        let source = Source { location: path.display().to_string(), device: self.device.clone() };
        let engine = match kind {
            EngineKind::DataFusion => SqlEngine::datafusion(&source, name).await?,
            EngineKind::Coscan(policy) => {
                let manager = BufferManager::new(options.policy(policy))?;
                SqlEngine::coscan(&source, name, manager, self.options).await?
            }
        };
        for (name, path) in others {
            engine.add_table(name, &path.display().to_string()).await?;
        }
        Ok(engine)
    }
}
