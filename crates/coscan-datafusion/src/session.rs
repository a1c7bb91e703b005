//! Adds coscan to a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
#[cfg(doc)]
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionContext;

use crate::datafusion_tables::planner::SharingPlanner;
use crate::memory::SharedMemoryPool;
use crate::optimizer::changed_rows::ChangedRows;
use crate::optimizer::clustered_joins::ClusteredJoins;
use crate::optimizer::filter_pushdown::SoundFilterPushdown;
use crate::optimizer::grouping_sets::GroupingSets;
use crate::optimizer::in_order_tasks::InOrderTasks;
use crate::optimizer::needed_order::NeededOrder;
use crate::optimizer::ordered_aggregates::OrderedAggregates;
use crate::optimizer::remove_repartition::{RemoveRepartition, UserPartitioning};
use crate::optimizer::top_k::TopKPushdown;
use crate::optimizer::unchanged_files::UnchangedFiles;
use crate::options::CoscanOptions;
use crate::session_stores::SessionStores;
use crate::settings::SessionSettings;
use crate::tables::factory::SharedTableFactory;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The file type in `STORED AS`.
const FILE_TYPE: &str = "PARQUET";

/// Adds coscan to a session with the default settings. See [`CoscanOptions::install`].
///
/// # Errors
/// As [`CoscanOptions::install`].
pub fn install(context: &SessionContext, manager: &BufferManager) -> Result<()> {
    CoscanOptions::new(manager).install(context)
}

impl CoscanOptions {
    /// Adds coscan to a session, which has these effects:
    /// - `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes shared tables.
    /// - The engine's own tables of Parquet files ([`ListingTable`]: `register_parquet`, `read_parquet`, names of files
    ///   in SQL) are shared where possible.
    /// - Operators draw on the memory budget of the manager.
    /// - URLs without a store in the session are resolved in coscan's stores.
    /// - An optimizer rule keeps small queries in one task.
    /// - Some wrong answers of the engine are corrected, whatever tables a query reads: filters on one of several
    ///   columns of the same name, and grouping sets of ordered tables. DELETE and UPDATE are refused where the engine
    ///   would lose their WHERE.
    /// - `SET coscan.weight` sets the weight of the session's queries, `SET coscan.sharing` whether they share reads
    ///   ([`SessionSettings`]).
    ///
    /// Tables, functions and settings of the session stay. Prepared statements are lost.
    ///
    /// Coscan wraps the session's query planner. If the session gets another planner afterwards, the engine reads its
    /// own tables itself again.
    ///
    /// Call it before the session runs queries. Another call replaces the first one.
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
        let rules = physical_rules(existing.physical_optimizers());
        let mut logical_rules = existing.optimizers().to_vec();
        logical_rules.retain(|rule| rule.name() != ChangedRows::NAME);
        logical_rules.push(Arc::new(ChangedRows));
        existing.config_mut().set_extension(Arc::new(self));
        SessionSettings::add_to(existing.config_mut());
        let mut installed = SessionStateBuilder::new_from_existing(existing)
            .with_session_id(state.session_id().to_owned())
            .with_runtime_env(Arc::new(runtime))
            .with_table_factory(FILE_TYPE.to_owned(), factory)
            .with_query_planner(Arc::new(planner))
            .with_optimizer_rules(logical_rules)
            .with_physical_optimizer_rules(rules)
            .build();
        // The builder switches this off, so as not to make the default catalog again.
        installed.config_mut().options_mut().catalog.create_default_catalog_and_schema =
            creates_defaults;
        *state = installed;
        Ok(())
    }
}

/// The rules of a session, with coscan's.
fn physical_rules(existing: &[Rule]) -> Vec<Rule> {
    let mut rules = existing.to_vec();
    let ours = [
        RemoveRepartition::NAME,
        UserPartitioning::NAME,
        TopKPushdown::NAME,
        NeededOrder::NAME,
        ClusteredJoins::NAME,
        OrderedAggregates::NAME,
        InOrderTasks::NAME,
        UnchangedFiles::NAME,
        GroupingSets::NAME,
    ];
    rules.retain(|rule| !ours.contains(&rule.name()));
    for rule in &mut rules {
        if let Some(sound) = SoundFilterPushdown::instead_of(rule.name()) {
            *rule = Arc::new(sound);
        }
    }
    insert_before(&mut rules, TopKPushdown::BEFORE, Arc::new(TopKPushdown));
    insert_before(&mut rules, ClusteredJoins::BEFORE, Arc::new(ClusteredJoins));
    insert_before(&mut rules, OrderedAggregates::BEFORE, Arc::new(OrderedAggregates));
    insert_before(&mut rules, InOrderTasks::BEFORE, Arc::new(InOrderTasks));
    rules.insert(0, Arc::new(NeededOrder));
    rules.insert(0, Arc::new(UserPartitioning));
    rules.insert(0, Arc::new(UnchangedFiles));
    rules.insert(0, Arc::new(GroupingSets));
    rules.push(Arc::new(RemoveRepartition));
    rules
}

/// Adds a rule before another, or at the end if the session does not have that one.
fn insert_before(rules: &mut Vec<Rule>, before: &str, rule: Rule) {
    let position = rules.iter().position(|rule| rule.name() == before);
    rules.insert(position.unwrap_or(rules.len()), rule);
}
