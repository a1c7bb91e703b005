//! Adds coscan to a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
#[cfg(doc)]
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionContext;

use crate::coscan::Coscan;
use crate::engine_tables::planner::SharingPlanner;
use crate::memory::SharedMemoryPool;
use crate::optimizer::one_task::{AskedForPartitions, OneTask};
use crate::optimizer::stored_order::StoredOrder;
use crate::optimizer::top_k::TopKHint;
use crate::optimizer::unchanged_files::UnchangedFiles;
use crate::session_stores::SessionStores;
use crate::settings::SessionSettings;
use crate::tables::factory::SharedTableFactory;

/// What the name of the file type is in `STORED AS`.
const FILE_TYPE: &str = "PARQUET";

/// Adds coscan to a session with the usual settings. See [`Coscan::install`].
///
/// # Errors
/// As [`Coscan::install`].
pub fn install(context: &SessionContext, manager: &BufferManager) -> Result<()> {
    Coscan::new(manager).install(context)
}

impl Coscan {
    /// Adds coscan to a session: `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes shared tables from now on, the engine's
    /// own tables of Parquet files ([`ListingTable`]: `register_parquet`, `read_parquet`, names of files in SQL) are shared
    /// where they can be, and operators draw on the memory budget of the manager. URLs of stores that nobody registered with
    /// the session are looked up in coscan's. An optimizer rule keeps small scans in
    /// one task. `SET coscan.weight` says how much its queries count, see [`SessionSettings`]. Tables, functions and
    /// settings of the session stay; only statements prepared before are forgotten.
    ///
    /// The session's query planner is kept, with coscan around it. Who gives the session another one afterwards takes that
    /// away: then the engine's own tables are read by the engine.
    ///
    /// Call it before the session runs queries. Another call replaces what the first one installed.
    ///
    /// # Errors
    /// If the session's runtime environment cannot be changed.
    pub fn install(self, context: &SessionContext) -> Result<()> {
        let state_ref = context.state_ref();
        let mut state = state_ref.write();
        let creates_defaults = state.config().options().catalog.create_default_catalog_and_schema;
        let stores = SessionStores::around(&state, self.stores());
        let mut runtime = state.runtime_env().as_ref().clone();
        runtime.object_store_registry = stores;
        if self.shares_memory() {
            runtime.memory_pool = SharedMemoryPool::of_manager(self.manager());
        }
        let factory = Arc::new(SharedTableFactory::new(self.clone()));
        let planner = SharingPlanner::around(state.query_planner(), self.clone());
        let mut existing = state.clone();
        let mut rules = existing.physical_optimizers().to_vec();
        let ours = [
            OneTask::NAME,
            AskedForPartitions::NAME,
            TopKHint::NAME,
            StoredOrder::NAME,
            UnchangedFiles::NAME,
        ];
        rules.retain(|rule| !ours.contains(&rule.name()));
        let before = rules.iter().position(|rule| rule.name() == TopKHint::BEFORE);
        rules.insert(before.unwrap_or(rules.len()), Arc::new(TopKHint));
        rules.insert(0, Arc::new(StoredOrder));
        rules.insert(0, Arc::new(AskedForPartitions));
        rules.insert(0, Arc::new(UnchangedFiles));
        rules.push(Arc::new(OneTask));
        existing.config_mut().set_extension(Arc::new(self));
        SessionSettings::add_to(existing.config_mut());
        let mut installed = SessionStateBuilder::new_from_existing(existing)
            .with_session_id(state.session_id().to_owned())
            .with_runtime_env(Arc::new(runtime))
            .with_table_factory(FILE_TYPE.to_owned(), factory)
            .with_query_planner(Arc::new(planner))
            .with_physical_optimizer_rules(rules)
            .build();
        // The builder switches this off, so that it does not make the default catalog anew.
        installed.config_mut().options_mut().catalog.create_default_catalog_and_schema =
            creates_defaults;
        *state = installed;
        Ok(())
    }
}
