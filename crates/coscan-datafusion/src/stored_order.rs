//! The order that the files of a table say they keep, in the footers of their row groups.
//!
//! A row group says so of itself. Whether one continues the other is judged from bounds of their values, which say
//! something only of keys that are never null nor NaN.

use std::cmp::Ordering;
use std::sync::Arc;

use coscan_storage::table::{ChunkStatistics, ParquetFile, ParquetTable};
use datafusion::arrow::array::{ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use log::debug;
use parquet::file::metadata::SortingColumn;

use crate::exec::SharedScanExec;
use crate::pruning::may_be_nan;
use crate::top_k::below;

/// The order that all row groups one after another keep, if they say that each of them keeps it.
pub(crate) fn of_files(table: &ParquetTable) -> Option<LexOrdering> {
    let mut keys = common_keys(table)?;
    while !keys.is_empty() {
        match continues(table, &keys) {
            Ok(true) => return LexOrdering::new(keys.iter().map(|key| key.expression(table))),
            Ok(false) => {}
            Err(error) => {
                debug!("no order is taken from the files: {error}");
                return None;
            }
        }
        keys.pop();
    }
    None
}

/// A column by which files say they are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    /// An index into the table's schema.
    column: usize,
    options: SortOptions,
}

impl Key {
    fn expression(&self, table: &ParquetTable) -> PhysicalSortExpr {
        let column = Column::new(table.schema().field(self.column).name(), self.column);
        PhysicalSortExpr::new(Arc::new(column), self.options)
    }
}

/// The first keys that all row groups have in common.
fn common_keys(table: &ParquetTable) -> Option<Vec<Key>> {
    let mut common: Option<Vec<Key>> = None;
    for (position, file) in table.parquet_files().iter().enumerate() {
        for row_group in file.metadata().row_groups() {
            let sorted = row_group.sorting_columns()?;
            let keys = sorted.iter().map_while(|sorted| key_of(table, position, file, sorted));
            match &mut common {
                None => common = Some(keys.collect()),
                Some(common) => {
                    let alike = common.iter().zip(keys).take_while(|(a, b)| *a == b).count();
                    common.truncate(alike);
                }
            }
        }
    }
    common
}

/// A column of a file as one of the table, if the table has its values as the file has them. What is NaN is ordered in
/// different ways, nested values are not ordered.
fn key_of(
    table: &ParquetTable,
    position: usize,
    file: &ParquetFile,
    sorted: &SortingColumn,
) -> Option<Key> {
    let descriptor = file.metadata().file_metadata().schema_descr();
    let leaf = usize::try_from(sorted.column_idx).ok()?;
    if leaf >= descriptor.num_columns() {
        return None;
    }
    let in_file = descriptor.get_column_root_idx(leaf);
    let own_type = file.fields()[in_file].data_type();
    let columns = 0..table.schema().fields().len();
    let mut columns = columns.filter(|&it| table.file_column(position, it) == Some(in_file));
    let column = columns.next()?;
    let data_type = table.schema().field(column).data_type();
    let is_ordered = data_type == own_type && !data_type.is_nested() && !may_be_nan(data_type);
    let options = SortOptions { descending: sorted.descending, nulls_first: sorted.nulls_first };
    is_ordered.then_some(Key { column, options })
}

/// Whether each row group begins where the one before it ends, or later.
fn continues(table: &ParquetTable, keys: &[Key]) -> Result<bool> {
    let boundaries = boundaries(table);
    if boundaries.is_empty() {
        return Ok(true);
    }
    let mut comparisons = Vec::with_capacity(keys.len());
    for key in keys {
        let statistics = table.zone_statistics(key.column).map_err(crate::error::from_table)?;
        let ChunkStatistics { min, max, null_count, .. } = statistics;
        if null_count.iter().any(|count| count != Some(0)) {
            return Ok(false);
        }
        let (first, last): (ArrayRef, ArrayRef) =
            if key.options.descending { (max, min) } else { (min, max) };
        let compare = make_comparator(&last, &first, key.options)?;
        comparisons.push((first, last, compare));
    }
    Ok(boundaries.into_iter().all(|next| {
        let mut ordering = Ordering::Equal;
        for (first, last, compare) in &comparisons {
            if last.is_null(next - 1) || first.is_null(next) {
                return false;
            }
            ordering = ordering.then_with(|| compare(next - 1, next));
        }
        ordering.is_le()
    }))
}

/// The zones with which a row group begins, but for the first.
fn boundaries(table: &ParquetTable) -> Vec<usize> {
    let row_groups = table.parquet_files().iter().enumerate().flat_map(|(position, file)| {
        (0..file.zones().len()).map(move |zone| (position, file.row_group_of_zone(zone)))
    });
    let row_groups: Vec<_> = row_groups.collect();
    (1..row_groups.len()).filter(|&zone| row_groups[zone - 1] != row_groups[zone]).collect()
}

/// Scans are read in the order of their files where a sort above them would make that order. Others are not: in order,
/// a scan has one partition. It runs before sorts that are not needed are taken out.
#[derive(Debug)]
pub(crate) struct StoredOrder;

impl StoredOrder {
    pub(crate) const NAME: &'static str = "coscan_stored_order";
}

impl PhysicalOptimizerRule for StoredOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let order = |plan: Arc<dyn ExecutionPlan>| {
            let Some(sort) = plan.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(plan));
            };
            let has_fetch = sort.fetch().is_some();
            Ok(match in_order(sort.input(), sort.expr().to_vec(), has_fetch)? {
                Some(input) => Transformed::yes(replace_children_if_necessary(plan, vec![input])?),
                None => Transformed::no(plan),
            })
        };
        plan.transform_down(order).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with a scan that gives its rows in an order; `None` if there is none below it that can. Few first rows that
/// pass a filter are found by several partitions that a top-k narrows.
fn in_order(
    plan: &Arc<dyn ExecutionPlan>,
    order: Vec<PhysicalSortExpr>,
    has_fetch: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        let scan = scan.in_stored_order(&order)?;
        return Ok(scan.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>));
    }
    let count = order.len();
    let is_filter = plan.is::<FilterExec>();
    let Some(order) = below(plan, order).filter(|order| order.len() == count) else {
        return Ok(None);
    };
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    if has_fetch && is_filter || !plan.maintains_input_order()[0] {
        return Ok(None);
    }
    let input = in_order(input, order, has_fetch)?;
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}
