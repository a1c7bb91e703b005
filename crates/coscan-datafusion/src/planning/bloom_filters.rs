//! Bloom filters rule out row groups where a filter compares a column with values for equality.
//!
//! They are read when such a query is planned, and kept with the manager as long as there is memory.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_runtime::{BufferManager, CachedMetadata, MetadataReservation};
use coscan_storage::table::{ParquetFile, ParquetTable, TableError};
use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion_datasource_parquet::BloomFilterStatistics;
use futures::{StreamExt, stream};
use log::debug;

use crate::planning::pruning::NeededChunks;

/// All filters that are kept take at most one in this many bytes of the memory budget.
const MEMORY_DIVISOR: u64 = 8;

/// The maximum number of Bloom filters that are read at the same time.
const READS_AT_A_TIME: usize = 32;

/// Whether Bloom filters leave each zone of a table. `None` if the needed chunks have no Bloom filters that help. A
/// Bloom filter that cannot be read rules nothing out.
pub(crate) async fn may_match(
    manager: &BufferManager,
    table: &ParquetTable,
    filters: &[Arc<dyn PhysicalExpr>],
    needed: &NeededChunks,
    in_list_max: usize,
) -> Option<Vec<bool>> {
    let predicate = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(table.schema()))
        .with_max_in_list_size(in_list_max)
        .build(conjunction_opt(filters.iter().cloned())?)?;
    let columns = columns_of(table, &predicate);
    let zones = zones_with_filters(table, &columns, needed);
    if zones.is_empty() {
        return None;
    }
    let known = manager.extension(KnownFilters::default);
    let mut keep = vec![true; table.zones().len()];
    let evaluations = zones.into_iter().map(|zone| {
        let (known, predicate) = (&known, &predicate);
        async move {
            let mut filters = Vec::with_capacity(zone.columns.len());
            for &(column, ref name) in &zone.columns {
                match known.get(manager, &zone.file, zone.row_group, column).await {
                    Ok(Some(filter)) => filters.push((name.clone(), filter)),
                    Ok(None) => {}
                    Err(error) => debug!("a Bloom filter of {name} is not used: {error}"),
                }
            }
            let pruned = predicate.prune(&ZoneFilters(filters));
            (zone.index, pruned.is_ok_and(|kept| kept == [false]))
        }
    });
    let mut evaluated = stream::iter(evaluations).buffer_unordered(READS_AT_A_TIME);
    while let Some((zone, is_ruled_out)) = evaluated.next().await {
        keep[zone] = !is_ruled_out;
    }
    Some(keep)
}

/// The columns of the table that a predicate compares with lists of values.
fn columns_of(table: &ParquetTable, predicate: &PruningPredicate) -> Vec<usize> {
    let is_list = |guarantee: &&LiteralGuarantee| guarantee.guarantee == Guarantee::In;
    let lists = predicate.literal_guarantees().iter().filter(is_list);
    let columns = lists.filter_map(|list| table.schema().index_of(&list.column.name).ok());
    let mut columns: Vec<_> = columns.collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// A zone of the table with Bloom filters.
struct Zone {
    index: usize,
    file: Arc<ParquetFile>,
    row_group: usize,
    /// The indexes of the columns in the file, and their names in the table.
    columns: Vec<(usize, String)>,
}

/// The needed zones that have Bloom filters of any of these columns. Columns with another type in the file are left
/// out, since their values are hashed differently.
fn zones_with_filters(table: &ParquetTable, columns: &[usize], needed: &NeededChunks) -> Vec<Zone> {
    let mut zones = Vec::new();
    if columns.is_empty() {
        return zones;
    }
    let rows = needed.rows_in(table, &needed.chunks);
    let is_needed = |zone: &Range<u64>| {
        let next = rows.partition_point(|rows| rows.end <= zone.start);
        rows.get(next).is_some_and(|rows| rows.start < zone.end)
    };
    let mut first = 0;
    for (position, file) in table.parquet_files().iter().enumerate() {
        let of_file = columns.iter().filter_map(|&column| {
            let field = table.schema().field(column);
            let in_file = table.file_column(position, column)?;
            let is_same = file.fields()[in_file].data_type() == field.data_type();
            is_same.then(|| (in_file, field.name().clone()))
        });
        let of_file: Vec<_> = of_file.collect();
        let count = file.zones().len();
        for zone in 0..count {
            let row_group = file.row_group_of_zone(zone);
            let mut columns = of_file.clone();
            columns.retain(|(column, _)| file.has_bloom_filter(row_group, *column));
            let rows = &table.zones()[first + zone];
            columns.retain(|(_, name)| !has_new_values(table, name, rows));
            if !columns.is_empty() && is_needed(rows) {
                let file = Arc::clone(file);
                zones.push(Zone { index: first + zone, file, row_group, columns });
            }
        }
        first += count;
    }
    zones
}

/// Whether rows may have values that the filter does not know of.
fn has_new_values(table: &ParquetTable, column: &str, rows: &Range<u64>) -> bool {
    let column = table.schema().index_of(column);
    column.is_ok_and(|column| table.has_new_values(column, rows.clone()))
}

/// A Bloom filter in memory.
struct KnownFilter {
    filter: BloomFilterStatistics,
    _memory: MetadataReservation,
}

/// The name of the only column of a [`KnownFilter`].
const COLUMN: &str = "column";

/// The Bloom filters that were read, by the address of the file, row group, and column of the file.
#[derive(Default)]
struct KnownFilters(Mutex<BTreeMap<usize, FiltersOfFile>>);

struct FiltersOfFile {
    /// Keeps the address of the file from being reused.
    file: Weak<ParquetFile>,
    filters: BTreeMap<(usize, usize), CachedMetadata<KnownFilter>>,
}

impl KnownFilters {
    /// Returns a Bloom filter, and reads it unless it is in memory. `None` if there is none, or no memory for it.
    async fn get(
        &self,
        manager: &BufferManager,
        file: &Arc<ParquetFile>,
        row_group: usize,
        column: usize,
    ) -> Result<Option<Arc<KnownFilter>>, TableError> {
        let address = Arc::as_ptr(file).addr();
        let place = (row_group, column);
        let known = |all: &BTreeMap<usize, FiltersOfFile>| {
            all.get(&address)
                .and_then(|file| file.filters.get(&place))
                .and_then(CachedMetadata::get)
        };
        if let Some(known) = known(&self.lock()) {
            return Ok(Some(known));
        }
        let Some(range) = file.bloom_filter_range(row_group, column).await? else {
            return Ok(None);
        };
        let bytes = range.end - range.start;
        let Some(memory) = manager.metadata_memory::<KnownFilter>(bytes, MEMORY_DIVISOR) else {
            return Ok(None);
        };
        let read = file.read_bloom_filter(row_group, column, range).await?;
        let mut filter = BloomFilterStatistics::with_capacity(1);
        filter.insert(COLUMN, read.filter, read.physical_type, read.type_length);
        let filter = Arc::new(KnownFilter { filter, _memory: memory });
        let kept = manager.cache_slot();
        kept.put(Arc::clone(&filter), bytes);
        let gone = {
            let mut all = self.lock();
            let gone: Vec<_> =
                all.extract_if(.., |_, file| file.file.strong_count() == 0).collect();
            let new = || FiltersOfFile { file: Arc::downgrade(file), filters: BTreeMap::new() };
            let before = all.entry(address).or_insert_with(new).filters.insert(place, kept);
            (gone, before)
        };
        drop(gone); // Not under the lock, since it frees memory.
        Ok(Some(filter))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, FiltersOfFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Bloom filters of one zone, by the column's name in the table.
struct ZoneFilters(Vec<(String, Arc<KnownFilter>)>);

impl PruningStatistics for ZoneFilters {
    fn min_values(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn max_values(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let (_, known) = self.0.iter().find(|(name, _)| *name == column.name)?;
        known.filter.contained(&Column::from_name(COLUMN), values)
    }
}
