//! The snapshot of a table that queries see, and the next one.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use coscan_runtime::{BufferManager, CacheSlot, Registration};
use coscan_storage::table::ParquetFile;
use datafusion::common::Statistics;
use datafusion::error::Result;
use tokio::sync::{Mutex, MutexGuard};

use crate::listing::Listing;
use crate::location::ListedFile;
use crate::source::ScanSource;

/// A table that may be listed again. Queries go on with the snapshot that they were planned on.
#[derive(Debug)]
pub(crate) struct Snapshots {
    current: RwLock<Snapshot>,
    /// For log lines.
    name: String,
    /// How to list it, or to open what was listed; `None` if it is always open. Locked meanwhile: once for all who want
    /// that.
    listing: Option<Mutex<Listing>>,
    /// Whether it is listed again.
    is_refreshed: bool,
}

#[derive(Clone, Debug)]
struct Snapshot {
    files: Arc<[ListedFile]>,
    source: Opened,
    /// Of the whole table. They stay.
    statistics: Arc<Statistics>,
    listed: Instant,
}

/// What is known of files from their footers.
#[derive(Clone, Debug)]
enum Opened {
    /// As long as the table.
    Always(Arc<ScanSource>),
    /// As long as a query uses it or there is memory for it. The table stays registered: its pages are there when it is
    /// opened again.
    Kept(Arc<(CacheSlot<ScanSource>, Registration)>),
}

impl Snapshots {
    /// A table of fixed files.
    pub(crate) fn fixed(source: ScanSource) -> Self {
        let (name, statistics) = (source.name.clone(), Arc::clone(&source.statistics));
        let source = Opened::Always(Arc::new(source));
        let snapshot =
            Snapshot { files: Arc::default(), source, statistics, listed: Instant::now() };
        Self { current: RwLock::new(snapshot), name, listing: None, is_refreshed: false }
    }

    /// A table whose files were listed just now.
    pub(crate) fn of(listing: Listing, files: Vec<ListedFile>, source: ScanSource) -> Self {
        let listing = listing.with_columns_of(&source);
        let name = source.name.clone();
        let snapshot = Snapshot::kept(files.into(), Arc::new(source), Instant::now());
        let listing = Some(Mutex::new(listing));
        Self { current: RwLock::new(snapshot), name, listing, is_refreshed: true }
    }

    /// The files of the current snapshot for good, with what `change` makes of them.
    ///
    /// # Errors
    /// If they cannot be opened, or `change` fails.
    pub(crate) async fn fixed_with(
        &self,
        change: impl FnOnce(ScanSource) -> Result<ScanSource>,
        change_listing: impl FnOnce(Listing) -> Listing,
    ) -> Result<Self> {
        if self.listing.is_none() {
            return Ok(Self::fixed(change(self.current().await?.as_ref().clone())?));
        }
        let listing = self.lock_listing().await;
        let source = change(self.open(&listing).await?.as_ref().clone())?;
        let (listing, files) = (change_listing(listing.clone()), self.snapshot().files.to_vec());
        Ok(Self { is_refreshed: false, ..Self::of(listing, files, source) })
    }

    /// The snapshot for a query that is planned now.
    ///
    /// # Errors
    /// If its footers went as memory was short, and cannot be read again.
    pub(crate) async fn current(&self) -> Result<Arc<ScanSource>> {
        if let Some(source) = self.snapshot().source.get() {
            return Ok(source);
        }
        self.open(&self.lock_listing().await).await
    }

    /// What the optimizer knows of it.
    pub(crate) fn statistics(&self) -> Arc<Statistics> {
        self.snapshot().statistics
    }

    /// Lists the files again unless that was done in so short a time before. If they cannot be listed, or one of them is not
    /// whole yet, the last snapshot stays.
    pub(crate) async fn refresh_after(&self, age: Duration) {
        if self.is_refreshed
            && self.snapshot().listed.elapsed() >= age
            && let Err(error) = self.refresh(Some(age)).await
        {
            log::warn!("the files of {} stay as they were listed last: {error}", self.name);
        }
    }

    /// Lists the files again. Without `age` that is done in any case, else unless another has done so meanwhile.
    pub(crate) async fn refresh(&self, age: Option<Duration>) -> Result<()> {
        let asked = Instant::now();
        if !self.is_refreshed {
            return Ok(());
        }
        let listing = self.lock_listing().await;
        let current = self.snapshot();
        if age.is_some() && current.listed >= asked {
            return Ok(());
        }
        let listed = Instant::now();
        let files = listing.files().await?;
        let known = current.files.iter().map(|listed| listed.file.version());
        let is_same = known.eq(files.iter().map(|listed| listed.file.version()));
        let next = match is_same {
            true => Snapshot { listed, ..current },
            false => {
                let source = Arc::new(listing.snapshot(files.clone()).await?);
                Snapshot::kept(files.into(), source, listed)
            }
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next);
        drop(current);
        drop(before); // Not under the lock: its files may go with it.
        Ok(())
    }

    /// The current snapshot, opened unless another has done so meanwhile.
    async fn open(&self, listing: &MutexGuard<'_, Listing>) -> Result<Arc<ScanSource>> {
        let current = self.snapshot();
        if let Some(source) = current.source.get() {
            return Ok(source);
        }
        let source = Arc::new(listing.snapshot(current.files.to_vec()).await?);
        current.source.put(&source);
        Ok(source)
    }

    async fn lock_listing(&self) -> MutexGuard<'_, Listing> {
        let listing = self.listing.as_ref().expect("a table that is not always open was listed");
        listing.lock().await
    }

    fn snapshot(&self) -> Snapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    fn kept(files: Arc<[ListedFile]>, source: Arc<ScanSource>, listed: Instant) -> Self {
        let manager: &BufferManager = &source.manager;
        let opened = Opened::Kept(Arc::new((manager.cache_slot(), source.table.registration())));
        opened.put(&source);
        Self { files, source: opened, statistics: Arc::clone(&source.statistics), listed }
    }
}

impl Opened {
    fn get(&self) -> Option<Arc<ScanSource>> {
        match self {
            Self::Always(source) => Some(Arc::clone(source)),
            Self::Kept(kept) => kept.0.get(),
        }
    }

    fn put(&self, source: &Arc<ScanSource>) {
        if let Self::Kept(kept) = self {
            let files = source.table.table().parquet_files().iter();
            let bytes = files.map(|file| ParquetFile::memory_bytes(file)).sum();
            kept.0.put(Arc::clone(source), bytes);
        }
    }
}
