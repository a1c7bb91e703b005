//! The pages that the queries of an experiment touch, and the most bytes of them in one chunk.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type};
use coscan_core::{ChunkIndex, Index, Layout, PageIndex};
use coscan_storage::table::ParquetTable;

use crate::runner::EngineError;
use crate::workload::{KEY, Kind, Stream};

/// Columns of a query, without the key where that only limits the range.
fn columns_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fast => &["l_quantity", "l_extendedprice", "l_discount", "l_shipdate"],
        Kind::Slow => &[
            "l_quantity",
            "l_extendedprice",
            "l_discount",
            "l_tax",
            "l_returnflag",
            "l_linestatus",
            "l_shipdate",
        ],
        Kind::Ordered => &[KEY, "l_extendedprice", "l_discount"],
        Kind::Point => &[KEY, "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"],
    }
}

/// The smallest and largest key of each chunk.
pub(super) struct ChunkKeys {
    pub(super) min: Int64Array,
    pub(super) max: Int64Array,
}

impl ChunkKeys {
    /// Whether no chunk has keys below those of the chunk before.
    pub(super) fn are_in_order(&self) -> bool {
        (1..self.min.len()).all(|chunk| self.max.value(chunk - 1) <= self.min.value(chunk))
    }

    fn may_hold(&self, chunk: ChunkIndex, keys: Option<&RangeInclusive<i64>>) -> bool {
        let position = chunk.as_usize();
        keys.is_none_or(|keys| {
            self.min.value(position) <= *keys.end() && *keys.start() <= self.max.value(position)
        })
    }
}

pub(super) fn key_bounds(table: &ParquetTable) -> Result<(Int64Array, Int64Array), EngineError> {
    let statistics = table.statistics(column_index(table, KEY)?)?;
    let integers = |bounds: &ArrayRef| -> Result<Int64Array, EngineError> {
        let cast = compute::cast(bounds, &DataType::Int64)?;
        Ok(cast.as_primitive::<Int64Type>().clone())
    };
    Ok((integers(&statistics.min)?, integers(&statistics.max)?))
}

fn column_index(table: &ParquetTable, name: &str) -> Result<usize, EngineError> {
    table.schema().index_of(name).map_err(|_| {
        format!("the table has no column {name}; the streams read ranges of TPC-H lineitem").into()
    })
}

/// Pages that any of the queries needs.
pub(super) fn touched_pages(
    table: &ParquetTable,
    chunks: &ChunkKeys,
    streams: &[Stream],
) -> Result<BTreeSet<PageIndex>, EngineError> {
    let layout = table.layout();
    let mut pages = BTreeSet::new();
    for query in streams.iter().flat_map(|stream| &stream.queries) {
        let key = query.keys.as_ref().map(|_| &KEY);
        for name in columns_of(query.kind).iter().chain(key) {
            let group = table.group_of_column(column_index(table, name)?);
            for chunk in
                layout.chunks().filter(|&chunk| chunks.may_hold(chunk, query.keys.as_ref()))
            {
                pages.extend(layout.slice(chunk, group));
            }
        }
    }
    Ok(pages)
}

/// The most bytes of these pages that one chunk needs.
pub(super) fn largest_chunk_bytes(layout: &Layout, pages: &BTreeSet<PageIndex>) -> u64 {
    let mut bytes_of_chunk = vec![0; layout.chunk_count()];
    for &page in pages {
        for chunk in layout.chunks_of(page) {
            bytes_of_chunk[chunk.as_usize()] += layout.bytes_of(page);
        }
    }
    bytes_of_chunk.into_iter().max().unwrap_or(0)
}
