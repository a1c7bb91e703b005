//! SQL on the tables of the server, restricted to those granted to the user. All protocols go through here.
//!
//! A [`Session`] (`session`) is a user with `settings` and a `time_zone`, after a
//! `login`. It sees the tables of its own `catalog`, which are opened (`opening`) for all. A statement is parsed, and
//! rewritten where PostgreSQL's syntax is not DataFusion's (`parsing` with `syntax`; `pg_catalog` for statements that
//! read it), and [planned](SqlService::plan) (`plan`; `plan_parameters` and `array_parameters` give types to parameters,
//! `decimals` knows those) on threads of its own (`planning`), unless its plan is too large (`plan_size`) or its text
//! takes too much memory (`text_memory`).
//!
//! It is then [run](SqlService::run) (`run`) in a `state` of DataFusion with a limit on its `memory`, as tasks (`query_task`)
//! on threads that serve no connections (`query_threads`), that its joins give up now and then (`yielding`) and that users
//! take in turns (`fair_share`); its `placement` may be `distributed` over workers; its `allocations` are watched. What is `light` needs no slot. `statements` that concern the session
//! only never reach DataFusion. Those that change tables (`write_statements`), or copy rows into them (`copy_in`), need the right to. Clients find the `functions`, the `pg_catalog` and the `information_schema` that they
//! expect, with `empty_tables`. `errors` are told apart and hold no credentials.

mod allocations;
mod array_parameters;
mod batch_rows;
mod catalog;
mod column_names;
mod command_tag;
mod copy_in;
mod decimals;
#[cfg(feature = "distributed")]
mod distributed;
mod empty_tables;
mod errors;
mod fair_share;
mod functions;
mod information_schema;
mod light;
mod login;
mod memory;
mod opening;
mod parsing;
mod pg_catalog;
mod placement;
mod plan;
mod plan_parameters;
mod plan_size;
mod planning;
mod query_task;
mod query_threads;
mod run;
mod session;
mod settings;
mod state;
mod statements;
mod syntax;
mod text_memory;
mod time_zone;
mod write_statements;
mod yielding;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use arc_swap::ArcSwap;
use coscan_datafusion::{CoscanOptions, ManagedDatabase, SharedTableProvider};
use coscan_runtime::{BufferManager, OptionsError};
use coscan_transport::Transport;
use datafusion::catalog::CatalogProviderList;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_pg_catalog::pg_catalog::PgCatalogStaticTables;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::setup_pg_catalog;
use tokio::sync::Semaphore;

use crate::config::{Limits, TableLocation};
use crate::queries::Queries;
use crate::users::Users;
use allocations::AllocationWatch;
pub use allocations::{Allocator, set_allocator};
use catalog::Tables;
pub use catalog::{CATALOG, SCHEMA};
pub use command_tag::Command;
pub(crate) use copy_in::{Copied, RunningCopy};
pub(crate) use decimals::decimal_digits;
pub use errors::from_datafusion as query_error;
use fair_share::Turns;
pub use login::{LoginError, Proof};
use memory::MemoryLimits;
use parsing::Parser;
pub use parsing::check_chains;
pub(crate) use pg_catalog::is_list_of_oids;
pub use plan::{Planned, Sql};
pub use query_threads::STACK_BYTES;
use query_threads::{QueryPools, QueryThreads};
pub use session::Session;
pub use settings::Settings;
pub use settings::constants::SERVER_VERSION;
pub(crate) use syntax::normalized;
pub(crate) use text_memory::TextMemory;
use yielding::YieldingJoins;

/// Runs SQL for the users of a server.
#[derive(Debug)]
pub struct SqlService {
    users: Arc<Users>,
    queries: Arc<Queries>,
    limits: Limits,
    coscan: CoscanOptions,
    tables: Arc<ArcSwap<Tables>>,
    /// The database whose tables users may change.
    database: OnceLock<ManagedDatabase>,
    /// The connections to other servers, if it shares.
    transport: OnceLock<Arc<Transport>>,
    #[cfg(feature = "distributed")]
    distributed: distributed::State,
    /// The state that all sessions share: functions, rules, settings.
    base: SessionState,
    /// Functions that depend on settings of the session, such as its time zone.
    of_settings: Vec<Arc<ScalarUDF>>,
    pg_tables: Arc<PgCatalogStaticTables>,
    parser: Arc<Parser>,
    pools: Arc<QueryPools>,
    /// The processors, which are shared among the users of these threads.
    turns: Arc<Turns>,
    allocations: Arc<AllocationWatch>,
    memory_limits: Arc<MemoryLimits>,
    /// Threads for statements that need no slot.
    light_threads: QueryThreads,
    /// Limits concurrent checks of passwords. Each takes some milliseconds of processor time, and clients that are not
    /// logged in must not occupy all processors.
    password_checks: Semaphore,
}

/// The maximum number of concurrent checks of passwords.
const PASSWORD_CHECKS_MAX: usize = 4;

/// The number of threads for statements that need no slot.
const LIGHT_THREADS: usize = 2;

/// The reason why a service cannot be created, or its tables cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum SqlServiceError {
    /// The memory settings do not fit together.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Tables cannot be opened. There is one sentence for each table.
    #[error("{}", .0.join("\n"))]
    Tables(Vec<String>),
    /// The system cannot create threads for queries.
    #[error("cannot start threads for queries: {0}; raise the limit on threads")]
    Threads(std::io::Error),
    /// DataFusion rejects its configuration.
    #[error("cannot set up SQL: {0}")]
    Sql(String),
}

impl SqlService {
    /// Creates a service without tables on a manager.
    ///
    /// # Errors
    /// If DataFusion rejects the configuration, or the system cannot create threads.
    pub fn new(
        manager: &BufferManager,
        users: Arc<Users>,
        limits: &Limits,
    ) -> Result<Self, SqlServiceError> {
        let cores = available_parallelism().map_or(1, usize::from);
        let refused = |error: DataFusionError| SqlServiceError::Sql(error.to_string());
        let config = SessionConfig::new().with_default_catalog_and_schema(CATALOG, SCHEMA);
        let context = SessionContext::new_with_config(config);
        // This comes before coscan is installed, which must change the session last.
        setup_pg_catalog(&context, CATALOG, EmptyContextProvider)
            .map_err(|error| refused(*error))?;
        let coscan = CoscanOptions::new(manager);
        coscan.clone().install(&context).map_err(refused)?;
        let mut base = SessionStateBuilder::new_from_existing(context.state())
            .with_physical_optimizer_rule(Arc::new(YieldingJoins))
            .build();
        let pg_tables = PgCatalogStaticTables::try_new().map_err(refused)?;
        for function in functions::of_all(&pg_tables).map_err(refused)? {
            base.register_udf(Arc::new(function)).map_err(refused)?;
        }
        base.register_expr_planner(Arc::new(functions::BooleanTexts)).map_err(refused)?;
        base.register_function_rewrite(Arc::new(functions::BooleanTexts)).map_err(refused)?;
        base.register_function_rewrite(Arc::new(functions::Patterns)).map_err(refused)?;
        base.register_function_rewrite(Arc::new(functions::BoundFunctions)).map_err(refused)?;
        let options = base.config().options();
        let functions = base.scalar_functions().iter();
        let of_settings = functions.filter(|(name, function)| {
            // Each function is listed once, whatever other names it has.
            *name == function.name() && function.inner().with_updated_config(options).is_some()
        });
        let of_settings = of_settings.map(|(_, function)| Arc::clone(function)).collect();
        let knows_users = users.check_passwords();
        Ok(Self {
            queries: Queries::new(limits, knows_users),
            users,
            limits: limits.clone(),
            coscan,
            tables: Arc::default(),
            database: OnceLock::new(),
            transport: OnceLock::new(),
            #[cfg(feature = "distributed")]
            distributed: distributed::State::default(),
            base,
            of_settings,
            pg_tables: Arc::new(pg_tables),
            parser: Arc::default(),
            pools: QueryPools::new(cores).map_err(SqlServiceError::Threads)?,
            turns: Turns::new(cores),
            allocations: AllocationWatch::new(manager),
            memory_limits: Arc::new(MemoryLimits::new(manager, limits, knows_users)),
            light_threads: QueryThreads::new(LIGHT_THREADS).map_err(SqlServiceError::Threads)?,
            password_checks: Semaphore::new(PASSWORD_CHECKS_MAX),
        })
    }

    /// Opens tables that replace the current ones. Running queries keep theirs.
    ///
    /// # Errors
    /// If tables cannot be opened. The error names all of them, and the current tables stay.
    pub async fn open_tables(
        &self,
        locations: &BTreeMap<String, TableLocation>,
    ) -> Result<(), SqlServiceError> {
        self.replace_tables(self.opened_tables(locations).await?);
        Ok(())
    }

    /// Replaces the current tables. Running queries keep theirs.
    pub(crate) fn replace_tables(&self, tables: Tables) {
        self.tables.store(Arc::new(tables));
    }

    /// Adds a table that was opened before, in place of one of the same name, until tables are replaced.
    pub fn add_table(&self, name: &str, table: &SharedTableProvider) {
        let table = Arc::new(table.clone());
        self.tables.rcu(|tables| {
            let mut tables = Tables::clone(tables);
            tables.insert(name.to_owned(), Arc::clone(&table));
            tables
        });
    }

    /// The database whose tables users may change, if there is one.
    pub(crate) fn database(&self) -> Option<&ManagedDatabase> {
        self.database.get()
    }

    /// The connections to other servers, if it shares reads.
    #[must_use]
    pub fn transport(&self) -> Option<&Arc<Transport>> {
        self.transport.get()
    }

    /// Sets the connections through which reads are shared. The system tables show them.
    pub(crate) fn share_through(&self, transport: Arc<Transport>) {
        let _only_once = self.transport.set(transport);
    }

    /// The users of the server.
    #[must_use]
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The queries of all users.
    #[must_use]
    pub fn queries(&self) -> &Arc<Queries> {
        &self.queries
    }

    /// The limits on clients.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns freed memory to the system as needed. Completes only if the program has set no allocator.
    pub(crate) async fn give_back_memory(&self) {
        self.allocations.give_back().await;
    }

    /// The manager that all queries share.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        self.coscan.manager()
    }

    /// The catalogs, schemas and tables that a session sees. [`CATALOG`] is the only catalog.
    #[must_use]
    pub fn catalogs(&self, session: &Session) -> Arc<dyn CatalogProviderList> {
        Arc::clone(&session.catalogs) as Arc<dyn CatalogProviderList>
    }
}
