//! Conditions that all have to hold.

use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::{BooleanBuffer, MutableBuffer};
use datafusion::arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::util::bit_util;
use datafusion::error::Result;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};

use super::cost::cost;
use super::projected_predicate::ProjectedPredicate;

/// If at most one in this many rows has passed the conditions before, the next one is evaluated on these rows only, as in
/// the engine.
pub(super) const SPARSE_DIVISOR: usize = 5;

/// The conditions of an AND in its order, except that neighbouring conditions that cannot fail are sorted by cost, cheapest
/// first.
#[derive(Debug)]
pub(super) struct Conjunction {
    conditions: Vec<Condition>,
}

/// A condition on some columns of a batch.
#[derive(Debug)]
struct Condition {
    predicate: ProjectedPredicate,
    /// The cost for a row; `None` if it may fail.
    cost: Option<u32>,
}

impl Conjunction {
    /// The conditions of a predicate on rows of a schema.
    ///
    /// # Errors
    /// If its columns cannot be numbered anew.
    pub(super) fn new(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let conditions = split_conjunction(predicate).into_iter();
        let conditions = conditions.map(|condition| Condition::new(condition, schema));
        let mut conditions: Vec<_> = conditions.collect::<Result<_>>()?;
        let runs = conditions.chunk_by_mut(|one, next| one.cost.is_some() && next.cost.is_some());
        runs.for_each(|run| run.sort_by_key(|condition| condition.cost));
        Ok(Self { conditions })
    }

    /// Whether each row of a batch meets all conditions. The result has no NULL. A condition that may fail is never evaluated on
    /// rows on which the engine would not evaluate it; behind one that is NULL for some rows, it is on fewer.
    ///
    /// # Errors
    /// If a condition cannot be evaluated on the rows that have met those before.
    pub(super) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = batch.num_rows();
        let mut passed = BooleanArray::new(BooleanBuffer::new_set(rows), None);
        let mut passed_rows = rows;
        for condition in &self.conditions {
            if passed_rows == 0 {
                break;
            }
            passed = if passed_rows == rows {
                condition.evaluate(&condition.columns(batch)?)?
            } else if passed_rows * SPARSE_DIVISOR <= rows {
                let columns = filter_record_batch(&condition.columns(batch)?, &passed)?;
                scattered(&passed, &condition.evaluate(&columns)?)
            } else {
                and(&passed, &condition.evaluate(&condition.columns(batch)?)?)?
            };
            passed_rows = passed.true_count();
        }
        Ok(passed)
    }
}

impl Condition {
    fn new(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        Ok(Self { predicate: ProjectedPredicate::new(expr)?, cost: cost(expr, schema) })
    }

    fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.predicate.project(batch)
    }

    /// Whether each row meets the condition; one for which it is NULL does not.
    fn evaluate(&self, columns: &RecordBatch) -> Result<BooleanArray> {
        let met = self.predicate.evaluate(columns)?;
        Ok(if met.null_count() > 0 { prep_null_mask_filter(&met) } else { met })
    }
}

/// The rows that passed, less those of them that did not meet the next condition.
fn scattered(passed: &BooleanArray, met: &BooleanArray) -> BooleanArray {
    let rows = passed.len();
    let mut bits = MutableBuffer::from_len_zeroed(bit_util::ceil(rows, 8));
    let bytes = bits.as_slice_mut();
    for (row, is_met) in passed.values().set_indices().zip(met.values()) {
        if is_met {
            bit_util::set_bit(bytes, row);
        }
    }
    BooleanArray::new(BooleanBuffer::new(bits.into(), 0, rows), None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::conjunction;
    use datafusion::physical_expr::expressions::{binary, col, is_null, lit};

    use super::*;

    const ROWS: i64 = 1000;

    fn batch() -> RecordBatch {
        let numbers = |step: i64, null: i64| -> ArrayRef {
            let number = |row: i64| (row % null != 0).then_some(row * step % 100);
            Arc::new((0..ROWS).map(number).collect::<Int64Array>())
        };
        let texts: StringArray = (0..ROWS).map(|row| Some(format!("text {}", row % 7))).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", numbers(7, i64::MAX)),
            ("b", numbers(31, 5)),
            ("c", Arc::new(texts)),
            ("d", numbers(13, 11)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// Conditions that hold for few rows, for most, for all, for none, or for NULLs.
    fn conditions(schema: &Schema) -> Vec<Arc<dyn PhysicalExpr>> {
        let compare = |column: &str, operator, value: ScalarValue| {
            binary(col(column, schema).unwrap(), operator, lit(value), schema).unwrap()
        };
        vec![
            compare("a", Operator::Lt, 3_i64.into()),
            compare("a", Operator::GtEq, 0_i64.into()),
            compare("b", Operator::Gt, 20_i64.into()),
            compare("b", Operator::Lt, 0_i64.into()),
            compare("c", Operator::Eq, "text 3".into()),
            is_null(col("d", schema).unwrap()).unwrap(),
            binary(col("d", schema).unwrap(), Operator::NotEq, col("b", schema).unwrap(), schema)
                .unwrap(),
            lit(true),
            lit(ScalarValue::Boolean(None)),
        ]
    }

    #[test]
    fn the_rows_are_those_of_the_engine() {
        let batch = batch();
        let schema = batch.schema();
        let conditions = conditions(&schema);
        let and = |left: &Arc<dyn PhysicalExpr>, right: &Arc<dyn PhysicalExpr>| {
            binary(Arc::clone(left), Operator::And, Arc::clone(right), &schema).unwrap()
        };
        let mut checked = 0;
        for first in &conditions {
            for second in &conditions {
                for third in &conditions {
                    let predicate = and(&and(first, second), third);
                    let conjunction = Conjunction::new(&predicate, &schema).unwrap();
                    for part in [batch.clone(), batch.slice(3, 500), batch.slice(9, 0)] {
                        let expected = predicate.evaluate(&part).unwrap();
                        let expected = expected.into_array(part.num_rows()).unwrap();
                        let expected = expected.as_boolean().iter();
                        let expected: Vec<_> =
                            expected.map(|is_met| is_met == Some(true)).collect();
                        let ours = conjunction.evaluate(&part).unwrap();
                        assert_eq!(
                            ours.values().iter().collect::<Vec<_>>(),
                            expected,
                            "{predicate}"
                        );
                        assert_eq!(ours.null_count(), 0);
                        checked += usize::from(ours.true_count() > 0);
                    }
                }
            }
        }
        assert!(checked > 100, "{checked} predicates hold for some rows");
    }

    #[test]
    fn texts_are_compared_last_unless_a_condition_between_may_fail() {
        let schema = batch().schema();
        let compare = |name, value: ScalarValue| {
            binary(col(name, &schema).unwrap(), Operator::Eq, lit(value), &schema).unwrap()
        };
        let (text, number) = (compare("c", "text 3".into()), compare("a", 1_i64.into()));
        let quotient = binary(lit(1_i64), Operator::Divide, col("a", &schema).unwrap(), &schema);
        let fails = binary(quotient.unwrap(), Operator::Gt, lit(0_i64), &schema).unwrap();
        let columns_in_order = |conditions: &[&Arc<dyn PhysicalExpr>]| {
            let all = conditions.iter().map(|condition| Arc::clone(condition));
            let predicate = conjunction(all);
            let conditions = Conjunction::new(&predicate, &schema).unwrap().conditions;
            conditions
                .iter()
                .map(|condition| condition.predicate.projection()[0])
                .collect::<Vec<_>>()
        };
        assert_eq!(columns_in_order(&[&text, &number, &text, &number]), [0, 0, 2, 2]);
        assert_eq!(columns_in_order(&[&text, &fails, &number]), [2, 0, 0]);
        assert_eq!(columns_in_order(&[&fails, &text, &number]), [0, 0, 2]);
    }

    #[test]
    fn conditions_after_a_sparse_one_see_its_rows_only() {
        let batch = batch();
        let schema = batch.schema();
        let column = |name| col(name, &schema).unwrap();
        let sparse = binary(column("a"), Operator::Eq, lit(1_i64), &schema).unwrap();
        // Fails for all rows where a is 0, as the first one is.
        let quotient = binary(lit(1_i64), Operator::Divide, column("a"), &schema).unwrap();
        let fails = binary(quotient, Operator::Gt, lit(0_i64), &schema).unwrap();
        let alone = Conjunction::new(&fails, &schema).unwrap();
        assert!(alone.evaluate(&batch).is_err());
        let predicate = binary(sparse, Operator::And, fails, &schema).unwrap();
        let conjunction = Conjunction::new(&predicate, &schema).unwrap();
        assert_eq!(conjunction.evaluate(&batch).unwrap().true_count(), 10);
    }
}
