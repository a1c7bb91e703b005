//! The snapshots of a table: the one that queries see now, and how the next one is made.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::logical_expr::SortExpr;
use tokio::sync::Mutex;

use crate::error::QueryError;
use crate::options::CoscanOptions;
use crate::tables::cached_source::CachedSource;
use crate::tables::listing::Listing;
use crate::tables::location::ListedFile;
use crate::tables::opener::Opener;
use crate::tables::order;
use crate::tables::replica;
use crate::tables::source::ScanSource;

/// The current snapshot of a table. Queries keep the snapshot that they were planned on.
#[derive(Debug)]
pub(crate) struct Snapshots {
    current: RwLock<Snapshot>,
    /// The name in log lines.
    name: String,
    /// Opens and lists the files. It is locked meanwhile, so that concurrent queries do so once.
    opener: Mutex<Opener>,
    /// The time of the last request for the files, if they could not be listed or opened.
    failed: RwLock<Option<Instant>>,
    /// Whether the files may be listed again.
    is_refreshed: bool,
}

#[derive(Clone, Debug)]
struct Snapshot {
    files: Arc<[ListedFile]>,
    source: Arc<CachedSource>,
    /// The statistics of the whole table, which stay in memory.
    statistics: Arc<Statistics>,
    listed: Instant,
}

impl Snapshots {
    /// Creates the snapshots of a table that a program has registered.
    pub(crate) fn registered(coscan: CoscanOptions, source: ScanSource) -> Self {
        let opener = Opener::registered(coscan, &source);
        Self::fixed(opener, Arc::default(), source)
    }

    /// Creates the snapshots of a table whose files were listed just now.
    pub(crate) fn of(listing: Listing, files: Vec<ListedFile>, source: ScanSource) -> Self {
        let opener = Opener::Listed(listing.with_columns_of(&source));
        Self { is_refreshed: true, ..Self::fixed(opener, files.into(), source) }
    }

    fn fixed(opener: Opener, files: Arc<[ListedFile]>, source: ScanSource) -> Self {
        let name = source.name.clone();
        let current = RwLock::new(Snapshot::new(files, Arc::new(source), Instant::now()));
        Self {
            current,
            name,
            opener: Mutex::new(opener),
            failed: RwLock::default(),
            is_refreshed: false,
        }
    }

    /// A table of the files of the current snapshot in these orders. Its files are fixed.
    ///
    /// # Errors
    /// If they cannot be opened, or an order names a column that the table does not have.
    pub(crate) async fn with_orders(&self, orders: &[Vec<SortExpr>]) -> Result<Self> {
        let opener = self.opener.lock().await;
        let source = self.open(&opener).await?;
        let orderings = order::of_files(source.table.table(), &source.files, orders)?;
        let source = ScanSource { orderings, stored_order: None, ..source.as_ref().clone() };
        Ok(Self::fixed(opener.clone().with_orders(orders), self.snapshot().files, source))
    }

    /// A replica of a table with the same files, read with the columns of the table. It is refreshed if this one is.
    ///
    /// # Errors
    /// If they cannot be opened, or their columns or rows do not match the table.
    pub(crate) async fn as_replica_of(&self, table: &ScanSource) -> Result<Self> {
        let opener = self.opener.lock().await;
        let source = self.open(&opener).await?;
        replica::check_columns(table, &source, false)?;
        let opener = opener.clone().with_columns(table.table.table().schema());
        let files = self.snapshot().files;
        let source = opener.open(&files).await?;
        replica::check_columns(table, &source, true)?;
        replica::check_rows(table, &source)?;
        Ok(Self { is_refreshed: self.is_refreshed, ..Self::fixed(opener, files, source) })
    }

    /// The snapshot for a query that is planned now.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again.
    pub(crate) async fn current(&self) -> Result<Arc<ScanSource>> {
        if let Some(source) = self.snapshot().source.get() {
            return Ok(source);
        }
        self.open(&*self.opener.lock().await).await
    }

    /// Whether its files may be listed again.
    pub(crate) fn is_refreshed(&self) -> bool {
        self.is_refreshed
    }

    /// The statistics of the current snapshot.
    pub(crate) fn statistics(&self) -> Arc<Statistics> {
        self.snapshot().statistics
    }

    /// Lists the files again unless the last list is younger than `age`. If they cannot be listed, or one of them is
    /// incomplete, the last snapshot stays.
    pub(crate) async fn refresh_after(&self, age: Duration) {
        if self.is_refreshed
            && self.snapshot().listed.elapsed() >= age
            && let Err(error) = self.refresh(Some(age)).await
        {
            let error = QueryError::from(error);
            log::warn!("{} keeps its last list of files: {error}", self.name);
        }
    }

    /// Lists the files again. With an `age`, returns early if another query has done so, or has tried, since this call.
    pub(crate) async fn refresh(&self, age: Option<Duration>) -> Result<()> {
        let asked = Instant::now();
        if !self.is_refreshed {
            return Ok(());
        }
        let opener = self.opener.lock().await;
        let Opener::Listed(listing) = &*opener else { return Ok(()) };
        let current = self.snapshot();
        let failed = *self.failed.read().unwrap_or_else(PoisonError::into_inner);
        // Otherwise queries would wait one after the other for a store that does not answer.
        if age.is_some()
            && (current.listed >= asked || failed.is_some_and(|failed| failed >= asked))
        {
            return Ok(());
        }
        let listed = Instant::now();
        let next = Self::listed_again(listing, current, listed).await;
        let next = next.inspect_err(|_| {
            *self.failed.write().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next);
        drop(current);
        drop(before); // Not under the lock: it may close files.
        Ok(())
    }

    /// A snapshot of the current files.
    async fn listed_again(
        listing: &Listing,
        current: Snapshot,
        listed: Instant,
    ) -> Result<Snapshot> {
        let files = listing.files().await?;
        let known = current.files.iter().map(|listed| listed.file.version());
        if known.eq(files.iter().map(|listed| listed.file.version())) {
            return Ok(Snapshot { listed, ..current });
        }
        let source = Arc::new(listing.snapshot(files.clone()).await?);
        Ok(Snapshot::new(files.into(), source, listed))
    }

    /// Opens the current snapshot unless another query has done so meanwhile.
    async fn open(&self, opener: &Opener) -> Result<Arc<ScanSource>> {
        let current = self.snapshot();
        if let Some(source) = current.source.get() {
            return Ok(source);
        }
        let source = Arc::new(opener.open(&current.files).await?);
        current.source.put(&source);
        Ok(source)
    }

    fn snapshot(&self) -> Snapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    fn new(files: Arc<[ListedFile]>, source: Arc<ScanSource>, listed: Instant) -> Self {
        let statistics = Arc::clone(&source.statistics);
        Self { files, source: Arc::new(CachedSource::new(&source)), statistics, listed }
    }
}
