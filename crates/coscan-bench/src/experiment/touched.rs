//! The pages that the queries of an experiment touch, and the maximum of their bytes in one chunk.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type};
use coscan_core::{ChunkIndex, Index, Layout, PageIndex};
use coscan_storage::table::ParquetTable;

use crate::runner::EngineError;
use crate::workload::{KEY, Kind, ORDERS_KEY, Stream};

/// A table that queries read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Lineitem,
    Orders,
}

impl Role {
    fn key(self) -> &'static str {
        match self {
            Self::Lineitem => KEY,
            Self::Orders => ORDERS_KEY,
        }
    }

    /// The columns of the table that a query reads, without a key that only limits the range.
    fn columns_of(self, kind: Kind) -> &'static [&'static str] {
        match (self, kind) {
            (Self::Lineitem, Kind::Fast) => {
                &["l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
            }
            (Self::Lineitem, Kind::Slow) => &[
                "l_quantity",
                "l_extendedprice",
                "l_discount",
                "l_tax",
                "l_returnflag",
                "l_linestatus",
                "l_shipdate",
            ],
            (Self::Lineitem, Kind::Ordered) => &[KEY, "l_extendedprice", "l_discount"],
            (Self::Lineitem, Kind::Point) => {
                &[KEY, "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
            }
            (Self::Lineitem, Kind::JoinByPriority) => {
                &[KEY, "l_commitdate", "l_receiptdate", "l_discount"]
            }
            (Self::Lineitem, Kind::JoinByMode) => {
                &[KEY, "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipmode"]
            }
            (Self::Lineitem, Kind::Lines) => &["l_shipdate", "l_extendedprice"],
            (Self::Orders, Kind::JoinByPriority) => {
                &[ORDERS_KEY, "o_orderpriority", "o_totalprice"]
            }
            (Self::Orders, Kind::JoinByMode) => &[ORDERS_KEY, "o_orderpriority"],
            (Self::Orders, Kind::Orders) => &["o_totalprice", "o_clerk"],
            (Self::Lineitem, Kind::Orders) | (Self::Orders, _) => &[],
        }
    }
}

/// The smallest and largest key of each chunk.
pub(super) struct ChunkKeys {
    pub(super) min: Int64Array,
    pub(super) max: Int64Array,
}

impl ChunkKeys {
    pub(super) fn new(table: &ParquetTable, role: Role) -> Result<Self, EngineError> {
        let statistics = table.statistics(column_index(table, role.key())?)?;
        let integers = |bounds: &ArrayRef| -> Result<Int64Array, EngineError> {
            let cast = compute::cast(bounds, &DataType::Int64)?;
            Ok(cast.as_primitive::<Int64Type>().clone())
        };
        Ok(Self { min: integers(&statistics.min)?, max: integers(&statistics.max)? })
    }

    /// Whether no chunk has keys below those of the previous chunk.
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

fn column_index(table: &ParquetTable, name: &str) -> Result<usize, EngineError> {
    table.schema().index_of(name).map_err(|_| {
        format!(
            "the table has no column {name}; the streams read ranges of TPC-H lineitem and orders"
        )
        .into()
    })
}

/// The pages of a table that at least one query needs.
pub(super) fn touched_pages(
    table: &ParquetTable,
    role: Role,
    chunks: &ChunkKeys,
    streams: &[Stream],
) -> Result<BTreeSet<PageIndex>, EngineError> {
    let layout = table.layout();
    let mut pages = BTreeSet::new();
    for query in streams.iter().flat_map(|stream| &stream.queries) {
        let columns = role.columns_of(query.kind);
        let key = query.keys.as_ref().filter(|_| !columns.is_empty()).map(|_| role.key());
        for name in columns.iter().copied().chain(key) {
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

/// The bytes of a table that queries touch.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Touched {
    /// The bytes, each counted once.
    pub(super) bytes: u64,
    /// The maximum of these bytes in one chunk.
    pub(super) chunk_bytes_max: u64,
}

impl Touched {
    pub(super) fn new(layout: &Layout, pages: &BTreeSet<PageIndex>) -> Self {
        let mut bytes_of_chunk = vec![0; layout.chunk_count()];
        for &page in pages {
            for chunk in layout.chunks_of(page) {
                bytes_of_chunk[chunk.as_usize()] += layout.bytes_of(page);
            }
        }
        Self {
            bytes: pages.iter().map(|&page| layout.bytes_of(page)).sum(),
            chunk_bytes_max: bytes_of_chunk.into_iter().max().unwrap_or(0),
        }
    }
}
