//! The snapshots of a table: the one that queries see now, and making the next one.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use coscan_storage::table::{ParquetFile, ReadError};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Statistics, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::SortExpr;
use tokio::sync::Mutex;

use crate::error::QueryError;
use crate::tables::cached_source::CachedSource;
use crate::tables::opener::Opener;
use crate::tables::order;
use crate::tables::replica;
use crate::tables::snapshot_source::{SnapshotSource, SnapshotTime, TableSnapshot};
use crate::tables::source::ScanSource;

/// The interval of checks whether files were replaced.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The current snapshot of a table. Queries keep the snapshot that they were planned on.
#[derive(Debug)]
pub(crate) struct Snapshots {
    current: RwLock<CurrentSnapshot>,
    opener: Opener,
    /// The source of newer snapshots; `None` if the files are fixed.
    source: Option<Arc<dyn SnapshotSource>>,
    /// Locked while the files are listed or opened, so that concurrent queries do so once.
    opening: Mutex<()>,
    /// The columns of all snapshots; `None` if those of later ones may differ.
    columns: Option<SchemaRef>,
    /// The time of the last request for the files, if they could not be listed or opened.
    failed: RwLock<Option<Instant>>,
    /// The time of the last check whether files were replaced.
    checked: RwLock<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct CurrentSnapshot {
    snapshot: Arc<TableSnapshot>,
    schema: SchemaRef,
    source: Arc<CachedSource>,
    /// The statistics of the whole table, which stay in memory.
    statistics: Arc<Statistics>,
    listed: Instant,
}

impl Snapshots {
    /// Creates the snapshots of a table whose files are fixed.
    pub(crate) fn fixed(opener: Opener, snapshot: TableSnapshot, source: ScanSource) -> Self {
        Self {
            columns: Some(Arc::clone(source.table.table().schema())),
            current: RwLock::new(CurrentSnapshot::new(Arc::new(snapshot), &Arc::new(source))),
            opener,
            source: None,
            opening: Mutex::default(),
            failed: RwLock::default(),
            checked: RwLock::default(),
        }
    }

    /// Creates the snapshots of a table whose first snapshot was taken just now.
    ///
    /// # Errors
    /// If its files cannot be opened.
    pub(crate) async fn from_source(
        opener: Opener,
        source: Arc<dyn SnapshotSource>,
        first: TableSnapshot,
    ) -> Result<Self> {
        let opened = opener.open(&first).await?;
        let fixed = Self::fixed(opener, first, opened);
        let columns = fixed.columns.clone().filter(|_| !source.may_change_columns());
        Ok(Self { columns, source: Some(source), ..fixed })
    }

    /// A table of the files of the current snapshot in these orders. Its files are fixed.
    ///
    /// # Errors
    /// If they cannot be opened, or an order names a column that the table does not have.
    pub(crate) async fn with_orders(&self, orders: &[Vec<SortExpr>]) -> Result<Self> {
        let source = self.current().await?;
        let orderings = order::of_files(source.table.table(), &source.files, orders)?;
        let source = ScanSource { orderings, stored_order: None, ..source.as_ref().clone() };
        let opener = Opener { orders: orders.to_vec(), ..self.opener.clone() };
        Ok(Self::fixed(opener, self.snapshot().snapshot.as_ref().clone(), source))
    }

    /// A replica of a table with the same files, read with the columns of the table. It is refreshed if this one is.
    ///
    /// # Errors
    /// If they cannot be opened, or their columns or rows do not match the table.
    pub(crate) async fn as_replica_of(&self, table: &ScanSource) -> Result<Self> {
        replica::check_columns(table, &*self.current().await?, false)?;
        let snapshot = self.snapshot().snapshot.as_ref().clone();
        let snapshot = snapshot.read_as(table.table.table().schema())?;
        let source = self.opener.open(&snapshot).await?;
        replica::check_columns(table, &source, true)?;
        replica::check_rows(table, &source)?;
        // Later snapshots are read with the columns of the table, too, whatever columns they have.
        let later = self.source.clone();
        Ok(Self { source: later, ..Self::fixed(self.opener.clone(), snapshot, source) })
    }

    /// The snapshot for a query that is planned now.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again.
    pub(crate) async fn current(&self) -> Result<Arc<ScanSource>> {
        if let Some(source) = self.snapshot().source.get() {
            return Ok(source);
        }
        let _opens_once = self.opening.lock().await;
        let current = self.snapshot();
        if let Some(source) = current.source.get() {
            return Ok(source);
        }
        let source = Arc::new(self.opener.open(&current.snapshot).await?);
        current.source.put(&source);
        Ok(source)
    }

    /// An earlier snapshot.
    ///
    /// # Errors
    /// As [`SnapshotSource::at`]; also if its files cannot be opened.
    pub(crate) async fn at(&self, moment: SnapshotTime) -> Result<ScanSource> {
        let Some(source) = &self.source else {
            return plan_err!(
                "{} has no versions, so it cannot be read {moment}",
                self.opener.name
            );
        };
        let snapshot = source.at(moment).await?;
        self.opener.open(&snapshot).await
    }

    /// Checks, at most once in [`CHECK_INTERVAL`], that no file of the snapshot was replaced: reads notice that by
    /// themselves, but queries may find all pages in memory. Only tables of local files are checked, since a request for
    /// each file costs too much elsewhere.
    ///
    /// # Errors
    /// If a file was replaced.
    pub(crate) async fn check(&self, source: &ScanSource) -> Result<()> {
        let table = source.table.table();
        let is_local = |file: &Arc<ParquetFile>| file.version().store_url().scheme() == "file";
        let checked = *self.checked.read().unwrap_or_else(PoisonError::into_inner);
        let is_due = checked.is_none_or(|checked| checked.elapsed() >= CHECK_INTERVAL);
        if is_due && table.parquet_files().iter().all(is_local) {
            *self.checked.write().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            // A query may not need a file that is gone, or cannot be looked at.
            if let Err(error @ ReadError::Changed { .. }) = table.check().await {
                *self.checked.write().unwrap_or_else(PoisonError::into_inner) = None;
                return Err(DataFusionError::External(Box::new(error)));
            }
        }
        Ok(())
    }

    /// Whether its files may be listed again.
    pub(crate) fn is_refreshed(&self) -> bool {
        self.source.is_some()
    }

    /// Whether the columns of later snapshots may differ.
    pub(crate) fn may_change_columns(&self) -> bool {
        self.columns.is_none()
    }

    /// The columns of the current snapshot.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.columns.clone().unwrap_or_else(|| self.snapshot().schema)
    }

    /// The statistics of the current snapshot.
    pub(crate) fn statistics(&self) -> Arc<Statistics> {
        self.snapshot().statistics
    }

    /// Looks for a newer snapshot unless that was last done less than `age` ago. If that fails, or a file is
    /// incomplete, the last snapshot stays.
    pub(crate) async fn refresh_after(&self, age: Duration) {
        if self.is_refreshed()
            && self.snapshot().listed.elapsed() >= age
            && let Err(error) = self.refresh(Some(age)).await
        {
            let error = QueryError::from(error);
            log::warn!("{} keeps its last list of files: {error}", self.opener.name);
        }
    }

    /// Looks for a newer snapshot. With an `age`, returns early if another query has done so, or has tried, since this
    /// call.
    pub(crate) async fn refresh(&self, age: Option<Duration>) -> Result<()> {
        let asked = Instant::now();
        let Some(source) = &self.source else { return Ok(()) };
        let _lists_once = self.opening.lock().await;
        let current = self.snapshot();
        let failed = *self.failed.read().unwrap_or_else(PoisonError::into_inner);
        // Otherwise queries would wait one after the other for a store that does not answer.
        if age.is_some()
            && (current.listed >= asked || failed.is_some_and(|failed| failed >= asked))
        {
            return Ok(());
        }
        let listed = Instant::now();
        let next = self.newest(source.as_ref(), current, listed).await;
        let next = next.inspect_err(|_| {
            *self.failed.write().unwrap_or_else(PoisonError::into_inner) = Some(listed);
        })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next);
        drop(current);
        drop(before); // Not under the lock: it may close files.
        Ok(())
    }

    /// The newest snapshot, which is the current one if nothing has changed.
    async fn newest(
        &self,
        source: &dyn SnapshotSource,
        current: CurrentSnapshot,
        listed: Instant,
    ) -> Result<CurrentSnapshot> {
        let Some(newest) = source.newest(Some(&current.snapshot)).await? else {
            return Ok(CurrentSnapshot { listed, ..current });
        };
        let newest = match &self.columns {
            Some(columns) => newest.read_as(columns)?,
            None => newest,
        };
        let source = Arc::new(self.opener.open(&newest).await?);
        Ok(CurrentSnapshot { listed, ..CurrentSnapshot::new(Arc::new(newest), &source) })
    }

    fn snapshot(&self) -> CurrentSnapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CurrentSnapshot {
    fn new(snapshot: Arc<TableSnapshot>, source: &Arc<ScanSource>) -> Self {
        Self {
            snapshot,
            schema: Arc::clone(source.table.table().schema()),
            source: Arc::new(CachedSource::new(source)),
            statistics: Arc::clone(&source.statistics),
            listed: Instant::now(),
        }
    }
}
