//! The engines that are compared: plain DataFusion, and DataFusion with coscan under each policy.
//!
//! All engines read through the same device, with the same store, limit and meter.

mod directory;
mod kind;
mod places;
mod tables;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use coscan_core::SHARING_LEVELS;
use coscan_datafusion::{
    CoscanOptions, QueryError, SessionSettings, ShareResults, SharedTableProvider,
};
use coscan_runtime::{BufferManager, ManagerReport};
use coscan_storage::stores::{
    LimitedStore, Limits, Listing, MeteredStore, StoreMetrics, Stores, list_files,
};
use coscan_storage::table::{FileOptions, TableFile};
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::SortExpr;
use datafusion::prelude::{ParquetReadOptions, SessionContext, col};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use url::Url;

use crate::runner::{Engine, EngineError, IoCount, Read};
use crate::workload::{KEY, in_order_table};

pub use kind::{EngineKind, UnknownEngine};
use places::FilePlaces;
pub(crate) use tables::{Tables, manager_options, memory_fault};

/// The device that the data is read from.
#[derive(Debug, Clone, Default)]
pub struct Device {
    /// Its bandwidth and latency.
    pub limits: Limits,
    /// Whether local files are read through the operating system's cache, instead of past it.
    pub system_cache: bool,
}

/// The files of the table and the device that they are read from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The location of the table: a path, directory, pattern or URL.
    pub location: String,
    /// The device.
    pub device: Device,
}

impl Source {
    /// The files, listed through the device but without its limits.
    ///
    /// # Errors
    /// If nothing is found there.
    pub async fn list(&self) -> Result<Listing, EngineError> {
        let mut listing = list_files(&Stores::new(), &self.location).await?;
        if self.device.system_cache && listing.store_url.scheme() == "file" {
            listing.store = Arc::new(LocalFileSystem::new());
        }
        Ok(listing)
    }
}

/// A DataFusion session, with or without coscan, that reads one table, and optionally others, through a metered device.
///
/// A table with the key of lineitem is registered twice, without an order, and with the order of the key declared for
/// queries in order. coscan shares pages between both.
pub struct SqlEngine {
    name: String,
    context: SessionContext,
    metrics: Arc<StoreMetrics>,
    metrics_started: Instant,
    places: FilePlaces,
    manager: Option<BufferManager>,
}

impl SqlEngine {
    /// Creates a session of plain DataFusion.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub(crate) async fn datafusion(source: &Source, table: &str) -> Result<Self, EngineError> {
        let Opened { engine, urls, .. } = Opened::new(source).await?;
        let options = ParquetReadOptions::default().file_extension("");
        let frame = engine.context.read_parquet(urls.clone(), options.clone()).await?;
        let has_key = frame.schema().has_column_with_unqualified_name(KEY);
        engine.context.register_table(table, frame.into_view())?;
        if has_key {
            let options = options.file_sort_order(vec![key_order()]);
            let frame = engine.context.read_parquet(urls, options).await?;
            engine.context.register_table(in_order_table(table), frame.into_view())?;
        }
        Ok(engine)
    }

    /// Creates a session of DataFusion with coscan.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub(crate) async fn coscan(
        source: &Source,
        table: &str,
        manager: BufferManager,
        table_options: FileOptions,
    ) -> Result<Self, EngineError> {
        let opened = Opened::new(source).await?;
        let urls = opened.urls.clone();
        let (engine, coscan) = opened.with_coscan(manager, table_options)?;
        let provider = SharedTableProvider::open(&coscan, &urls).await?;
        if provider.schema().column_with_name(KEY).is_some() {
            let in_order = provider.with_orders(&[key_order()]).await?;
            engine.context.register_table(in_order_table(table), Arc::new(in_order))?;
        }
        engine.context.register_table(table, Arc::new(provider))?;
        Ok(engine)
    }

    /// Adds another table of the same store, which is read through the same device. It declares no order.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub(crate) async fn add_table(&self, name: &str, location: &str) -> Result<(), EngineError> {
        let Some(coscan) = CoscanOptions::of(&self.context.copied_config()) else {
            let options = ParquetReadOptions::default().file_extension("");
            return Ok(self.context.register_parquet(name, location, options).await?);
        };
        let provider = SharedTableProvider::open(&coscan, &[location.to_owned()]).await?;
        self.context.register_table(name, Arc::new(provider))?;
        Ok(())
    }

    /// Gives an engine of coscan the name and the settings of its kind.
    pub(crate) fn with_kind(self, kind: EngineKind) -> Self {
        self.set_share_results(kind.share_results());
        Self { name: kind.to_string(), ..self }
    }

    /// Sets with whom aggregations share results, for queries from now on.
    pub(crate) fn set_share_results(&self, share_results: ShareResults) {
        let state = self.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        if let Some(settings) = options.extensions.get_mut::<SessionSettings>() {
            settings.share_results = share_results;
        }
    }

    /// A session on the same tables whose plans have this many partitions.
    pub(crate) fn session(&self, partitions: usize) -> SessionContext {
        // The existing catalog has the tables.
        let config = self.context.copied_config().with_create_default_catalog_and_schema(false);
        let config = config.with_target_partitions(partitions);
        let state = SessionStateBuilder::new_from_existing(self.context.state());
        SessionContext::new_with_state(state.with_config(config).build())
    }

    /// The current report of coscan's manager, or `None` for plain DataFusion.
    pub fn manager_report(&self) -> Option<ManagerReport> {
        self.manager.as_ref().map(BufferManager::report)
    }
}

/// The order in which queries in order read.
fn key_order() -> Vec<SortExpr> {
    vec![col(KEY).sort(true, false)]
}

/// A session of plain DataFusion without tables, whose own store is replaced by the device.
struct Opened {
    engine: SqlEngine,
    store: Arc<dyn ObjectStore>,
    store_url: Url,
    urls: Vec<String>,
}

impl Opened {
    async fn new(source: &Source) -> Result<Self, EngineError> {
        let Listing { store, store_url, files } = source.list().await?;
        let metrics = StoreMetrics::with_log();
        let metrics_started = Instant::now();
        let limited = Arc::new(LimitedStore::new(store, source.device.limits));
        let store: Arc<dyn ObjectStore> =
            Arc::new(MeteredStore::new(limited, Arc::clone(&metrics)));
        let context = SessionContext::new();
        context.register_object_store(&store_url, Arc::clone(&store));
        let file =
            |meta| TableFile { store: Arc::clone(&store), store_url: store_url.clone(), meta };
        let files: Vec<_> = files.into_iter().map(file).collect();
        let urls = files.iter().map(TableFile::name).collect();
        let (name, places) = ("datafusion".to_owned(), FilePlaces::new(&files));
        let engine = SqlEngine { name, context, metrics, metrics_started, places, manager: None };
        Ok(Self { engine, store, store_url, urls })
    }

    /// Makes the session one of coscan, still without tables.
    fn with_coscan(
        self,
        manager: BufferManager,
        table_options: FileOptions,
    ) -> Result<(SqlEngine, CoscanOptions), EngineError> {
        let Self { engine, store, store_url, .. } = self;
        let name = manager.options().policy.name().to_owned();
        let stores = Stores::new();
        stores.register(&store_url, store);
        let coscan =
            CoscanOptions::new(&manager).with_stores(stores).with_table_options(table_options);
        coscan.clone().install(&engine.context)?;
        Ok((SqlEngine { name, manager: Some(manager), ..engine }, coscan))
    }
}

impl Engine for SqlEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn query<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<RecordBatch>, EngineError>> {
        let answer = async move { self.context.sql(sql).await?.collect().await };
        async move { Ok(answer.await.map_err(QueryError::from)?) }.boxed()
    }

    fn io(&self) -> IoCount {
        let counts = self.metrics.snapshot();
        IoCount { bytes: counts.bytes, requests: counts.requests }
    }

    fn take_reads(&self) -> Vec<Read> {
        let read = |record: coscan_storage::stores::ReadRecord| Read {
            at: self.metrics_started + record.when,
            position: self.places.position(&record.path, record.offset),
            bytes: record.bytes,
        };
        self.metrics.take_log().into_iter().map(read).collect()
    }

    fn shared_bytes(&self) -> Option<[u64; SHARING_LEVELS]> {
        let manager = self.manager.as_ref()?;
        let tables = manager.tables().into_iter().filter(|table| table.scans > 0);
        let maps = tables.filter_map(|table| manager.pool_map(table.id, 1));
        Some(maps.fold([0; SHARING_LEVELS], |sums, map| {
            std::array::from_fn(|level| sums[level] + map.shared_bytes[level])
        }))
    }
}
