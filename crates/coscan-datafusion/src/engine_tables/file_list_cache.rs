//! Lists of files that queries have read before: a query that reads the same again opens nothing.
//!
//! The engine's own tables find their files for each query, in a cache of lists or in the store, and keep nothing of them
//! that is shared. Without this, files and pages would be given up between two queries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_runtime::BufferManager;

use crate::tables::cached_source::CachedSource;
use crate::tables::source::ScanSource;

/// Lists are kept for so many tables, and for parts of them that differ in their files.
const LISTS_MAX: usize = 256;

/// What makes lists the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListKey {
    /// Where the files are listed, and how they are read.
    pub(crate) place: String,
    /// Of the files and columns. Whoever finds a list compares those, too.
    pub(crate) hash: u64,
}

/// What is known of a list.
#[derive(Debug, Default)]
enum Outcome {
    #[default]
    Unopened,
    /// It cannot be shared, whoever asks.
    Refused,
    Shared(CachedSource),
}

/// The lists that a manager's queries have read of late.
#[derive(Debug, Default)]
pub(crate) struct FileListCache {
    /// What was used last stands last.
    lists: Mutex<Vec<CachedFileList>>,
}

#[derive(Debug)]
struct CachedFileList {
    key: ListKey,
    /// Locked while it is opened: once for all who ask meanwhile.
    outcome: Arc<tokio::sync::Mutex<Outcome>>,
    /// Whether it was used since idle lists went last.
    is_used: bool,
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
            let held = Arc::downgrade(&lists);
            *known = Weak::clone(&held);
            manager.when_idle(move || held.upgrade().map(|lists| lists.forget_idle()).is_some());
            lists
        })
    }

    /// What is shared of a list, opened if that is not known or its footers went. Queries that ask at the same time open
    /// it once. An error is for this query only: the next one tries again.
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

    /// That of a list, which is used now.
    fn outcome(&self, key: ListKey) -> Arc<tokio::sync::Mutex<Outcome>> {
        let mut lists = self.lock();
        let known = lists.iter().position(|list| list.key == key).map(|found| lists.remove(found));
        let unused = if lists.len() < LISTS_MAX { None } else { Some(lists.remove(0)) };
        let outcome = known.map_or_else(Arc::default, |list| list.outcome);
        lists.push(CachedFileList { key, outcome: Arc::clone(&outcome), is_used: true });
        drop(lists);
        drop(unused); // Not under the lock: files may go with it.
        outcome
    }

    /// Gives up the lists that nobody has used since this was called last.
    fn forget_idle(&self) {
        let mut lists = self.lock();
        let is_idle = |list: &mut CachedFileList| !std::mem::take(&mut list.is_used);
        let idle: Vec<_> = lists.extract_if(.., is_idle).collect();
        drop(lists);
        drop(idle); // Not under the lock: files may go with them.
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CachedFileList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
