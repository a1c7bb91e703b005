//! Checkpoints in the background.

use std::time::Duration;

use datafusion::error::Result;

use crate::managed::checkpoint::is_overtaken;
use crate::managed::database::{ManagedDatabase, WeakDatabase};
use crate::managed::due::Extent;

/// The log is cut when opening the database would replay so many bytes. That takes seconds.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// How long nothing is tried after an error.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(60);

/// Writes what is due to new files after each commit, until the database is closed.
pub(crate) async fn run(database: WeakDatabase) {
    while let Some(open) = database.changed().await {
        let done = write_due(&open).await;
        let name = open.name().to_owned();
        drop(open);
        if let Err(error) = done {
            log::warn!(
                "the changes of the database {name} cannot be written to files: {error}. Statements go on, and take more memory \
                 and time; it is tried again in a minute"
            );
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
        }
    }
}

async fn write_due(database: &ManagedDatabase) -> Result<()> {
    for name in database.table_names() {
        let Some(table) = database.table(&name)? else { continue };
        match database.checkpoint_parts(&table, Extent::Due).await {
            Err(error) if is_overtaken(&error) => {}
            done => {
                let counts = done?;
                if counts.files_written > 0 {
                    log::info!(
                        "{name}: wrote {} rows to {} files, which replace {}",
                        counts.rows_written,
                        counts.files_written,
                        counts.files_replaced
                    );
                }
            }
        }
    }
    if database.versions().replayed_bytes() > LOG_BYTES_MAX {
        database.cut_log().await?;
    }
    database.remove_retired().await.map(drop)
}
