//! Adds coscan to a session.

use std::sync::Arc;

use coscan_runtime::BufferManager;
#[cfg(doc)]
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionContext;

use crate::aggregating::CHEAPER_AGGREGATES;
use crate::datafusion_tables::planner::SharingPlanner;
use crate::dml::rewrite::RewriteDml;
use crate::filtering::CHEAPER_FILTERS;
use crate::memory::SharedMemoryPool;
use crate::optimizer::changed_rows::ChangedRows;
use crate::optimizer::clustered_joins::CLUSTERED_JOINS;
use crate::optimizer::common_subplans::COMMON_SUBPLANS;
use crate::optimizer::dynamic_filters::DYNAMIC_FILTERS;
use crate::optimizer::filter_pushdown::SOUND_FILTER_PUSHDOWN;
use crate::optimizer::grouping_sets::GROUPING_SETS;
use crate::optimizer::in_order_tasks::IN_ORDER_TASKS;
use crate::optimizer::needed_order::NEEDED_ORDER;
use crate::optimizer::ordered_aggregates::ORDERED_AGGREGATES;
use crate::optimizer::remove_repartition::{REMOVE_REPARTITION, USER_PARTITIONING};
use crate::optimizer::rule::Rule;
use crate::optimizer::shared_aggregates::SHARED_AGGREGATES;
use crate::optimizer::top_k::TOP_K_PUSHDOWN;
use crate::optimizer::unchanged_files::UNCHANGED_FILES;
use crate::options::CoscanOptions;
use crate::session_stores::SessionStores;
use crate::tables::factory::SharedTableFactory;
use crate::tables::time_travel::TimeTravel;

type SharedRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rules that run before all others.
const FIRST: [Rule; 4] = [GROUPING_SETS, UNCHANGED_FILES, USER_PARTITIONING, NEEDED_ORDER];

/// The rules that run before some rule of the engine.
const BEFORE: [(&str, Rule); 4] = [
    ("FilterPushdown(Post)", TOP_K_PUSHDOWN),
    ("EnsureRequirements", CLUSTERED_JOINS),
    ("EnsureRequirements", ORDERED_AGGREGATES),
    ("EnsureRequirements", IN_ORDER_TASKS),
];

/// The rules that run after all others.
const LAST: [Rule; 6] = [
    REMOVE_REPARTITION,
    CHEAPER_FILTERS,
    SHARED_AGGREGATES,
    COMMON_SUBPLANS,
    DYNAMIC_FILTERS,
    CHEAPER_AGGREGATES,
];

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
    /// - INSERT, UPDATE, DELETE and MERGE change [managed tables](crate::ManagedDatabase).
    /// - Operators draw on the memory budget of the manager.
    /// - URLs without a store in the session are resolved in coscan's stores.
    /// - An optimizer rule keeps small queries in one task; filters and arithmetic of decimals become cheaper.
    /// - Some wrong answers of the engine are corrected, whatever tables a query reads: filters on one of several
    ///   columns of the same name, grouping sets of ordered tables, and minima and maxima of expressions. DELETE and UPDATE are refused where the engine
    ///   would lose their WHERE.
    /// - `SET coscan.weight` sets the weight of the session's queries, `SET coscan.sharing` whether they share reads
    ///   ([`SessionSettings`](crate::SessionSettings)).
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
        self.add_to(existing.config_mut());
        let mut builder = SessionStateBuilder::new_from_existing(existing);
        if let Some(analyzer) = builder.analyzer() {
            analyzer.rules.retain(|rule| rule.name() != RewriteDml::NAME);
            analyzer.rules.insert(0, Arc::new(RewriteDml));
        }
        let mut installed = builder
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
        installed.register_relation_planner(Arc::new(TimeTravel))?;
        *state = installed;
        Ok(())
    }
}

/// The rules of a session, with coscan's.
fn physical_rules(existing: &[SharedRule]) -> Vec<SharedRule> {
    let before = BEFORE.iter().map(|(_, rule)| rule);
    let ours: Vec<_> = FIRST.iter().chain(before).chain(&LAST).map(|rule| rule.name).collect();
    let theirs = existing.iter().filter(|rule| !ours.contains(&rule.name()));
    let sound = theirs.map(|rule| {
        let sound = SOUND_FILTER_PUSHDOWN.iter().find(|sound| sound.name == rule.name());
        sound.map_or_else(|| Arc::clone(rule), |sound| Arc::new(*sound))
    });
    let first = FIRST.into_iter().map(|rule| Arc::new(rule) as SharedRule);
    let mut rules: Vec<_> = first.chain(sound).collect();
    for (before, rule) in BEFORE {
        // It is the last one if the session does not have the other.
        let position = rules.iter().position(|other| other.name() == before);
        rules.insert(position.unwrap_or(rules.len()), Arc::new(rule));
    }
    rules.extend(LAST.into_iter().map(|rule| Arc::new(rule) as SharedRule));
    rules
}
