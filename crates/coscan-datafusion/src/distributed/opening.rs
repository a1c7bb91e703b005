//! Makes a scan of a task where it is executed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use coscan_storage::table::{ParquetFile, ParquetTable};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::datafusion_tables::file_list_cache::ListKey;
use crate::distributed::task::{ScanTask, TaskTable};
use crate::error::from_table;
use crate::execution::exec::SharedScanExec;
use crate::options::CoscanOptions;
use crate::tables::opener::{open_files, source_of};
use crate::tables::source::ScanSource;

impl CoscanOptions {
    /// The scan of a task. The files of its table are opened, unless a query has opened them already.
    ///
    /// # Errors
    /// If a file cannot be opened, or its version is not the one that the task names; if the table has other columns or
    /// chunks here than where the task was made.
    pub async fn open_task(
        &self,
        task: &ScanTask,
        config: &SessionConfig,
    ) -> Result<SharedScanExec> {
        let source = self.task_source(&task.table).await?;
        SharedScanExec::of_task(source, task, config)
    }

    /// The source of the table of a task, which is opened once for all tasks that read the same files.
    async fn task_source(&self, table: &TaskTable) -> Result<Arc<ScanSource>> {
        let key = key(table);
        let open = async || self.open_task_table(table).await.map(Some);
        let source = self.file_list_cache().find_or_open(key, open).await?;
        match source.filter(|source| is_of(source, table)) {
            Some(source) => Ok(source),
            // Another list has the same hash.
            None => Ok(Arc::new(self.open_task_table(table).await?)),
        }
    }

    async fn open_task_table(&self, table: &TaskTable) -> Result<ScanSource> {
        let opened = open_files(self, &table.snapshot, self.table_options()).await?;
        let columns = table.snapshot.table_columns()?;
        let parquet = ParquetTable::with_columns(opened, columns).map_err(from_table)?;
        if parquet.schema().fields() != table.schema.fields() {
            return exec_err!(
                "table {} has columns ({}) on this worker, and ({}) where the query was planned: start all servers with the same \
                 version of coscan and the same options",
                table.name,
                parquet.schema(),
                table.schema
            );
        }
        let shared = self.manager().register(Arc::new(parquet));
        shared.set_title(&table.name);
        source_of(self, table.name.clone(), shared, &[])
    }
}

/// The key of the files of a table in the cache of file lists.
fn key(table: &TaskTable) -> ListKey {
    let mut hasher = DefaultHasher::new();
    table.schema.fields().hash(&mut hasher);
    for file in &table.snapshot.files {
        (file.file.version(), &file.partition_values, file.options).hash(&mut hasher);
    }
    ListKey { place: format!("task {}", table.name), hash: hasher.finish() }
}

/// Whether a source that was found by the key has the files and columns of a table.
fn is_of(source: &ScanSource, table: &TaskTable) -> bool {
    let parquet = source.table.table();
    let versions = parquet.parquet_files().iter().map(|file| ParquetFile::version(file).clone());
    parquet.schema().fields() == table.schema.fields()
        && parquet.mapping() == table.snapshot.mapping.as_ref()
        && versions.eq(table.snapshot.files.iter().map(|file| file.file.version()))
}
