//! Filters that reject NaN. The bounds of floating-point columns leave NaN out. For filters that reject NaN, they rule
//! rows out in any chunk. For others they do so only where the column is known to hold no NaN.
//!
//! Arrow orders NaN above all other values, or below them all if it is negative.

use std::collections::BTreeSet;
use std::sync::Arc;

use coscan_runtime::core::ChunkIndex;
use coscan_storage::table::{ChunkStatistics, ParquetTable};
use datafusion::arrow::array::{ArrayRef, new_null_array};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::utils::collect_columns;

/// Whether values of a type may be NaN. Parquet's bounds leave NaN out, and Arrow orders it above all values, or below
/// all if it is negative. Such bounds rule rows out only where there is no NaN, and for filters that reject NaN.
pub(crate) fn may_be_nan(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => may_be_nan(values),
        DataType::RunEndEncoded(_, values) => may_be_nan(values.data_type()),
        data_type => data_type.is_floating(),
    }
}

/// The columns of filters, and of the order of a top-k, whose bounds would rule out more rows if all of these chunks
/// were known to hold no NaN in them. Each has the number of chunks for which that is not known.
pub(crate) fn undecided(
    table: &ParquetTable,
    filters: &[Arc<dyn PhysicalExpr>],
    top_k_order: &[usize],
    chunks: &[ChunkIndex],
) -> Vec<(usize, usize)> {
    let of_filters = filters.iter().flat_map(collect_columns).map(|column| column.index());
    let columns: BTreeSet<_> = of_filters.chain(top_k_order.iter().copied()).collect();
    let is_open = |column: &usize| {
        let field = table.schema().field(*column);
        may_be_nan(field.data_type()) && !reject_nan(filters, field.name())
    };
    let count = |column: usize| {
        chunks.iter().filter(|&&chunk| !table.is_without_nan(chunk, column)).count()
    };
    let counts = columns.into_iter().filter(is_open).map(|column| (column, count(column)));
    counts.filter(|(_, chunks)| *chunks > 0).collect()
}

/// The conjuncts of filters that do not depend on some columns.
pub(crate) fn conjuncts_without(
    filters: &[Arc<dyn PhysicalExpr>],
    columns: &[usize],
) -> Vec<Arc<dyn PhysicalExpr>> {
    let conjuncts = filters.iter().flat_map(|filter| operands(filter, Operator::And));
    let is_without = |conjunct: &&Arc<dyn PhysicalExpr>| {
        !collect_columns(conjunct).iter().any(|column| columns.contains(&column.index()))
    };
    conjuncts.filter(is_without).cloned().collect()
}

/// Whether filters, all of which a row has to pass, reject every row in which this column is NaN, whatever the values
/// of other columns.
pub(crate) fn reject_nan(filters: &[Arc<dyn PhysicalExpr>], column: &str) -> bool {
    let rejects = Rejects::any(filters.iter(), column);
    rejects.positive && rejects.negative
}

/// The NaN values that a filter rejects, by sign.
#[derive(Clone, Copy)]
struct Rejects {
    positive: bool,
    negative: bool,
}

impl Rejects {
    const NONE: Self = Self { positive: false, negative: false };
    const ALL: Self = Self { positive: true, negative: true };

    /// The values that at least one of these filters rejects.
    fn any<'a>(filters: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>, column: &str) -> Self {
        let conjuncts = filters.flat_map(|filter| operands(filter, Operator::And));
        conjuncts.map(|filter| Self::of(filter, column)).fold(Self::NONE, |all, one| Self {
            positive: all.positive || one.positive,
            negative: all.negative || one.negative,
        })
    }

    /// The values that a filter other than a conjunction rejects.
    fn of(filter: &Arc<dyn PhysicalExpr>, column: &str) -> Self {
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            let is_numbers = !list.negated() && list.list().iter().all(is_number);
            return if is_numbers && is_column(list.expr(), column) {
                Self::ALL
            } else {
                Self::NONE
            };
        }
        let Some(binary) = filter.downcast_ref::<BinaryExpr>() else { return Self::NONE };
        let (left, right) = (binary.left(), binary.right());
        let operator = match binary.op() {
            Operator::Or => {
                let alternatives = operands(filter, Operator::Or).into_iter();
                let alternatives =
                    alternatives.map(|filter| Self::any(std::iter::once(filter), column));
                return alternatives.fold(Self::ALL, |all, one| Self {
                    positive: all.positive && one.positive,
                    negative: all.negative && one.negative,
                });
            }
            operator if is_column(left, column) && is_number(right) => *operator,
            operator if is_number(left) && is_column(right, column) => match operator.swap() {
                Some(swapped) => swapped,
                None => return Self::NONE,
            },
            _ => return Self::NONE,
        };
        Self {
            positive: matches!(operator, Operator::Eq | Operator::Lt | Operator::LtEq),
            negative: matches!(operator, Operator::Eq | Operator::Gt | Operator::GtEq),
        }
    }
}

/// The operands of a chain of one operator of any length, or the expression itself if it is not such a chain.
fn operands(filter: &Arc<dyn PhysicalExpr>, operator: Operator) -> Vec<&Arc<dyn PhysicalExpr>> {
    let (mut operands, mut open) = (Vec::new(), vec![filter]);
    while let Some(filter) = open.pop() {
        match filter.downcast_ref::<BinaryExpr>() {
            Some(binary) if *binary.op() == operator => {
                open.extend([binary.right(), binary.left()])
            }
            _ => operands.push(filter),
        }
    }
    operands
}

fn is_column(expression: &Arc<dyn PhysicalExpr>, name: &str) -> bool {
    expression.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
}

/// Whether an expression is a floating-point literal that is not NaN.
fn is_number(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = expression.downcast_ref::<Literal>().map(Literal::value);
    match literal {
        Some(ScalarValue::Float16(Some(value))) => !value.is_nan(),
        Some(ScalarValue::Float32(Some(value))) => !value.is_nan(),
        Some(ScalarValue::Float64(Some(value))) => !value.is_nan(),
        _ => false,
    }
}

/// Moves bounds of zero to the zero of the other sign. Writers do not distinguish the two, but Arrow does.
pub(crate) fn widened(statistics: ChunkStatistics) -> ChunkStatistics {
    let (zero, minus_zero) = (ScalarValue::Float64(Some(0.0)), ScalarValue::Float64(Some(-0.0)));
    let with = |bounds: ArrayRef, from: &ScalarValue, to: &ScalarValue| -> Result<ArrayRef> {
        let data_type = bounds.data_type();
        let (from, to) = (from.cast_to(data_type)?, to.cast_to(data_type)?);
        let is_from = eq(&bounds, &from.to_scalar()?)?;
        Ok(zip(&is_from, &to.to_scalar()?, &bounds)?)
    };
    let unknown = |bounds: &ArrayRef| new_null_array(bounds.data_type(), bounds.len());
    let min = with(Arc::clone(&statistics.min), &zero, &minus_zero);
    let max = with(Arc::clone(&statistics.max), &minus_zero, &zero);
    ChunkStatistics {
        min: min.unwrap_or_else(|_| unknown(&statistics.min)),
        max: max.unwrap_or_else(|_| unknown(&statistics.max)),
        ..statistics
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    #[test]
    fn a_chain_of_any_length_is_looked_through() {
        let schema = Schema::new(vec![Field::new("f", DataType::Float64, true)]);
        let compare = |operator, value: f64| {
            binary(col("f", &schema).unwrap(), operator, lit(value), &schema).unwrap()
        };
        for (operator, rejects) in [(Operator::And, true), (Operator::Or, false)] {
            let mut chain = compare(Operator::NotEq, 0.0);
            for value in 1..100_000 {
                let next = compare(Operator::NotEq, f64::from(value));
                chain = Arc::new(BinaryExpr::new(chain, operator, next));
            }
            let chain: Arc<dyn PhysicalExpr> =
                Arc::new(BinaryExpr::new(chain, operator, compare(Operator::Eq, 0.5)));
            assert_eq!(reject_nan(std::slice::from_ref(&chain), "f"), rejects);
            std::mem::forget(chain); // Dropping it recurses.
        }
        let range = [compare(Operator::Gt, 0.0), compare(Operator::Lt, 1.0)];
        assert!(reject_nan(&range, "f") && !reject_nan(&range[..1], "f"));
    }
}
