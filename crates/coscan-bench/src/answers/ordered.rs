//! Answers with ordered rows.

use arrow::array::RecordBatch;

use super::{Difference, Rows, compare_answers, compare_rows};

/// Does the same as [`compare_answers`], and compares the order of rows by the columns `keys`, as far as these
/// distinguish rows.
///
/// # Errors
/// The first difference.
pub fn compare_ordered_answers(
    sql: &str,
    keys: &[&str],
    expected: &[RecordBatch],
    actual: &[RecordBatch],
) -> Result<(), Difference> {
    compare_answers(sql, expected, actual)?;
    if keys.is_empty() {
        return Ok(());
    }
    let compared = || -> Result<(), String> {
        let in_order =
            |batches| key_rows(keys, batches).map_err(|error| format!("not comparable: {error}"));
        let order = format!("by order of {}", keys.join(", "));
        compare_rows(&in_order(expected)?, &in_order(actual)?, &order)
    };
    compared().map_err(|detail| Difference { sql: sql.to_owned(), detail })
}

/// The columns `keys` of all rows, in their order.
fn key_rows(keys: &[&str], batches: &[RecordBatch]) -> Result<Rows, arrow::error::ArrowError> {
    let project = |batch: &RecordBatch| {
        let places = keys.iter().map(|key| batch.schema_ref().index_of(key));
        batch.project(&places.collect::<Result<Vec<_>, _>>()?)
    };
    Rows::unsorted(&batches.iter().map(project).collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::*;

    fn answer(texts: &[&str], numbers: &[f64]) -> RecordBatch {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let numbers: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
        RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).expect("columns of one length")
    }

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        let expected = [answer(&["a", "b", "c"], &[1.0, 1.0, 2.0])];
        let compare = |keys: &[&str], actual| {
            compare_ordered_answers("", keys, &expected, &[actual]).map_err(|found| found.detail)
        };
        let equal_keys = answer(&["b", "a", "c"], &[1.0 + 1e-12, 1.0, 2.0]);
        assert_eq!(compare(&["n"], equal_keys.clone()), Ok(()));
        assert_eq!(
            compare(&["n", "t"], equal_keys),
            Err("row 0 by order of n, t: expected (a, 1.0), got (b, 1.000000000001)".to_owned())
        );
        let other_order = answer(&["c", "a", "b"], &[2.0, 1.0, 1.0]);
        assert_eq!(compare(&[], other_order.clone()), Ok(()));
        assert!(compare(&["n"], other_order).is_err());
        assert!(compare(&["n"], answer(&["a", "b"], &[1.0, 1.0])).is_err(), "a row is missing");
        assert!(compare(&["x"], expected[0].clone()).is_err(), "there is no column x");
    }
}
