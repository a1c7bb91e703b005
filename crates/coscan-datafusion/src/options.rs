//! The configuration of coscan in a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
use coscan_storage::stores::Stores;
use coscan_storage::table::FileOptions;
use datafusion::prelude::SessionConfig;

use crate::datafusion_tables::file_list_cache::FileListCache;
use crate::planning::selectivity::DIRECT_BYTES_MAX;
use crate::settings::SessionSettings;

/// The configuration of a session that shares scans: the buffer manager, and how tables are opened.
///
/// Once installed, it is an extension of the session's configuration, where [`CoscanOptions::of`] finds it.
#[derive(Clone, Debug)]
pub struct CoscanOptions {
    manager: BufferManager,
    stores: Stores,
    table_options: FileOptions,
    shares_memory: bool,
    direct_bytes_max: u64,
    file_list_cache: Arc<FileListCache>,
}

impl CoscanOptions {
    /// The default settings: the stores of the manager, found by URL; chunks of the default size; one memory budget for
    /// pages and operators.
    #[must_use]
    pub fn new(manager: &BufferManager) -> Self {
        Self {
            manager: manager.clone(),
            stores: manager.stores().clone(),
            table_options: FileOptions::default(),
            shares_memory: true,
            direct_bytes_max: DIRECT_BYTES_MAX,
            file_list_cache: FileListCache::of(manager),
        }
    }

    /// Reads tables from these stores. A store that the session has registered for a URL takes precedence. Local files
    /// are read through these stores unless the session has replaced its own store of local files.
    #[must_use]
    pub fn with_stores(self, stores: Stores) -> Self {
        Self { stores, ..self }
    }

    /// Divides tables into chunks and pages as these options say.
    #[must_use]
    pub fn with_table_options(self, table_options: FileOptions) -> Self {
        Self { table_options, ..self }
    }

    /// Keeps the session's own memory pool. Its operators then do not count against the budget of the manager.
    #[must_use]
    pub fn with_session_memory_pool(self) -> Self {
        Self { shares_memory: false, ..self }
    }

    /// Leaves selective scans of at most this many bytes to the engine's own scan. The default is 4 MiB. With 0 every
    /// scan is shared, also scans of a few first rows.
    #[must_use]
    pub fn with_direct_bytes_max(self, direct_bytes_max: u64) -> Self {
        Self { direct_bytes_max, ..self }
    }

    /// The manager that all scans share.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        &self.manager
    }

    /// The lists of files that queries of the manager have read recently.
    pub(crate) fn file_list_cache(&self) -> &FileListCache {
        &self.file_list_cache
    }

    /// The stores that tables are read from.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The options of opening tables: the size of chunks and the layout of pages.
    #[must_use]
    pub fn table_options(&self) -> FileOptions {
        self.table_options
    }

    /// The most bytes of a selective scan that is left to the engine.
    #[must_use]
    pub fn direct_bytes_max(&self) -> u64 {
        self.direct_bytes_max
    }

    /// Whether operators draw on the budget of the manager.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shares_memory
    }

    /// Adds coscan to the configuration of a session that executes plans and makes none, as tasks of distributed queries do.
    pub fn add_to(self, config: &mut SessionConfig) {
        config.set_extension(Arc::new(self));
        SessionSettings::add_to(config);
    }

    /// The configuration that is installed in a session, if any.
    #[must_use]
    pub fn of(config: &SessionConfig) -> Option<Arc<Self>> {
        config.get_extension::<Self>()
    }
}
