//! A cache of the file lists that queries have read. A query that reads the same files again opens nothing.
//!
//! The engine's own tables list their files for each query and keep nothing that is shared. Without this cache, files
//! would be closed and pages evicted between two queries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_runtime::BufferManager;

use crate::tables::cached_source::CachedSource;
use crate::tables::source::ScanSource;

/// The maximum number of lists. A table has a list for each set of files that queries read of it.
const LISTS_MAX: usize = 256;

/// The identity of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListKey {
    /// The store that lists the files, and the options of reading them.
    pub(crate) place: String,
    /// The hash of the files and columns, which the caller compares as well.
    pub(crate) hash: u64,
}

/// Whether a list can be shared.
#[derive(Debug, Default)]
enum Outcome {
    #[default]
    Unopened,
    /// The list cannot be shared by any query.
    Refused,
    Shared(CachedSource),
}

/// The lists that a manager's queries have read recently.
#[derive(Debug, Default)]
pub(crate) struct FileListCache {
    /// The least recently used one is first.
    lists: Mutex<Vec<CachedFileList>>,
}

#[derive(Debug)]
struct CachedFileList {
    key: ListKey,
    /// Locked while the files are opened, so that concurrent queries open them once.
    outcome: Arc<tokio::sync::Mutex<Outcome>>,
    /// Whether the list was used since idle lists were last dropped.
    is_used: bool,
}

impl FileListCache {
    /// The cache of a manager. All sessions of the manager share and hold it.
    pub(crate) fn of(manager: &BufferManager) -> Arc<Self> {
        /// The lists hold the manager, so the manager does not hold the lists.
        #[derive(Default)]
        struct SharedLists(Mutex<Weak<FileListCache>>);
        let shared = manager.extension(SharedLists::default);
        let mut cache = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.upgrade().unwrap_or_else(|| {
            let lists = Arc::new(Self::default());
            let held = Arc::downgrade(&lists);
            *cache = Weak::clone(&held);
            manager.when_idle(move || held.upgrade().map(|lists| lists.forget_idle()).is_some());
            lists
        })
    }

    /// The source of a list, which is opened if it is new or its footers were dropped. `None` if it cannot be shared.
    /// Concurrent queries open it once. After an error the next query tries again.
    pub(crate) async fn find_or_open<E>(
        &self,
        key: ListKey,
        open: impl AsyncFnOnce() -> Result<Option<ScanSource>, E>,
    ) -> Result<Option<Arc<ScanSource>>, E> {
        let outcome = self.outcome(key);
        let mut outcome = outcome.lock().await;
        let known = match &*outcome {
            Outcome::Unopened => None,
            Outcome::Refused => return Ok(None),
            Outcome::Shared(kept) => kept.get(),
        };
        if known.is_some() {
            return Ok(known);
        }
        let opened = open().await?.map(Arc::new);
        *outcome = match &opened {
            Some(source) => Outcome::Shared(CachedSource::new(source)),
            None => Outcome::Refused,
        };
        Ok(opened)
    }

    /// The outcome of a list, which becomes the most recently used list.
    fn outcome(&self, key: ListKey) -> Arc<tokio::sync::Mutex<Outcome>> {
        let mut lists = self.lock();
        let known = lists.iter().position(|list| list.key == key).map(|found| lists.remove(found));
        let unused = if lists.len() < LISTS_MAX { None } else { Some(lists.remove(0)) };
        let outcome = known.map_or_else(Arc::default, |list| list.outcome);
        lists.push(CachedFileList { key, outcome: Arc::clone(&outcome), is_used: true });
        drop(lists);
        drop(unused); // Not under the lock: it may close files.
        outcome
    }

    /// Drops the lists that no query has used since the last call.
    fn forget_idle(&self) {
        let mut lists = self.lock();
        let is_idle = |list: &mut CachedFileList| !std::mem::take(&mut list.is_used);
        let idle: Vec<_> = lists.extract_if(.., is_idle).collect();
        drop(lists);
        drop(idle); // Not under the lock: it may close files.
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CachedFileList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
