//! Checkpoints: rows with their changes are written to new files, which replace the old ones `[CS11 §2.9, §4.7]`.

use std::sync::Arc;

use coscan_database::{Checkpoint, DataFile, Database, Error, FileId, TablePart};
use coscan_storage::table::Value;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::{Column, internal_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;

use crate::error::{from_database, is_of_dropped_table};
use crate::managed::checkpoint_due::{Extent, due_parts};
use crate::managed::database::ManagedDatabase;
use crate::managed::file_writer::{FileWriter, Pace};
use crate::managed::opened_files::{OpenedFiles, changes_of};
use crate::managed::retired_files::now;
use crate::managed::table::ManagedTable;
use crate::tables::source::ScanSource;
use crate::tables::statement_snapshot::StatementSnapshot;

/// What a checkpoint has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckpointCounts {
    /// The number of files that were written.
    pub files_written: u64,
    /// The number of rows in them.
    pub rows_written: u64,
    /// The number of files that they replace.
    pub files_replaced: u64,
}

/// A checkpoint that is the table's state now.
pub(crate) struct Checkpointed {
    pub(crate) counts: CheckpointCounts,
    /// Whether other engines see it.
    pub(crate) published: Result<()>,
}

impl ManagedDatabase {
    /// Writes all changed rows of a table to new files, which replace the old ones, and the log is cut. Statements go on
    /// meanwhile; what they change is carried into the new files. Files that were replaced long enough ago are removed, as by
    /// [`remove_retired`](Self::remove_retired).
    ///
    /// If the future is dropped, the table has its old files.
    ///
    /// # Errors
    /// If a file cannot be read or written, the table was dropped, or the [publisher](crate::TablePublisher) fails: then the checkpoint
    /// itself has succeeded.
    pub async fn checkpoint(&self, table: &ManagedTable) -> Result<CheckpointCounts> {
        let Checkpointed { counts, published } = self.checkpoint_parts(table, Extent::All).await?;
        self.cut_log().await?;
        self.remove_retired().await?;
        published.map(|()| counts)
    }

    /// As [`Self::checkpoint`], of the parts whose changes cost scans more than it costs to write them anew, as in the
    /// background. The log is not cut, and no file is removed.
    ///
    /// # Errors
    /// As of [`Self::checkpoint`].
    pub async fn checkpoint_due(&self, table: &ManagedTable) -> Result<CheckpointCounts> {
        let Checkpointed { counts, published } = self.checkpoint_parts(table, Extent::Due).await?;
        published.map(|()| counts)
    }

    /// As [`Self::checkpoint`], for all tables.
    ///
    /// # Errors
    /// As of [`Self::checkpoint`]. A table that is dropped meanwhile is not an error.
    pub async fn checkpoint_all(&self) -> Result<()> {
        let mut published = Ok(());
        for name in self.table_names() {
            let Some(table) = self.table(&name)? else { continue };
            match self.checkpoint_parts(&table, Extent::All).await {
                Err(error) if is_of_dropped_table(&error) => {}
                done => match (done?.published, &mut published) {
                    (Err(error), Ok(())) => published = Err(error),
                    (Err(error), Err(_)) => log::warn!("{}: {error}", self.name()),
                    (Ok(()), _) => {}
                },
            }
        }
        self.cut_log().await?;
        self.remove_retired().await?;
        self.clean_published().await?;
        published
    }

    /// As [`Self::checkpoint`], for some of what is changed, without cutting the log. If then all rows are in files, the version that the
    /// checkpoint began with is published.
    pub(crate) async fn checkpoint_parts(
        &self,
        table: &ManagedTable,
        extent: Extent,
    ) -> Result<Checkpointed> {
        // Two at the same time would write the same rows, and one of them in vain.
        let _only_one = self.checkpointing().lock().await;
        // Files stay until they are published.
        let held = self.versions().begin();
        let mut checkpoint = self.versions().begin_checkpoint(table.id()).map_err(from_database)?;
        let parts = due_parts(checkpoint.version(), extent);
        let mut written = WrittenFiles { database: self.clone(), paths: Vec::new() };
        let mut counts = CheckpointCounts::default();
        let mut pace = Pace::new(self.options().checkpoint_bytes_per_second);
        for part in &parts {
            let file = self.write_part(table, &checkpoint, part, &mut written, &mut pace).await?;
            if let Some((_, file)) = &file {
                counts.files_written += 1;
                counts.rows_written += file.rows;
            }
            counts.files_replaced += part.files.len() as u64;
            checkpoint.replace(part, file).map_err(from_database)?;
        }
        let (version, lsn) = (checkpoint.rewritten(), checkpoint.lsn());
        if !parts.is_empty() {
            // Once begun, this comes to its end also if the checkpoint is dropped.
            match tokio::spawn(switch(self.versions().clone(), checkpoint, written)).await {
                Ok(switched) => switched.map_err(from_database)?,
                Err(error) => return internal_err!("the checkpoint ended: {error}"),
            }
            let database = self.clone();
            // It walks all changes.
            tokio::task::spawn_blocking(move || database.recount_changes()).await.ok();
        }
        let published = self.publish(table, &version, lsn, extent).await;
        drop(held);
        Ok(Checkpointed { counts, published })
    }

    /// Writes the rows of a part to a file, if there are any.
    async fn write_part(
        &self,
        table: &ManagedTable,
        checkpoint: &Checkpoint<Value>,
        part: &TablePart,
        written: &mut WrittenFiles,
        pace: &mut Pace,
    ) -> Result<Option<(FileId, DataFile)>> {
        let version = checkpoint.version().part(part).map_err(from_database)?;
        if version.visible_rows() == 0 {
            return Ok(None);
        }
        let opened = OpenedFiles::default();
        let base = table.base(&opened, &version).await?;
        let source = base.with_changes(changes_of(&version), checkpoint.lsn().0)?;
        let config = SessionConfig::new().with_target_partitions(1);
        let context = SessionContext::new_with_config(config);
        self.coscan().clone().install(&context)?;
        let state = context.state();
        let rows =
            StatementSnapshot::new(Arc::new(in_row_order(source)?), Vec::new()).with_row_numbers();
        let numbers = Expr::Column(Column::new_unqualified(table.row_numbers().name()));
        let plan =
            LogicalPlanBuilder::scan(table.name(), provider_as_source(Arc::new(rows)), None)?
                .sort([numbers.sort(true, false)])?
                .build()?;
        let plan = state.create_physical_plan(&plan).await?;
        let context = state.task_ctx();
        let memory = MemoryConsumer::new("checkpoint").register(context.memory_pool());
        let mut rows = execute_stream(plan, context)?;
        let mut file = FileWriter::new(table).await?;
        let (mut last, mut bytes) = (None, 0);
        while let Some(batch) = rows.try_next().await? {
            check_order(&batch, &mut last)?;
            let columns: Vec<_> = (0..table.columns().fields().len()).collect();
            file.write(&batch.project(&columns)?).await?;
            if memory.try_resize(file.memory_bytes()).is_err() {
                // Its row groups become smaller while memory is short.
                file.flush().await?;
                memory.free();
            }
            // An estimate, which falls when a page is compressed.
            let written = file.bytes();
            pace.keep(written.saturating_sub(bytes)).await;
            bytes = bytes.max(written);
        }
        written.paths.push(file.path().to_owned());
        file.finish().await.map(Some)
    }

    /// Writes the state of the database to a file and cuts the log before it.
    pub(crate) async fn cut_log(&self) -> Result<()> {
        let versions = self.versions().clone();
        match tokio::task::spawn_blocking(move || versions.write_state()).await {
            Ok(written) => written.map_err(from_database),
            Err(error) => internal_err!("the state of the database was not written: {error}"),
        }
    }
}

/// Makes the files of a checkpoint those of the table, durably.
async fn switch(
    versions: Database<Value>,
    checkpoint: Checkpoint<Value>,
    mut written: WrittenFiles,
) -> Result<(), Error> {
    versions.make_room().await?;
    // Many rows may have changed meanwhile.
    let paths = std::mem::take(&mut written.paths);
    let switched = tokio::task::spawn_blocking(move || checkpoint.start_commit(now())).await;
    match switched {
        Ok(Ok(pending)) => pending.durable().await.map(drop),
        Ok(Err(error)) => {
            // After an error of the log, the files may be those of the table.
            if !matches!(error, Error::Log(_)) {
                written.paths = paths;
            }
            Err(error)
        }
        Err(_) => Err(Error::Ended),
    }
}

/// The files of a checkpoint that no version of the table has yet. They are removed if it does not come to its end.
struct WrittenFiles {
    database: ManagedDatabase,
    paths: Vec<String>,
}

impl Drop for WrittenFiles {
    fn drop(&mut self) {
        let (database, paths) = (self.database.clone(), std::mem::take(&mut self.paths));
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !paths.is_empty()
        {
            // Or they are removed when the database is opened again.
            runtime.spawn(async move {
                for path in paths {
                    database.files().remove(&path).await;
                }
            });
        }
    }
}

/// A source whose rows are in the order of their numbers, whatever was changed.
fn in_row_order(source: ScanSource) -> Result<ScanSource> {
    let Some(numbers) = source.table.table().row_number_column() else {
        return internal_err!("the table has no row numbers");
    };
    let name = source.table.table().schema().field(numbers).name().clone();
    let ascending = SortOptions { descending: false, nulls_first: false };
    let numbers = PhysicalSortExpr::new(Arc::new(PhysicalColumn::new(&name, numbers)), ascending);
    Ok(ScanSource { orderings: LexOrdering::new([numbers]).into_iter().collect(), ..source })
}

/// Checks that rows come in the order of their numbers, each once.
fn check_order(batch: &RecordBatch, last: &mut Option<u64>) -> Result<()> {
    let numbers =
        batch.columns().last().and_then(|numbers| numbers.as_primitive_opt::<UInt64Type>());
    let Some(numbers) = numbers else { return internal_err!("the rows have no numbers") };
    for number in numbers.values() {
        if last.is_some_and(|last| last >= *number) {
            return internal_err!("row {number} comes after row {last:?}");
        }
        *last = Some(*number);
    }
    Ok(())
}
