//! What of coscan is installed in a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
use coscan_storage::stores::Stores;
use coscan_storage::table::FileOptions;
use datafusion::prelude::SessionConfig;

use crate::file_list_cache::FileListCache;

/// What a session needs to share scans: the buffer manager and how tables are opened.
///
/// An installed one is an extension of the session's configuration; [`Coscan::of`] finds it there.
#[derive(Clone, Debug)]
pub struct Coscan {
    manager: BufferManager,
    stores: Stores,
    table_options: FileOptions,
    shares_memory: bool,
    direct_bytes_max: u64,
    file_list_cache: Arc<FileListCache>,
}

impl Coscan {
    /// Reads, once read past the pool, that are so small that sharing them gains nothing.
    const DIRECT_BYTES_MAX: u64 = 4 * 1024 * 1024;

    /// The usual settings: the stores of the manager, found by their URL, chunks of the usual size, one memory budget for all.
    #[must_use]
    pub fn new(manager: &BufferManager) -> Self {
        Self {
            manager: manager.clone(),
            stores: manager.stores().clone(),
            table_options: FileOptions::default(),
            shares_memory: true,
            direct_bytes_max: Self::DIRECT_BYTES_MAX,
            file_list_cache: FileListCache::of(manager),
        }
    }

    /// Finds tables in these stores. A store that the session has registered for a URL wins, except that local files
    /// are read by these stores unless the session has replaced its own store of local files.
    #[must_use]
    pub fn with_stores(self, stores: Stores) -> Self {
        Self { stores, ..self }
    }

    /// Lays tables out like this.
    #[must_use]
    pub fn with_table_options(self, table_options: FileOptions) -> Self {
        Self { table_options, ..self }
    }

    /// Leaves the session its own memory pool. Its operators then do not count against the budget of the manager.
    #[must_use]
    pub fn with_session_memory_pool(self) -> Self {
        Self { shares_memory: false, ..self }
    }

    /// Scans that need few bytes of the chunks they touch, and at most this many, are left to the engine's own scan.
    /// 0 shares every scan, also of a few first rows.
    #[must_use]
    pub fn with_direct_bytes_max(self, direct_bytes_max: u64) -> Self {
        Self { direct_bytes_max, ..self }
    }

    /// The manager that all scans share.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        &self.manager
    }

    /// The lists of files that queries of the manager have read of late.
    pub(crate) fn file_list_cache(&self) -> &FileListCache {
        &self.file_list_cache
    }

    /// Where tables are found.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// How tables are laid out.
    #[must_use]
    pub fn table_options(&self) -> FileOptions {
        self.table_options
    }

    /// The most bytes of a scan that is left to the engine.
    #[must_use]
    pub fn direct_bytes_max(&self) -> u64 {
        self.direct_bytes_max
    }

    /// Whether operators draw on the budget of the manager.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shares_memory
    }

    /// What was installed in a session, if anything.
    #[must_use]
    pub fn of(config: &SessionConfig) -> Option<Arc<Self>> {
        config.get_extension::<Self>()
    }
}
