//! Whether two answers to the same query are equal.
//!
//! Rows may come in any order, unless the query states one ([`compare_ordered_answers`]). Floating-point numbers may
//! differ by a relative [`TOLERANCE`], because their sums depend on the order in which rows arrive. Everything else
//! must be equal, names of columns included. Different encodings of the same type (`Utf8`, `Utf8View`, a dictionary
//! of either) are equal.

mod ordered;

use std::cmp::Ordering;
use std::fmt;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

pub use ordered::compare_ordered_answers;

/// The tolerance between two floating-point numbers, relative to the larger one.
pub const TOLERANCE: f64 = 1e-9;

/// The first difference between two answers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the answers differ: {detail}\nquery:\n{sql}")]
pub struct Difference {
    /// The query that both answered.
    pub sql: String,
    /// The difference: in the columns, the number of rows, or the first row that differs.
    pub detail: String,
}

/// Compares the answer `actual` to the query `sql` with the answer `expected`.
///
/// # Errors
/// The first difference.
pub fn compare_answers(
    sql: &str,
    expected: &[RecordBatch],
    actual: &[RecordBatch],
) -> Result<(), Difference> {
    let differ = |detail| Err(Difference { sql: sql.to_string(), detail });
    let (expected, actual) = match (Rows::new(expected), Rows::new(actual)) {
        (Ok(expected), Ok(actual)) => (expected, actual),
        (Err(error), _) | (_, Err(error)) => return differ(format!("not comparable: {error}")),
    };
    // An answer without batches has no columns to compare.
    if let (Some(expected), Some(actual)) = (&expected.columns, &actual.columns)
        && expected != actual
    {
        return differ(format!("expected columns {expected:?}, got {actual:?}"));
    }
    if expected.rows.len() != actual.rows.len() {
        return differ(format!("expected {} rows, got {}", expected.rows.len(), actual.rows.len()));
    }
    compare_rows(&expected, &actual, "in sorted order").or_else(differ)
}

/// Compares rows in their order. `order` tells users which that is.
fn compare_rows(expected: &Rows, actual: &Rows, order: &str) -> Result<(), String> {
    let mut pairs = expected.rows.iter().zip(&actual.rows).enumerate();
    match pairs.find(|(_, (expected, actual))| !expected.equals(actual)) {
        None => Ok(()),
        Some((index, (expected, actual))) => {
            Err(format!("row {index} {order}: expected {expected}, got {actual}"))
        }
    }
}

/// The rows of an answer, which are sorted unless their order is compared.
struct Rows {
    columns: Option<Vec<String>>,
    rows: Vec<Row>,
}

impl Rows {
    fn new(batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let mut rows = Self::unsorted(batches)?;
        rows.rows.sort_by(Row::compare);
        Ok(rows)
    }

    fn unsorted(batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let columns = batches.first().map(|batch| {
            batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
        });
        let mut rows = Vec::new();
        for batch in batches {
            push_rows(batch, &mut rows)?;
        }
        Ok(Rows { columns, rows })
    }
}

fn push_rows(batch: &RecordBatch, rows: &mut Vec<Row>) -> Result<(), ArrowError> {
    let first = rows.len();
    rows.resize_with(first + batch.num_rows(), Row::default);
    let options = FormatOptions::default().with_null("NULL");
    for array in batch.columns() {
        if array.data_type().is_floating() {
            let values = cast(array, &DataType::Float64)?;
            let values = values.as_primitive::<Float64Type>();
            for (row, value) in rows[first..].iter_mut().zip(values) {
                row.floats.push(value);
            }
        } else {
            let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
            for (index, row) in rows[first..].iter_mut().enumerate() {
                let valid = array.is_valid(index);
                row.exact.push(valid.then(|| formatter.value(index).to_string()));
            }
        }
    }
    Ok(())
}

/// One row. The columns that must be equal come first, so that rows with nearly equal numbers are sorted alike. The
/// floating-point columns follow.
#[derive(Debug, Default)]
struct Row {
    exact: Vec<Option<String>>,
    floats: Vec<Option<f64>>,
}

impl Row {
    fn compare(&self, other: &Row) -> Ordering {
        let floats = || {
            let pairs = self.floats.iter().zip(&other.floats);
            pairs
                .map(|(left, right)| match (left, right) {
                    (Some(left), Some(right)) => left.total_cmp(right),
                    _ => left.is_some().cmp(&right.is_some()),
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        self.exact.cmp(&other.exact).then_with(floats)
    }

    fn equals(&self, other: &Row) -> bool {
        let near = |(left, right): (&Option<f64>, &Option<f64>)| match (left, right) {
            (Some(left), Some(right)) => nearly_equal(*left, *right),
            (None, None) => true,
            _ => false,
        };
        self.exact == other.exact
            && self.floats.len() == other.floats.len()
            && self.floats.iter().zip(&other.floats).all(near)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.exact.iter().map(|value| value.clone().unwrap_or("NULL".to_string()));
        let floats =
            self.floats.iter().map(|value| value.map_or("NULL".to_string(), |v| format!("{v:?}")));
        write!(f, "({})", exact.chain(floats).collect::<Vec<_>>().join(", "))
    }
}

fn nearly_equal(left: f64, right: f64) -> bool {
    left == right
        || (left.is_nan() && right.is_nan())
        || (left - right).abs() <= TOLERANCE * left.abs().max(right.abs())
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, StringViewArray};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .expect("columns of one length")
    }

    fn answer(flags: &[&str], counts: &[i64], sums: &[Option<f64>]) -> RecordBatch {
        batch(vec![
            ("sum", Arc::new(Float64Array::from(sums.to_vec()))),
            ("flag", Arc::new(StringArray::from(flags.to_vec()))),
            ("count", Arc::new(Int64Array::from(counts.to_vec()))),
        ])
    }

    fn detail(expected: &RecordBatch, actual: &RecordBatch) -> Option<String> {
        let result = compare_answers("SELECT 1", from_ref(expected), from_ref(actual));
        result.err().map(|difference| {
            assert_eq!(difference.sql, "SELECT 1");
            difference.detail
        })
    }

    #[test]
    fn order_batches_and_the_last_digits_of_sums_do_not_matter() {
        let expected = answer(&["A", "B"], &[1, 2], &[Some(1e6), None]);
        let first = answer(&["B"], &[2], &[None]);
        let second = answer(&["A"], &[1], &[Some(1e6 + 1e-4)]);
        assert_eq!(compare_answers("", &[expected], &[first, second]), Ok(()));
    }

    #[test]
    fn a_float_beyond_the_tolerance_is_a_difference() {
        let expected = answer(&["A"], &[1], &[Some(1e6)]);
        let actual = answer(&["A"], &[1], &[Some(1e6 + 1e-2)]);
        let detail = detail(&expected, &actual).expect("a difference");
        assert_eq!(
            detail,
            "row 0 in sorted order: expected (A, 1, 1000000.0), got (A, 1, 1000000.01)"
        );
    }

    #[test]
    fn null_is_not_zero_and_not_the_text_null() {
        let null = answer(&["A"], &[1], &[None]);
        let zero = answer(&["A"], &[1], &[Some(0.0)]);
        assert!(detail(&null, &zero).is_some());

        let null = batch(vec![("t", Arc::new(StringArray::from(vec![None::<&str>])))]);
        let text = batch(vec![("t", Arc::new(StringArray::from(vec!["NULL"])))]);
        assert!(detail(&null, &text).is_some());
    }

    #[test]
    fn integers_texts_rows_and_columns_must_be_equal() {
        let expected = answer(&["A", "B"], &[1, 2], &[Some(1.0), Some(2.0)]);
        let other_count = answer(&["A", "B"], &[1, 3], &[Some(1.0), Some(2.0)]);
        assert!(
            detail(&expected, &other_count)
                .expect("a difference")
                .contains("(B, 2, 2.0), got (B, 3, 2.0)")
        );
        let other_flag = answer(&["A", "C"], &[1, 2], &[Some(1.0), Some(2.0)]);
        assert!(detail(&expected, &other_flag).is_some());
        let fewer = answer(&["A"], &[1], &[Some(1.0)]);
        assert_eq!(detail(&expected, &fewer).expect("a difference"), "expected 2 rows, got 1");
        let renamed = batch(vec![("a", Arc::new(Int64Array::from(vec![1])))]);
        let named = batch(vec![("b", Arc::new(Int64Array::from(vec![1])))]);
        assert!(detail(&renamed, &named).expect("a difference").contains("columns"));
    }

    #[test]
    fn encodings_of_text_are_equal() {
        let plain = batch(vec![("t", Arc::new(StringArray::from(vec!["x"])))]);
        let view = batch(vec![("t", Arc::new(StringViewArray::from(vec!["x"])))]);
        assert_eq!(detail(&plain, &view), None);
    }

    #[test]
    fn nothing_equals_nothing_but_not_something() {
        assert_eq!(compare_answers("", &[], &[answer(&[], &[], &[])]), Ok(()));
        assert!(compare_answers("", &[], &[answer(&["A"], &[1], &[None])]).is_err());
    }
}
