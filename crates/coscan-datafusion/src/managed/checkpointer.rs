//! Checkpoints in the background.

use std::time::Duration;

use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};

use crate::error::is_of_dropped_table;
use crate::managed::checkpoint::Checkpointed;
use crate::managed::checkpoint_due::Extent;
use crate::managed::database::{ManagedDatabase, WeakDatabase};

/// The log is cut when opening the database would replay so many bytes. If each of its rows changed one value, that takes ten
/// seconds.
const LOG_BYTES_MAX: u64 = 128 << 20;

/// How long nothing is tried after an error.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(60);

/// Starts the work in the background of a database, which is returned for its users. The work ends when they are gone.
pub(crate) fn run_in_background(database: ManagedDatabase) -> ManagedDatabase {
    let (database, weak, closed) = database.for_users();
    // Something may be due since the database was open before.
    database.notify_changed();
    tokio::spawn(async move {
        tokio::select! {
            () = closed.notified() => {}
            () = run(weak) => {}
        }
    });
    database
}

/// Writes what is due to new files after each commit, until the database is closed. It may be dropped at any time.
async fn run(database: WeakDatabase) {
    let mut has_failed = false;
    loop {
        if has_failed {
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        } else {
            database.changed().await;
        }
        let Some(open) = database.upgrade() else { return };
        let errors = write_due(&open).await;
        has_failed = !errors.is_empty();
        for error in errors {
            log::warn!("{}: {error}. Statements go on; it is tried again in a minute", open.name());
        }
    }
}

/// Writes what is due of each table, cuts the log, and removes files. One that fails does not keep the others from it.
async fn write_due(database: &ManagedDatabase) -> Vec<DataFusionError> {
    let mut errors = Vec::new();
    for name in database.table_names() {
        let (of, table) = (database.clone(), name.clone());
        // A panic ends the checkpoint of one table.
        let writing = SpawnedTask::spawn(async move { write_table(&of, &table).await });
        let written = writing.join().await;
        let written = written.map_err(|error| DataFusionError::External(Box::new(error)));
        match written.flatten() {
            Err(error) if !is_of_dropped_table(&error) => {
                errors.push(error);
            }
            _ => {}
        }
    }
    if database.versions().replayed_bytes() > LOG_BYTES_MAX
        && let Err(error) = database.cut_log().await
    {
        errors.push(error.context("the log cannot be cut"));
    }
    if let Err(error) = database.remove_retired().await {
        errors.push(error.context("old files cannot be removed"));
    }
    if let Err(error) = database.clean_published().await {
        errors.push(error.context("what other engines no longer see cannot be removed"));
    }
    errors
}

async fn write_table(database: &ManagedDatabase, name: &str) -> Result<()> {
    let Some(table) = database.table(name)? else { return Ok(()) };
    let written = database.checkpoint_parts(&table, Extent::Due).await;
    let Checkpointed { counts, published } = written.map_err(|error| {
        error.context(format!("the changes of table {name} cannot be written to files"))
    })?;
    if counts.files_written + counts.files_replaced > 0 {
        log::info!(
            "checkpoint of {name}: {} files replaced by {} new ones with {} rows",
            counts.files_replaced,
            counts.files_written,
            counts.rows_written
        );
    }
    published
}
