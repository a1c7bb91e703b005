//! Removing files that checkpoints have replaced.

use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::common::internal_err;
use datafusion::error::Result;

use crate::error::from_database;
use crate::managed::database::ManagedDatabase;

impl ManagedDatabase {
    /// Removes files that checkpoints have replaced before the [retention](crate::DatabaseOptions::retention), unless a
    /// statement still reads them. Returns their number.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub async fn remove_retired(&self) -> Result<u64> {
        let retention = u64::try_from(self.options().retention.as_millis()).unwrap_or(u64::MAX);
        let before = now().saturating_sub(retention);
        let (pending, retired) = self.versions().forget_retired(before).map_err(from_database)?;
        if retired.is_empty() {
            return Ok(0);
        }
        let (database, count) = (self.clone(), retired.len() as u64);
        // Once they are forgotten, they are removed also if this is dropped.
        let removed = tokio::spawn(async move {
            pending.durable().await.map_err(from_database)?;
            for file in &retired {
                database.files().remove(&file.path).await;
            }
            database.clean_published().await?;
            Ok(count)
        });
        match removed.await {
            Ok(removed) => removed,
            Err(error) => internal_err!("the files were not removed: {error}"),
        }
    }
}

/// The time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
