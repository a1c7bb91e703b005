//! The stored bytes that scans read: shared scans, and the engine's own, which also use page indexes.

use std::ops::Range;
use std::sync::Arc;

use coscan_storage::table::{ParquetFile, ParquetTable};
use datafusion::arrow::datatypes::Schema;
use datafusion::datasource::physical_plan::ParquetFileMetrics;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource_parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, RowGroupAccess,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use crate::planning::pruning::{NeededChunks, overlapping};

/// The files that hold needed rows, as indexes into the table's files, each with the row groups that hold them.
pub(crate) fn row_group_plans(
    table: &ParquetTable,
    needed: &NeededChunks,
) -> Vec<(usize, ParquetAccessPlan)> {
    let rows = needed.rows_in(table, &needed.chunks);
    let mut start = 0;
    let plans = table.parquet_files().iter().enumerate().map(|(index, file)| {
        let plan = row_groups_with(file.metadata(), start, &rows);
        start += file.row_count();
        (index, plan)
    });
    plans.filter(|(_, plan)| !plan.row_group_indexes().is_empty()).collect()
}

/// Stored bytes of the pages that hold some rows of some columns.
pub(crate) fn stored_bytes(table: &ParquetTable, projection: &[usize], rows: &[Range<u64>]) -> u64 {
    let mut groups: Vec<_> =
        projection.iter().map(|&column| table.group_of_column(column)).collect();
    groups.sort_unstable();
    groups.dedup();
    let pages = table.pages_for(&groups, rows);
    pages.into_iter().map(|page| table.layout().bytes_of(page)).sum()
}

/// Restricts plans to the data pages that page indexes leave.
pub(crate) fn page_plans(
    table: &ParquetTable,
    needed: &NeededChunks,
    predicate: &Arc<dyn PhysicalExpr>,
) -> Vec<(usize, ParquetAccessPlan)> {
    let filter = PagePruningAccessPlanFilter::new(predicate, Arc::clone(table.schema()));
    let pages = |(index, plan)| match has_types_of_table(table, index) {
        true => (index, pruned(&filter, plan, &table.parquet_files()[index])),
        // If the page index has other types than the filter, all pages count.
        false => (index, plan),
    };
    row_group_plans(table, needed).into_iter().map(pages).collect()
}

/// The stored bytes that plans read of some columns of the table.
pub(crate) fn direct_bytes(
    table: &ParquetTable,
    projection: &[usize],
    plans: &[(usize, ParquetAccessPlan)],
) -> u64 {
    let of_file = |(index, plan): &(usize, ParquetAccessPlan)| {
        let in_file = |&column: &usize| table.file_column(*index, column);
        let projection: Vec<_> = projection.iter().filter_map(in_file).collect();
        plan_bytes(table.parquet_files()[*index].metadata(), plan, &projection)
    };
    plans.iter().map(of_file).sum()
}

/// The data pages that the page index of a file leaves.
fn pruned(
    filter: &PagePruningAccessPlanFilter,
    plan: ParquetAccessPlan,
    file: &ParquetFile,
) -> ParquetAccessPlan {
    let metrics = ExecutionPlanMetricsSet::new();
    let metrics = ParquetFileMetrics::new(0, file.version().path().as_ref(), &metrics);
    let metadata = file.metadata();
    // Columns are found by their index in the file, not in the table.
    let schema = Schema::new(file.fields().clone());
    let descriptor = metadata.file_metadata().schema_descr();
    filter.prune_plan_with_page_index(plan, &schema, descriptor, metadata, &metrics)
}

/// Whether the columns of a file have the types that they have in the table.
fn has_types_of_table(table: &ParquetTable, index: usize) -> bool {
    let fields = table.parquet_files()[index].fields();
    table.schema().fields().iter().enumerate().all(|(column, field)| {
        let in_file = table.file_column(index, column);
        in_file.is_none_or(|in_file| fields[in_file].data_type() == field.data_type())
    })
}

/// The row groups of a file that hold any of these rows, which must be in ascending order. The rows and `start`, the
/// first row of the file, count from the start of the table.
fn row_groups_with(
    metadata: &ParquetMetaData,
    mut start: u64,
    rows: &[Range<u64>],
) -> ParquetAccessPlan {
    let mut plan = ParquetAccessPlan::new_none(metadata.num_row_groups());
    for (index, row_group) in metadata.row_groups().iter().enumerate() {
        let end = start + row_group.num_rows().cast_unsigned();
        if !overlapping(rows, &(start..end)).is_empty() {
            plan.scan(index);
        }
        start = end;
    }
    plan
}

/// Stored bytes that a plan reads of some top-level columns of a file.
fn plan_bytes(metadata: &ParquetMetaData, plan: &ParquetAccessPlan, projection: &[usize]) -> u64 {
    let descriptor = metadata.file_metadata().schema_descr();
    let leaves: Vec<_> = (0..descriptor.num_columns())
        .filter(|&leaf| projection.contains(&descriptor.get_column_root_idx(leaf)))
        .collect();
    let mut bytes = 0;
    for (index, access) in plan.inner().iter().enumerate() {
        let row_group = metadata.row_group(index);
        for &leaf in &leaves {
            let column = row_group.column(leaf);
            bytes += match access {
                RowGroupAccess::Skip => 0,
                RowGroupAccess::Scan => column.byte_range().1,
                RowGroupAccess::Selection(selection) => {
                    let locations = metadata
                        .offset_index()
                        .and_then(|index_of| index_of.get(index)?.get(leaf))
                        .map(|column| column.page_locations());
                    locations.map_or(column.byte_range().1, |locations| {
                        let ranges = selection.scan_ranges(locations);
                        let pages: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                        pages + dictionary_bytes(column, locations.first().map(|page| page.offset))
                    })
                }
            };
        }
    }
    bytes
}

/// Bytes before the first data page of a column.
fn dictionary_bytes(column: &ColumnChunkMetaData, first_page_offset: Option<i64>) -> u64 {
    let first = first_page_offset.map_or(0, i64::cast_unsigned);
    first.saturating_sub(column.byte_range().0)
}
