//! Adds coscan to a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
use coscan_storage::stores::Stores;
use coscan_storage::table::TableOptions;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::factory::SharedTableFactory;
use crate::first_rows::FirstRows;
use crate::memory::SharedMemoryPool;
use crate::one_task::{AskedForPartitions, OneTask};
use crate::settings::SessionSettings;
use crate::stored_order::StoredOrder;
use crate::unchanged::UnchangedFiles;

/// What the name of the file type is in `STORED AS`.
const FILE_TYPE: &str = "PARQUET";

/// Adds coscan to a session with the usual settings. See [`Coscan::install`].
///
/// # Errors
/// As [`Coscan::install`].
pub fn install(context: &SessionContext, manager: &BufferManager) -> Result<()> {
    Coscan::new(manager).install(context)
}

/// What a session needs to share scans: the buffer manager and how tables are opened.
///
/// An installed one is an extension of the session's configuration; [`Coscan::of`] finds it there.
#[derive(Clone, Debug)]
pub struct Coscan {
    manager: BufferManager,
    stores: Stores,
    table_options: TableOptions,
    shares_memory: bool,
    direct_bytes_max: u64,
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
            table_options: TableOptions::default(),
            shares_memory: true,
            direct_bytes_max: Self::DIRECT_BYTES_MAX,
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
    pub fn with_table_options(self, table_options: TableOptions) -> Self {
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

    /// Where tables are found.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// How tables are laid out.
    #[must_use]
    pub fn table_options(&self) -> TableOptions {
        self.table_options
    }

    /// The most bytes of a scan that is left to the engine.
    #[must_use]
    pub fn direct_bytes_max(&self) -> u64 {
        self.direct_bytes_max
    }

    /// What was installed in a session, if anything.
    #[must_use]
    pub fn of(config: &SessionConfig) -> Option<Arc<Self>> {
        config.get_extension::<Self>()
    }

    /// Adds coscan to a session: `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes shared tables from now on, and
    /// operators draw on the memory budget of the manager. An optimizer rule keeps small scans in one task.
    /// `SET coscan.weight` says how much its queries count, see [`SessionSettings`]. Tables, functions and settings of
    /// the session stay; only statements prepared before are forgotten.
    ///
    /// Call it before the session runs queries. Another call replaces what the first one installed.
    ///
    /// # Errors
    /// If the session's runtime environment cannot be changed.
    pub fn install(self, context: &SessionContext) -> Result<()> {
        let state_ref = context.state_ref();
        let mut state = state_ref.write();
        let creates_defaults = state.config().options().catalog.create_default_catalog_and_schema;
        let runtime = if self.shares_memory {
            let memory_pool = SharedMemoryPool::of_manager(&self.manager);
            Arc::new(RuntimeEnv { memory_pool, ..state.runtime_env().as_ref().clone() })
        } else {
            Arc::clone(state.runtime_env())
        };
        let factory = Arc::new(SharedTableFactory::new(self.clone()));
        let mut existing = state.clone();
        let mut rules = existing.physical_optimizers().to_vec();
        let ours = [
            OneTask::NAME,
            AskedForPartitions::NAME,
            FirstRows::NAME,
            StoredOrder::NAME,
            UnchangedFiles::NAME,
        ];
        rules.retain(|rule| !ours.contains(&rule.name()));
        let before = rules.iter().position(|rule| rule.name() == FirstRows::BEFORE);
        rules.insert(before.unwrap_or(rules.len()), Arc::new(FirstRows));
        rules.insert(0, Arc::new(StoredOrder));
        rules.insert(0, Arc::new(AskedForPartitions));
        rules.insert(0, Arc::new(UnchangedFiles));
        rules.push(Arc::new(OneTask));
        existing.config_mut().set_extension(Arc::new(self));
        SessionSettings::add_to(existing.config_mut());
        let mut installed = SessionStateBuilder::new_from_existing(existing)
            .with_session_id(state.session_id().to_owned())
            .with_runtime_env(runtime)
            .with_table_factory(FILE_TYPE.to_owned(), factory)
            .with_physical_optimizer_rules(rules)
            .build();
        // The builder switches this off, so that it does not make the default catalog anew.
        installed.config_mut().options_mut().catalog.create_default_catalog_and_schema =
            creates_defaults;
        *state = installed;
        Ok(())
    }
}
