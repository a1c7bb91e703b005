//! Chunk pruning: finds the chunks that may hold rows that pass the filters, by their statistics.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::{ChunkStatistics, ParquetTable};
use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::compute::nullif;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use log::debug;

use crate::planning::nan::{may_be_nan, reject_nan, widened};
use crate::planning::selectivity::{is_sparse, may_be_selective};

/// The chunks of a table that a scan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededChunks {
    /// The needed chunks in ascending order.
    pub(crate) chunks: Vec<ChunkIndex>,
    /// The number of all chunks of the table.
    pub(crate) total: usize,
    /// The ranges of rows that a sparse scan needs of those chunks. `None` if the scan is not sparse [CS04 §4.2].
    pub(crate) selected: Option<Vec<Range<u64>>>,
}

impl NeededChunks {
    /// Finds the chunks that have rows which may pass all filters. `zones_left` tells for each zone whether Bloom
    /// filters leave it.
    pub(crate) fn find(
        table: &ParquetTable,
        filters: &[Arc<dyn PhysicalExpr>],
        in_list_max: usize,
        zones_left: Option<&[bool]>,
    ) -> Self {
        let needed = Self::by_statistics(table, filters, in_list_max, zones_left);
        let has_rows = |&chunk: &ChunkIndex| table.visible_rows(table.layout().rows(chunk)) > 0;
        let chunks = match table.is_changed() || table.inserted_file().is_some() {
            true => needed.chunks.into_iter().filter(has_rows).collect(),
            false => needed.chunks,
        };
        Self { chunks, ..needed }
    }

    fn by_statistics(
        table: &ParquetTable,
        filters: &[Arc<dyn PhysicalExpr>],
        in_list_max: usize,
        zones_left: Option<&[bool]>,
    ) -> Self {
        let total = table.layout().chunk_count();
        let keep = TableStatistics { table, scope: Scope::Chunks, filters }.prune(in_list_max);
        let mut chunks: Vec<_> = match (&keep, zones_left) {
            (None, None) => {
                return Self { chunks: table.layout().chunks().collect(), total, selected: None };
            }
            (_, Some(left)) => Self::of_zones(table, left).chunks,
            (Some(_), None) => table.layout().chunks().collect(),
        };
        chunks.retain(|chunk| keep.as_ref().is_none_or(|keep| keep[chunk.as_usize()]));
        let has_zones = table.zones().len() > total;
        if !has_zones || !may_be_selective(chunks.len()) {
            return Self { chunks, total, selected: None };
        }
        let zones = TableStatistics { table, scope: Scope::Zones, filters };
        let of_zones = match (zones.prune(in_list_max), zones_left) {
            (None, None) => return Self { chunks, total, selected: None },
            (Some(keep), None) => Self::of_zones(table, &keep),
            (None, Some(left)) => Self::of_zones(table, left),
            (Some(mut keep), Some(left)) => {
                keep.iter_mut().zip(left).for_each(|(keep, left)| *keep &= left);
                Self::of_zones(table, &keep)
            }
        };
        chunks.retain(|chunk| of_zones.chunks.binary_search(chunk).is_ok());
        Self { chunks, ..of_zones }
    }

    /// The chunks of the zones to keep, and the rows of those zones if they are few.
    fn of_zones(table: &ParquetTable, keep: &[bool]) -> Self {
        let layout = table.layout();
        let zones = table.zones().iter().zip(keep).filter(|(_, keep)| **keep);
        let selected = joined(zones.map(|(rows, _)| rows.clone()));
        let mut chunks: Vec<_> =
            selected.iter().flat_map(|rows| layout.chunks_in(rows.clone())).collect();
        chunks.dedup();
        let count =
            |rows: &[Range<u64>]| rows.iter().map(|rows| rows.end - rows.start).sum::<u64>();
        let is_sparse = is_sparse(count(&selected), count(&rows_of(table, &chunks)));
        Self { chunks, total: layout.chunk_count(), selected: is_sparse.then_some(selected) }
    }

    /// The number of chunks that are ruled out.
    pub(crate) fn pruned(&self) -> usize {
        self.total - self.chunks.len()
    }

    /// The needed rows of some of the chunks, which must be in ascending order.
    pub(crate) fn rows_in(&self, table: &ParquetTable, chunks: &[ChunkIndex]) -> Vec<Range<u64>> {
        let whole = rows_of(table, chunks);
        let Some(selected) = &self.selected else { return whole };
        let common = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
        let mut rows = Vec::new();
        for whole in &whole {
            let overlapping = overlapping(selected, whole);
            rows.extend(overlapping.iter().map(|selected| common(whole, selected)));
        }
        rows
    }
}

/// The rows of some chunks, which must be in ascending order, in as few ranges as possible.
fn rows_of(table: &ParquetTable, chunks: &[ChunkIndex]) -> Vec<Range<u64>> {
    joined(chunks.iter().map(|&chunk| table.layout().rows(chunk)))
}

/// The ranges, out of some ascending ones, that have rows in common with another range.
pub(crate) fn overlapping<'a>(ranges: &'a [Range<u64>], rows: &Range<u64>) -> &'a [Range<u64>] {
    let start = ranges.partition_point(|range| range.end <= rows.start);
    let count = ranges[start..].partition_point(|range| range.start < rows.end);
    &ranges[start..start + count]
}

/// Merges adjacent ranges of ascending ones.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for rows in ranges {
        match joined.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => joined.push(rows),
        }
    }
    joined
}

/// Whether each of some chunks may hold rows that pass all filters. `None` if the filters cannot prune chunks.
///
/// A predicate that cannot be evaluated on statistics rules nothing out, since rows are filtered above the scan in any
/// case.
pub(crate) fn may_match(
    table: &ParquetTable,
    filters: &[Arc<dyn PhysicalExpr>],
    in_list_max: usize,
    chunks: &[ChunkIndex],
) -> Option<Vec<bool>> {
    TableStatistics { table, scope: Scope::Some(chunks), filters }.prune(in_list_max)
}

/// The unit that each entry of the statistics describes.
#[derive(Clone, Copy, Debug)]
enum Scope<'a> {
    Chunks,
    Zones,
    Some(&'a [ChunkIndex]),
}

/// The statistics of chunks or zones of a table.
struct TableStatistics<'a> {
    table: &'a ParquetTable,
    scope: Scope<'a>,
    /// The filters, all of which rows have to pass.
    filters: &'a [Arc<dyn PhysicalExpr>],
}

impl TableStatistics<'_> {
    /// Whether each chunk or zone may hold rows that pass all filters.
    fn prune(&self, in_list_max: usize) -> Option<Vec<bool>> {
        let predicate = conjunction_opt(self.filters.iter().cloned())?;
        let pruning = PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(self.table.schema()))
            .with_max_in_list_size(in_list_max)
            .build(predicate)?;
        match pruning.prune(self) {
            Ok(keep) => Some(keep),
            Err(error) => {
                debug!("chunks are not pruned: {error}");
                None
            }
        }
    }

    /// The statistics of a column, with bounds that hold for all values that could pass the filters.
    fn bounds_of(&self, column: &Column) -> Option<ChunkStatistics> {
        let index = self.table.schema().index_of(&column.name).ok()?;
        let statistics = self.of(index)?;
        if !may_be_nan(self.table.schema().field(index).data_type()) {
            return Some(statistics);
        }
        let statistics = widened(statistics);
        if reject_nan(self.filters, &column.name) {
            return Some(statistics);
        }
        let may_be_nan: BooleanArray =
            self.without_nan(index).iter().map(|is_known| Some(!is_known)).collect();
        let known = |bounds: &ArrayRef| nullif(bounds, &may_be_nan).ok();
        let (min, max) = (known(&statistics.min)?, known(&statistics.max)?);
        Some(ChunkStatistics { min, max, ..statistics })
    }

    fn of(&self, column: usize) -> Option<ChunkStatistics> {
        let statistics = match self.scope {
            Scope::Chunks | Scope::Some(_) => self.table.statistics(column),
            Scope::Zones => self.table.zone_statistics(column),
        };
        let statistics = match statistics {
            Ok(statistics) => statistics,
            Err(error) => {
                debug!("chunks are not pruned by column {column}: {error}");
                return None;
            }
        };
        let Scope::Some(chunks) = self.scope else { return Some(statistics) };
        let chunks: UInt64Array = chunks.iter().map(|chunk| chunk.as_usize() as u64).collect();
        statistics.take(&chunks).ok()
    }

    /// Whether a column is known to hold no NaN, for each chunk or zone.
    fn without_nan(&self, column: usize) -> Vec<bool> {
        match self.scope {
            Scope::Chunks => self.table.chunks_without_nan(column),
            Scope::Zones => self.table.zones_without_nan(column),
            Scope::Some(chunks) => {
                chunks.iter().map(|&chunk| self.table.is_without_nan(chunk, column)).collect()
            }
        }
    }
}

impl PruningStatistics for TableStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.bounds_of(column)?.min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.bounds_of(column)?.max)
    }

    fn num_containers(&self) -> usize {
        match self.scope {
            Scope::Chunks => self.table.layout().chunk_count(),
            Scope::Zones => self.table.zones().len(),
            Scope::Some(chunks) => chunks.len(),
        }
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let column = self.table.schema().index_of(&column.name).ok()?;
        Some(Arc::new(self.of(column)?.null_count))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let layout = self.table.layout();
        let count = |rows: Range<u64>| rows.end - rows.start;
        let counts: UInt64Array = match self.scope {
            Scope::Chunks => layout.chunks().map(|chunk| count(layout.rows(chunk))).collect(),
            Scope::Zones => self.table.zones().iter().cloned().map(count).collect(),
            Scope::Some(chunks) => chunks.iter().map(|&chunk| count(layout.rows(chunk))).collect(),
        };
        Some(Arc::new(counts))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::overlapping;

    #[test]
    fn ranges_overlap_if_they_have_rows_in_common() {
        let ranges = [0..3, 3..5, 8..9, 12..20];
        for start in 0..22 {
            for end in start + 1..22 {
                let common = ranges.iter().filter(|rows| rows.start < end && start < rows.end);
                assert!(overlapping(&ranges, &(start..end)).iter().eq(common), "{start}..{end}");
            }
        }
        assert!(overlapping(&[], &(0..1)).is_empty());
    }
}
