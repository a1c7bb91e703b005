//! Whether an aggregation may have few groups: only then is it worth while to compute the states of chunks apart.

use coscan_runtime::core::ChunkIndex;
use coscan_storage::table::ParquetTable;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use super::expression::{Expression, Operation};
use super::state::GROUPS_MAX;

/// Estimates may be too high by this factor, above all where keys depend on each other.
const OVERESTIMATE: u64 = 16;

/// Whether the groups of a chunk may be so few that their states are published. Keys are expressions on columns of the table.
pub(super) fn may_be_few(table: &ParquetTable, chunk: ChunkIndex, keys: &[Expression]) -> bool {
    let values = Values { table, chunk };
    let groups = keys.iter().map(|key| values.of(key)).fold(1, u64::saturating_mul);
    groups <= (GROUPS_MAX as u64).saturating_mul(OVERESTIMATE)
}

/// Estimates how many values expressions have in a chunk.
struct Values<'a> {
    table: &'a ParquetTable,
    chunk: ChunkIndex,
}

impl Values<'_> {
    fn of(&self, expression: &Expression) -> u64 {
        match expression {
            Expression::Literal(_) => 1,
            Expression::Column(column, _) => self.of_column(*column),
            Expression::Call(operation, operands) => self.of_call(operation, operands),
        }
    }

    fn of_column(&self, column: usize) -> u64 {
        let (file, chunk) = self.table.place_of(self.chunk);
        let Some(stored) = self.table.file_column(file, column) else { return 1 };
        let file = &self.table.parquet_files()[file];
        file.distinct_values_estimate(chunk, stored).unwrap_or(u64::MAX)
    }

    fn of_call(&self, operation: &Operation, operands: &[Expression]) -> u64 {
        let of_operands = || operands.iter().map(|operand| self.of(operand));
        let all = || of_operands().fold(1, u64::saturating_mul);
        match operation {
            Operation::Not
            | Operation::IsNull
            | Operation::IsNotNull
            | Operation::InList { .. }
            | Operation::Like { .. } => 3,
            Operation::Binary { operator, .. } => match (operator, operands) {
                (Operator::Modulo, [_, Expression::Literal(divisor)]) => {
                    all().min(remainders(divisor))
                }
                (operator, _) if operator.is_logic_operator() || operator.negate().is_some() => 3,
                _ => all(),
            },
            // The operand and the conditions only choose.
            Operation::Case { has_operand, has_else } => {
                let branches = &operands[usize::from(*has_operand)..];
                let pairs = branches.len() / 2;
                let results = (0..pairs).map(|pair| &branches[2 * pair + 1]);
                let otherwise = branches.last().filter(|_| *has_else);
                let results = results.chain(otherwise).map(|result| self.of(result));
                results.fold(1, u64::saturating_add)
            }
            Operation::Negative | Operation::Cast { .. } | Operation::Function { .. } => all(),
        }
    }
}

/// The number of remainders of a division by a number, positive and negative ones.
fn remainders(divisor: &ScalarValue) -> u64 {
    let number = divisor.to_array().and_then(|value| Ok(cast(&value, &DataType::Int64)?));
    let number = number.ok().filter(|number| number.is_valid(0));
    let number = number.map(|number| number.as_primitive::<Int64Type>().value(0));
    number.map_or(u64::MAX, |number| number.unsigned_abs().saturating_mul(2))
}
