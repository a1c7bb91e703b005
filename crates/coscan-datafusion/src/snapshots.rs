//! The snapshot of a table that queries see, and the next one.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use datafusion::error::Result;

use crate::listing::Listing;
use crate::source::ScanSource;

/// A table that may be listed again. Queries go on with the snapshot that they were planned on.
#[derive(Debug)]
pub(crate) struct Snapshots {
    current: RwLock<Snapshot>,
    /// How to list it; `None` if its files are fixed. Locked while it is listed: once for all who want that.
    listing: Option<tokio::sync::Mutex<Listing>>,
}

#[derive(Clone, Debug)]
struct Snapshot {
    source: Arc<ScanSource>,
    listed: Instant,
}

impl Snapshots {
    /// A table of fixed files.
    pub(crate) fn fixed(source: ScanSource) -> Self {
        Self { current: RwLock::new(Snapshot::now(source)), listing: None }
    }

    /// A table whose files were listed just now.
    pub(crate) fn of(listing: Listing, source: ScanSource) -> Self {
        let listing = listing.with_columns_of(&source);
        let current = RwLock::new(Snapshot::now(source));
        Self { current, listing: Some(tokio::sync::Mutex::new(listing)) }
    }

    /// The snapshot for a query that is planned now.
    pub(crate) fn current(&self) -> Arc<ScanSource> {
        Arc::clone(&self.snapshot().source)
    }

    /// Lists the files again unless that was done in so short a time before. If they cannot be listed, or one of them is not
    /// whole yet, the last snapshot stays.
    pub(crate) async fn refresh_after(&self, age: Duration) {
        if self.listing.is_some()
            && self.snapshot().listed.elapsed() >= age
            && let Err(error) = self.refresh(Some(age)).await
        {
            let name = &self.current().name;
            log::warn!("the files of {name} stay as they were listed last: {error}");
        }
    }

    /// Lists the files again. Without `age` that is done in any case, else unless another has done so meanwhile.
    pub(crate) async fn refresh(&self, age: Option<Duration>) -> Result<()> {
        let asked = Instant::now();
        let Some(listing) = &self.listing else { return Ok(()) };
        let listing = listing.lock().await;
        let current = self.snapshot();
        if age.is_some() && current.listed >= asked {
            return Ok(());
        }
        let listed = Instant::now();
        let files = listing.files().await?;
        let known = current.source.table.table().parquet_files().iter();
        let versions = files.iter().map(|listed| listed.file.version());
        let is_same = known.map(|file| file.version().clone()).eq(versions);
        let source = match is_same {
            true => current.source,
            false => Arc::new(listing.snapshot(files).await?),
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Snapshot { source, listed });
        drop(current);
        drop(before); // Not under the lock: its files may go with it.
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    fn now(source: ScanSource) -> Self {
        Self { source: Arc::new(source), listed: Instant::now() }
    }
}
