//! Random settings: of the session, of the buffer manager, and of how tables are made.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use tokio::sync::Mutex;

use crate::random_queries::tables::{self, Declared};
use crate::support::Seeded;

const DECODE_BYTES: u64 = 256 << 20;
/// Plain DataFusion has no limit.
const OPERATOR_BYTES: u64 = 2 << 30;

/// The settings of a query.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    sharing: Sharing,
    /// Options of the session, in both engines.
    options: Vec<(&'static str, &'static str)>,
}

/// The settings of coscan alone. Queries with the same value share a manager.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Sharing {
    policy: PolicyKind,
    two_chunks: bool,
    /// Whether the tables are those of the engine, shared query by query.
    datafusion_tables: bool,
    /// Whether selective scans may be left to the engine.
    direct: bool,
    /// Whether tables have replicas.
    replicas: bool,
}

impl Settings {
    pub(crate) fn new(random: &mut Seeded) -> Self {
        let policy = match random.below(10) {
            0..=6 => PolicyKind::Relevance,
            _ => *random.pick(&PolicyKind::ALL),
        };
        let (two_chunks, datafusion_tables) = (random.chance(40), random.chance(20));
        let direct = random.chance(20);
        // This uses other random numbers, so that the queries of a number stay the same.
        let replicas = !datafusion_tables && Seeded::new(!random.0.0).chance(40);
        let sharing = Sharing { policy, two_chunks, datafusion_tables, direct, replicas };
        let mut options = vec![
            ("datafusion.execution.target_partitions", *random.pick(&["1", "2", "4"])),
            ("datafusion.execution.batch_size", *random.pick(&["16", "100", "8192"])),
            ("datafusion.optimizer.prefer_hash_join", *random.pick(&["true", "false"])),
        ];
        let sometimes = [
            ("datafusion.execution.parquet.pushdown_filters", "true"),
            ("datafusion.execution.parquet.pruning", "false"),
            ("datafusion.execution.collect_statistics", "false"),
            ("datafusion.optimizer.enable_dynamic_filter_pushdown", "false"),
            ("datafusion.optimizer.hash_join_single_partition_threshold", "0"),
            ("datafusion.optimizer.hash_join_single_partition_threshold_rows", "0"),
            ("datafusion.optimizer.repartition_aggregations", "false"),
            ("datafusion.optimizer.repartition_sorts", "false"),
            ("datafusion.optimizer.prefer_existing_sort", "true"),
            ("datafusion.optimizer.prefer_existing_union", "true"),
            ("datafusion.optimizer.enable_round_robin_repartition", "false"),
        ];
        options.extend(sometimes.into_iter().filter(|_| random.chance(15)));
        Self { sharing, options }
    }
}

/// Sessions on the tables of a directory.
pub(crate) struct Sessions<'a> {
    data: &'a Path,
    /// A number for the changes of the tables, if they are tables of a database.
    changes: Option<u64>,
    plain: SessionContext,
    chunk_bytes_max: u64,
    shared: Mutex<HashMap<Sharing, SessionContext>>,
}

impl<'a> Sessions<'a> {
    pub(crate) async fn new(data: &'a Path, changes: Option<u64>) -> Self {
        let plain = SessionContext::new();
        match changes {
            // With tables in order, plain DataFusion sometimes returns groups of ROLLUP and CUBE twice.
            None => tables::create(&plain, data, Declared::Nothing).await,
            Some(seed) => {
                let manager = crate::support::manager(PolicyKind::Relevance);
                let changed = SessionContext::new();
                CoscanOptions::new(&manager).install(&changed).unwrap();
                tables::create_changed(&changed, data, seed).await;
                tables::copy(&changed, &plain).await;
            }
        }
        let shared = crate::support::shared(&crate::support::manager(PolicyKind::Relevance));
        tables::create(&shared, data, Declared::Order).await;
        let chunk_bytes_max = crate::support::chunk_bytes_max(&shared).await;
        Self { data, changes, plain, chunk_bytes_max, shared: Mutex::default() }
    }

    /// A session without coscan.
    pub(crate) fn plain(&self, settings: &Settings) -> SessionContext {
        with_options(&self.plain, settings)
    }

    /// A session with coscan.
    pub(crate) async fn shared(&self, settings: &Settings) -> SessionContext {
        let mut sharing = settings.sharing;
        if self.changes.is_some() {
            // Tables of a database are of one kind.
            sharing = Sharing { datafusion_tables: false, replicas: false, ..sharing };
        }
        let mut shared = self.shared.lock().await;
        if let Some(session) = shared.get(&sharing) {
            return with_options(session, settings);
        }
        let session = self.open(sharing).await;
        with_options(shared.entry(sharing).or_insert(session), settings)
    }

    /// The managers of all sessions with coscan.
    pub(crate) async fn managers(&self) -> Vec<BufferManager> {
        let shared = self.shared.lock().await;
        let managers = shared.values().map(|session| {
            CoscanOptions::of(&session.copied_config()).expect("installed").manager().clone()
        });
        managers.collect()
    }

    async fn open(&self, sharing: Sharing) -> SessionContext {
        let pool_bytes = if sharing.two_chunks { 2 * self.chunk_bytes_max } else { 64 << 20 };
        let usual = Options::with_pool_bytes(pool_bytes, DECODE_BYTES).policy(sharing.policy);
        let memory_bytes = usual.memory_bytes + OPERATOR_BYTES;
        let manager = BufferManager::new(Options { memory_bytes, ..usual }).unwrap();
        let mut coscan =
            CoscanOptions::new(&manager).with_table_options(crate::support::TABLE_OPTIONS);
        if !sharing.direct {
            coscan = coscan.with_direct_bytes_max(0);
        }
        let session = SessionContext::new();
        coscan.install(&session).unwrap();
        if let Some(seed) = self.changes {
            tables::create_changed(&session, self.data, seed).await;
            return session;
        }
        if sharing.datafusion_tables {
            let factory = Arc::new(ListingTableFactory::new());
            session.state_ref().write().table_factories_mut().insert("PARQUET".to_owned(), factory);
        }
        let declared = if sharing.replicas { Declared::OrderAndReplicas } else { Declared::Order };
        tables::create(&session, self.data, declared).await;
        session
    }
}

/// A session with the same tables and other options.
fn with_options(session: &SessionContext, settings: &Settings) -> SessionContext {
    // The existing catalog has the tables.
    let mut config = session.copied_config().with_create_default_catalog_and_schema(false);
    for (name, value) in &settings.options {
        config.options_mut().set(name, value).unwrap();
    }
    let state = SessionStateBuilder::new_from_existing(session.state()).with_config(config);
    SessionContext::new_with_state(state.build())
}
