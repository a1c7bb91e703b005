//! The files that a plan of the engine's own scan reads, and the shared snapshot of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use coscan_runtime::OpenError;
use coscan_storage::table::{
    ConstantColumn, FileOptions, FileToOpen, ParquetFile, ParquetTable, TableColumns, TableError,
    TableFile, widens,
};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::config::ParquetEncryptionOptions;
use datafusion::common::pruning::PrunableStatistics;
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource_parquet::metadata::CachedParquetMetaData;
use log::debug;
use object_store::{ObjectMeta, ObjectStore};
use parquet::file::metadata::ParquetMetaData;
use url::Url;

use crate::datafusion_tables::file_list_cache::ListKey;
use crate::error::{from_open, from_table};
use crate::options::CoscanOptions;
use crate::planning::plan::Pushdown;
use crate::tables::format::column_types;
use crate::tables::listing::identity;
use crate::tables::opener::registered;
use crate::tables::source::ScanSource;

/// The files that a plan of the engine reads, and the types they are read as.
pub(crate) struct FileList<'a> {
    pub(crate) table: &'a ListingTable,
    /// The name of the table in the query.
    name: &'a str,
    /// The schema of the table: the stored columns, followed by the columns of directories.
    pub(crate) schema: SchemaRef,
    /// Whether its files keep an order that the table does not declare.
    pub(crate) has_undeclared_order: bool,
    options: FileOptions,
    /// The files in the order of their paths.
    files: Vec<&'a PartitionedFile>,
}

impl<'a> FileList<'a> {
    /// Returns `None` if the plan does more than read Parquet files in ways that coscan supports.
    pub(crate) fn of(
        table: &'a ListingTable,
        name: &'a str,
        plan: &'a Arc<dyn ExecutionPlan>,
        usual: FileOptions,
    ) -> Option<Self> {
        let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
        let config = source.downcast_ref::<FileScanConfig>()?;
        let parquet = config.file_source.downcast_ref::<ParquetSource>()?.table_parquet_options();
        let schema = table.schema();
        let is_usual = config.expr_adapter_factory.is_none()
            && config.output_partitioning.is_none()
            && config.constraints.iter().next().is_none()
            && parquet.crypto == ParquetEncryptionOptions::default()
            && schema.metadata().is_empty();
        if !is_usual {
            return None;
        }
        let mut types = column_types(&parquet.global).ok()??;
        // Strings are read as the type of the table, since views would only be copied into it.
        types.views &= !schema.fields().iter().any(|field| has_texts(field.data_type()));
        let mut files: Vec<_> = config.file_groups.iter().flat_map(FileGroup::iter).collect();
        files.sort_unstable_by(|a, b| a.object_meta.location.cmp(&b.object_meta.location));
        Some(Self {
            table,
            name,
            schema,
            has_undeclared_order: !config.output_ordering.is_empty()
                && table.options().file_sort_order.is_empty(),
            options: FileOptions { types, ..usual },
            files,
        })
    }

    /// The key of the list in the cache: plans with the same key have the same source.
    pub(crate) fn key(&self, coscan: &CoscanOptions, store: &Arc<dyn ObjectStore>) -> ListKey {
        let mut hasher = DefaultHasher::new();
        self.schema.fields().hash(&mut hasher);
        for PartitionedFile { object_meta: meta, .. } in &self.files {
            (&meta.location, meta.size, &meta.e_tag, meta.last_modified).hash(&mut hasher);
        }
        let (place, orders) = (self.identity(), &self.table.options().file_sort_order);
        let (name, direct_bytes_max) = (self.name, coscan.direct_bytes_max());
        let store = Arc::as_ptr(store).cast::<()>();
        let place = format!("{name} {place} {orders:?} {store:?} {direct_bytes_max}");
        ListKey { place, hash: hasher.finish() }
    }

    /// Whether a snapshot that was found by the key has these files.
    pub(crate) fn is_of(&self, source: &ScanSource, store: &Arc<dyn ObjectStore>) -> bool {
        let table = source.table.table();
        let known = table.parquet_files().iter().map(|file| file.file());
        table.schema().fields() == self.schema.fields()
            && known.clone().all(|file| Arc::ptr_eq(&file.store, store))
            && known.map(|file| &file.meta).eq(self.metas())
    }

    fn metas(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.files.iter().map(|file| &file.object_meta)
    }

    fn identity(&self) -> String {
        identity(self.table.table_paths(), self.options)
    }

    /// Registers a snapshot of these files. Returns `None` if coscan cannot read them as the engine does.
    ///
    /// # Errors
    /// If they cannot be opened now, or opening them would read more than the query needs.
    pub(crate) async fn open(
        &self,
        session: &dyn Session,
        coscan: &CoscanOptions,
        (store_url, store): (Url, Arc<dyn ObjectStore>),
        pushdown: &Pushdown<'_>,
    ) -> Result<Option<ScanSource>> {
        let manager = coscan.manager();
        let to_open = |meta: &ObjectMeta| FileToOpen {
            footer: cached_footer(session, meta),
            file: TableFile {
                store: Arc::clone(&store),
                store_url: store_url.clone(),
                meta: meta.clone(),
            },
        };
        let files: Vec<_> = self.metas().map(to_open).collect();
        let is_read =
            |open: &FileToOpen| open.footer.is_none() && !manager.is_open(&open.file, self.options);
        if files.iter().any(is_read) && (pushdown.limit.is_some() || self.are_ruled_out(pushdown)) {
            return Err(DataFusionError::Execution("it may not need all files".to_owned()));
        }
        let files = match manager.open_files(files, self.options).await {
            Ok(files) => files,
            Err(OpenError::File(error)) if !matches!(error, TableError::Read(_)) => {
                debug!("the engine reads the files itself: {error}");
                return Ok(None);
            }
            Err(error) => return Err(from_open(error)),
        };
        if !self.fit(&files) {
            debug!("the engine casts columns of {} itself", files[0].version());
            return Ok(None);
        }
        let orders = &self.table.options().file_sort_order;
        let columns = TableColumns {
            declared: Some(self.stored()),
            constants: self.constants()?,
            ..TableColumns::default()
        };
        let source = ParquetTable::with_columns(files, columns).map_err(from_table);
        let (name, identity) = (self.name.to_owned(), self.identity());
        let source = source.and_then(|table| registered(coscan, name, &identity, table, orders));
        match source {
            // The engine merges files that each have an order.
            Ok(source) if source.orderings.len() < orders.len() => Ok(None),
            Ok(source) => Ok(Some(ScanSource { listed_by_query: true, ..source })),
            Err(error) => {
                debug!("the engine reads the files itself: {error}");
                Ok(None)
            }
        }
    }

    /// Whether all types of the files widen to those of the table. Other casts may fail, and in the engine they fail
    /// only for rows that it reads.
    fn fit(&self, files: &[Arc<ParquetFile>]) -> bool {
        let (stored, _) = self.split();
        let fits = |file: &ParquetFile, field: &FieldRef| {
            let stored = file.fields().find(field.name()).map(|(_, stored)| stored.data_type());
            stored.is_none_or(|stored| {
                stored == field.data_type() || widens(stored, field.data_type())
            })
        };
        files.iter().enumerate().all(|(index, file)| {
            let is_as_before = index > 0 && files[index - 1].fields() == file.fields();
            is_as_before || stored.iter().all(|field| fits(file, field))
        })
    }

    /// Whether the engine's statistics of the files rule out some of them.
    fn are_ruled_out(&self, pushdown: &Pushdown<'_>) -> bool {
        let statistics: Option<Vec<_>> =
            self.files.iter().map(|file| file.statistics.clone()).collect();
        let predicate = conjunction_opt(pushdown.filters.iter().cloned());
        let (Some(statistics), Some(predicate)) = (statistics, predicate) else {
            return false;
        };
        let pruning = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.schema));
        let statistics = PrunableStatistics::new(statistics, Arc::clone(&self.schema));
        let keep = pruning.build(predicate).and_then(|pruning| pruning.prune(&statistics).ok());
        keep.is_some_and(|keep| keep.contains(&false))
    }

    /// The columns that are stored in files.
    fn stored(&self) -> SchemaRef {
        let (stored, _) = self.split();
        Arc::new(Schema::new(stored.to_vec()))
    }

    fn split(&self) -> (&[FieldRef], &[FieldRef]) {
        let fields = self.schema.fields();
        fields.split_at(fields.len() - self.table.options().table_partition_cols.len())
    }

    /// The columns of directories.
    fn constants(&self) -> Result<Vec<ConstantColumn>> {
        let (_, partitions) = self.split();
        let constant = |(column, field): (usize, &FieldRef)| {
            let value = |file: &&PartitionedFile| match &file.partition_values[column] {
                ScalarValue::Dictionary(_, value) => value.as_ref().clone(),
                value => value.clone(),
            };
            let values = ScalarValue::iter_to_array(self.files.iter().map(value))?;
            Ok(ConstantColumn { field: Arc::clone(field), values })
        };
        partitions.iter().enumerate().map(constant).collect()
    }
}

/// Whether a type is of strings or binaries, but not views.
fn has_texts(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    )
}

/// The footer of a file, if the session has it in its cache. Footers of files without an entity tag are not used, since
/// the cache finds them by path alone, whatever the store.
fn cached_footer(session: &dyn Session, meta: &ObjectMeta) -> Option<Arc<ParquetMetaData>> {
    let cached =
        session.runtime_env().cache_manager.get_file_metadata_cache().get(&meta.location)?;
    if cached.meta != *meta || meta.e_tag.is_none() {
        return None;
    }
    let footer = cached.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
    Some(Arc::clone(footer.parquet_metadata()))
}
