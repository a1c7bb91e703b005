//! The order in which the chunks of a top-k are read.

use std::fmt;
use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::ParquetTable;
use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, nullif};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;

use crate::error::from_table;

/// The leading keys of a top-k above a scan, up to the first key that is not a plain column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// The columns as indexes into the table's schema.
    columns: Vec<(usize, SortOptions)>,
}

impl SortKey {
    /// Converts an order of the output of a scan. `projection` has the columns of the output, as indexes into the
    /// table's schema. Returns `None` if the first key is not a column.
    pub(crate) fn new(order: &[PhysicalSortExpr], projection: &[usize]) -> Option<Self> {
        let column = |key: &PhysicalSortExpr| {
            let column = key.expr.downcast_ref::<Column>()?;
            Some((*projection.get(column.index())?, key.options))
        };
        let columns: Vec<_> = order.iter().map_while(column).collect();
        (!columns.is_empty()).then_some(Self { columns })
    }

    /// The keys with these columns, as indexes into the table's schema. Returns `None` if there are none.
    pub(crate) fn of_columns(columns: Vec<(usize, SortOptions)>) -> Option<Self> {
        (!columns.is_empty()).then_some(Self { columns })
    }

    /// The columns with their directions, as indexes into the table's schema.
    pub(crate) fn to_columns(&self) -> Vec<(usize, SortOptions)> {
        self.columns.clone()
    }

    /// The columns, as indexes into the table's schema.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().map(|(column, _)| *column)
    }

    /// Formats the order for EXPLAIN.
    pub(crate) fn display<'a>(&'a self, table: &'a ParquetTable) -> impl fmt::Display + 'a {
        fmt::from_fn(|f| {
            for (position, (column, options)) in self.columns.iter().enumerate() {
                let separator = if position == 0 { "" } else { ", " };
                let direction = if options.descending { "DESC" } else { "ASC" };
                write!(f, "{separator}{} {direction}", table.schema().field(*column).name())?;
                // By default, as in SQL, NULL is the greatest value.
                if options.nulls_first != options.descending {
                    f.write_str(if options.nulls_first { " NULLS FIRST" } else { " NULLS LAST" })?;
                }
            }
            Ok(())
        })
    }

    /// The rank of each chunk of a table by the first row that it may hold, starting at 0. A chunk without statistics
    /// may hold the first row of the table.
    ///
    /// # Errors
    /// If the statistics of a file cannot be decoded, or values cannot be compared.
    pub(crate) fn ranks(&self, table: &ParquetTable) -> Result<Vec<usize>> {
        let mut bounds = Vec::with_capacity(self.columns.len());
        for &(column, options) in &self.columns {
            let statistics = table.statistics(column).map_err(from_table)?;
            let first = if options.descending { &statistics.max } else { &statistics.min };
            let nulls = statistics.null_count.iter().zip(statistics.row_count.iter());
            let values = if options.nulls_first {
                let may_hold: BooleanArray =
                    nulls.map(|(nulls, _)| Some(nulls != Some(0))).collect();
                nullif(first, &may_hold)?
            } else {
                // A chunk of nulls has no bounds, but is the last.
                let holds_no_other: BooleanArray =
                    nulls.map(|(nulls, rows)| Some(nulls == rows)).collect();
                bounds.push(SortColumn { values: Arc::new(holds_no_other), options: None });
                ArrayRef::clone(first)
            };
            let options = SortOptions { nulls_first: true, ..options };
            bounds.push(SortColumn { values, options: Some(options) });
        }
        let order = lexsort_to_indices(&bounds, None)?;
        let mut ranks = vec![0; order.len()];
        for (rank, chunk) in order.values().iter().enumerate() {
            ranks[*chunk as usize] = rank;
        }
        Ok(ranks)
    }
}

/// Chunks waiting to be read, those with the lowest ranks first.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// The chunks, those with the highest rank first.
    chunks: Vec<ChunkIndex>,
    /// The number of chunks that the next call of [`Self::take`] takes.
    next: usize,
}

impl Queue {
    /// Creates an empty queue from which this many chunks are taken first.
    pub(crate) fn new(first: usize) -> Self {
        Self { chunks: Vec::new(), next: first.max(1) }
    }

    /// Adds chunks. Without ranks they have no order.
    pub(crate) fn add(&mut self, chunks: Vec<ChunkIndex>, ranks: Option<&[usize]>) {
        self.chunks.extend(chunks);
        if let Some(ranks) = ranks {
            self.chunks.sort_unstable_by_key(|chunk| std::cmp::Reverse(ranks[chunk.as_usize()]));
        }
    }

    /// Takes the next chunks, in ascending order. Each call takes twice as many as the one before.
    pub(crate) fn take(&mut self) -> Vec<ChunkIndex> {
        let left = self.chunks.len().saturating_sub(self.next);
        self.next = self.next.saturating_mul(2);
        let mut taken = self.chunks.split_off(left);
        taken.sort_unstable();
        taken
    }

    /// Drops the selected chunks.
    pub(crate) fn give_up(&mut self, is_selected: impl Fn(ChunkIndex) -> bool) {
        self.chunks.retain(|&chunk| !is_selected(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_gives_twice_as_many_chunks_each_time() {
        let chunks: Vec<_> = (0..10).map(ChunkIndex::from_usize).collect();
        let ranks = [9, 8, 7, 6, 5, 0, 1, 2, 3, 4];
        let mut queue = Queue::new(2);
        queue.add(chunks, Some(&ranks));
        let mut numbers = || queue.take().iter().map(|chunk| chunk.0).collect::<Vec<_>>();
        assert_eq!(numbers(), [5, 6]);
        assert_eq!(numbers(), [4, 7, 8, 9]);
        assert_eq!(numbers(), [0, 1, 2, 3]);
        assert!(numbers().is_empty());
    }
}
