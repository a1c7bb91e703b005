//! Conditions that all rows of a chunk meet, by its statistics.
//!
//! Two queries over different ranges of a clustering key thus have the same fragment on every chunk inside both ranges.

use std::collections::HashMap;

use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::ParquetTable;
use datafusion::arrow::array::{Array, BooleanArray, Scalar, UInt64Array};
use datafusion::arrow::compute::kernels::cmp::{eq, gt, gt_eq, lt, lt_eq};
use datafusion::arrow::compute::{and, or};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use super::expression::{Expression, Operation};

/// The conjuncts of a query that all rows of a chunk meet, by their positions. Only the first 64 are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Proven(u64);

impl Proven {
    const CONJUNCTS_MAX: usize = u64::BITS as usize;

    fn add(&mut self, conjunct: usize) {
        self.0 |= 1 << conjunct;
    }

    pub(super) fn contains(self, conjunct: usize) -> bool {
        conjunct < Self::CONJUNCTS_MAX && self.0 >> conjunct & 1 == 1
    }
}

/// The conjuncts that all rows of a chunk meet, for each of some chunks of a table.
pub(super) fn proven_conjuncts(
    table: &ParquetTable,
    conjuncts: &[Expression],
    chunks: &[ChunkIndex],
) -> Vec<Proven> {
    let mut proven = vec![Proven::default(); chunks.len()];
    for (index, conjunct) in conjuncts.iter().enumerate().take(Proven::CONJUNCTS_MAX) {
        let Some(comparison) = Comparison::of(conjunct) else { continue };
        let Ok(Some(holds)) = comparison.holds(table, chunks) else { continue };
        let mut sound_files = HashMap::new();
        for position in holds.values().set_indices().filter(|&position| holds.is_valid(position)) {
            let file = table.chunk_file(chunks[position]);
            let is_sound = sound_files.entry(file);
            if *is_sound.or_insert_with(|| has_sound_bounds(table, file, comparison.column)) {
                proven[position].add(index);
            }
        }
    }
    proven
}

/// A comparison of a column with a literal of its type.
struct Comparison<'a> {
    column: usize,
    operator: Operator,
    literal: &'a ScalarValue,
}

impl<'a> Comparison<'a> {
    fn of(conjunct: &'a Expression) -> Option<Self> {
        let Expression::Call(Operation::Binary { operator, .. }, operands) = conjunct else {
            return None;
        };
        let (column, data_type, literal, operator) = match operands.as_slice() {
            [Expression::Column(column, data_type), Expression::Literal(literal)] => {
                (*column, data_type, literal, *operator)
            }
            [Expression::Literal(literal), Expression::Column(column, data_type)] => {
                (*column, data_type, literal, operator.swap()?)
            }
            _ => return None,
        };
        let has_its_type = !literal.is_null() && literal.data_type() == *data_type;
        has_its_type.then_some(Self { column, operator, literal })
    }

    /// Whether all rows of each chunk meet it, by the bounds of its values. `None` if it is no comparison that can be decided
    /// so.
    fn holds(
        &self,
        table: &ParquetTable,
        chunks: &[ChunkIndex],
    ) -> Result<Option<BooleanArray>, ArrowError> {
        let Ok(statistics) = table.statistics(self.column) else { return Ok(None) };
        let chunks = chunks.iter().map(|chunk| chunk.as_usize() as u64);
        let statistics = statistics.take(&UInt64Array::from_iter_values(chunks))?;
        let Ok(literal) = self.literal.to_array() else { return Ok(None) };
        let literal = Scalar::new(literal);
        let (min, max) = (&statistics.min, &statistics.max);
        let in_bounds = match self.operator {
            Operator::Gt => gt(min, &literal)?,
            Operator::GtEq => gt_eq(min, &literal)?,
            Operator::Lt => lt(max, &literal)?,
            Operator::LtEq => lt_eq(max, &literal)?,
            Operator::Eq => and(&eq(min, &literal)?, &eq(max, &literal)?)?,
            Operator::NotEq => or(&lt(max, &literal)?, &gt(min, &literal)?)?,
            _ => return Ok(None),
        };
        // An unknown number of NULLs stays unknown.
        let without_nulls = eq(&statistics.null_count, &UInt64Array::new_scalar(0))?;
        and(&in_bounds, &without_nulls).map(Some)
    }
}

/// Whether the bounds of a column of a file can be relied on: those of whole numbers, as which they are stored, and the only
/// value of a column that the file does not store. Bounds of numbers with NaN, of texts that may be cut off and of values that are
/// cast say too little.
fn has_sound_bounds(table: &ParquetTable, file: usize, column: usize) -> bool {
    let data_type = table.schema().field(column).data_type();
    match table.file_column(file, column) {
        Some(stored) => {
            let file = &table.parquet_files()[file];
            is_whole(data_type)
                && file.fields()[stored].data_type() == data_type
                && file.stores_whole_numbers(stored)
        }
        None => !data_type.is_floating() && table.inserted_file() != Some(file),
    }
}

fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(_, _)
                | DataType::Decimal32(_, _)
                | DataType::Decimal64(_, _)
                | DataType::Decimal128(_, _)
        )
}
