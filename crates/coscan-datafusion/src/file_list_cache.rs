//! Lists of files that queries have read before: a query that reads the same again opens nothing.
//!
//! The engine's own tables find their files for each query, in a cache of lists or in the store, and keep nothing of them
//! that is shared. Without this, files and pages would be given up between two queries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use coscan_runtime::BufferManager;
use coscan_storage::table::ParquetFile;
use tokio::sync::OnceCell;

use crate::source::ScanSource;

/// Lists are kept for so many tables, and for parts of them that differ in their files.
const LISTS_MAX: usize = 256;

/// The footers of files that only kept lists hold take up to this part of the memory budget.
const BUDGET_PART: u64 = 16;

/// What makes lists the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListKey {
    /// Where the files are listed, and how they are read.
    pub(crate) place: String,
    /// Of the files and columns. Whoever finds a list compares those, too.
    pub(crate) hash: u64,
}

/// What is shared of a list; `None` if that cannot be shared, whoever asks.
type Outcome = OnceCell<Option<Arc<ScanSource>>>;

/// The lists that a manager's queries have read of late.
#[derive(Debug, Default)]
pub(crate) struct FileListCache {
    /// What was used last stands last.
    lists: Mutex<Vec<CachedFileList>>,
}

#[derive(Debug)]
struct CachedFileList {
    key: ListKey,
    outcome: Arc<Outcome>,
    footer_bytes: u64,
    used: Instant,
}

impl FileListCache {
    /// Those of a manager, the same for all its sessions, which hold them.
    pub(crate) fn of(manager: &BufferManager) -> Arc<Self> {
        /// The lists hold the manager, so the manager does not hold the lists.
        #[derive(Default)]
        struct Known(Mutex<Weak<FileListCache>>);
        let known = manager.extension(Known::default);
        let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let lists = Arc::new(Self::default());
            *known = Arc::downgrade(&lists);
            lists
        })
    }

    /// What is shared of a list, opened if that is not known. Queries that ask at the same time open it once. An error is
    /// for this query only: the next one tries again.
    pub(crate) async fn find_or_open<E>(
        &self,
        manager: &BufferManager,
        key: ListKey,
        open: impl AsyncFnOnce() -> Result<Option<ScanSource>, E>,
    ) -> Result<Option<Arc<ScanSource>>, E> {
        let options = manager.options();
        let outcome = self.outcome(&key, options.keep_idle);
        if let Some(known) = outcome.get() {
            return Ok(known.clone());
        }
        let opened = outcome.get_or_try_init(async || Ok(open().await?.map(Arc::new)));
        let opened = opened.await?.clone();
        if let Some(source) = &opened {
            let files = source.table.table().parquet_files().iter();
            let footer_bytes = files.map(|file| ParquetFile::memory_bytes(file)).sum();
            self.weigh(&key, footer_bytes, options.memory_bytes / BUDGET_PART);
        }
        Ok(opened)
    }

    /// Gives up all lists, as memory is short.
    pub(crate) fn forget(&self) {
        let forgotten = std::mem::take(&mut *self.lock());
        drop(forgotten); // Not under the lock: files may go with them.
    }

    /// That of a list, which is used now. Lists that nobody has used for so long go.
    fn outcome(&self, key: &ListKey, keep_idle: Duration) -> Arc<Outcome> {
        let now = Instant::now();
        let mut lists = self.lock();
        let known = lists.iter().position(|list| list.key == *key).map(|found| lists.remove(found));
        let idle = lists.partition_point(|list| now.duration_since(list.used) >= keep_idle);
        let too_many = (lists.len() + 1).saturating_sub(LISTS_MAX);
        let unused: Vec<_> = lists.drain(..idle.max(too_many)).collect();
        let list = match known {
            Some(list) => CachedFileList { used: now, ..list },
            None => CachedFileList {
                key: key.clone(),
                outcome: Arc::default(),
                footer_bytes: 0,
                used: now,
            },
        };
        let outcome = Arc::clone(&list.outcome);
        lists.push(list);
        drop(lists);
        drop(unused); // Not under the lock: files may go with them.
        outcome
    }

    /// Notes what the footers of a list take. If that is too much it is not kept, else those used longest ago go until all
    /// take no more than `bytes_max`.
    fn weigh(&self, key: &ListKey, footer_bytes: u64, bytes_max: u64) {
        let mut lists = self.lock();
        let Some(weighed) = lists.iter().position(|list| list.key == *key) else { return };
        lists[weighed].footer_bytes = footer_bytes;
        let unused: Vec<_> = match footer_bytes > bytes_max {
            true => vec![lists.remove(weighed)],
            false => {
                let mut kept_bytes = 0;
                let kept = lists.iter().rev().take_while(|list| {
                    kept_bytes += list.footer_bytes;
                    kept_bytes <= bytes_max
                });
                let unused_count = lists.len() - kept.count();
                lists.drain(..unused_count).collect()
            }
        };
        drop(lists);
        drop(unused); // Not under the lock: files may go with them.
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CachedFileList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
