//! An engine on a directory to which files are added.

use coscan_runtime::BufferManager;
use coscan_storage::table::FileOptions;

use super::{Opened, Source, SqlEngine};
use crate::runner::EngineError;

impl SqlEngine {
    /// Creates a session, of coscan if there is a manager, with the directory as a table, as `CREATE EXTERNAL TABLE` makes it:
    /// names of directories such as `day=2024-01-01` are columns.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub(crate) async fn of_directory(
        source: &Source,
        table: &str,
        manager: Option<BufferManager>,
        table_options: FileOptions,
    ) -> Result<Self, EngineError> {
        let opened = Opened::new(source).await?;
        let engine = match manager {
            Some(manager) => opened.with_coscan(manager, table_options)?.0,
            None => opened.engine,
        };
        let location = source.location.replace('\'', "''");
        let create =
            format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{location}/'");
        engine.context.sql(&create).await?;
        Ok(engine)
    }

    /// Lets queries from now on see the files that a table of [`of_directory`](Self::of_directory) has now. coscan lists them at
    /// once; plain DataFusion forgets its list, so that the next query makes one.
    ///
    /// # Errors
    /// If the files cannot be listed or opened.
    pub(crate) async fn refresh(&self, table: &str) -> Result<(), EngineError> {
        Ok(coscan_datafusion::refresh(&self.context, table).await?)
    }
}
