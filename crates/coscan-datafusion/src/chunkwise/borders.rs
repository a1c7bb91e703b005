//! Separates the rows of the first and the last key of a chunk from its other rows.
//!
//! Where the rows of a key are consecutive in the table, a key other than the first and the last of a chunk has no rows
//! in other chunks [CS07 §7.2].

use std::collections::VecDeque;

use datafusion::arrow::array::{ArrayRef, DynComparator, RecordBatch, make_comparator};
use datafusion::arrow::compute::SortOptions;
use datafusion::error::Result;

/// Separates the rows of one chunk.
#[derive(Debug)]
pub(super) struct Borders {
    /// The indexes of the key columns.
    key: Vec<usize>,
    /// A row of the first key, until a row of another key arrives.
    first: Option<RecordBatch>,
    /// The rows of the last key so far, unless it is the first key.
    last: Vec<RecordBatch>,
    /// The rows of the first key.
    border: Vec<RecordBatch>,
    /// The rows of other keys that have not been taken.
    inner: VecDeque<RecordBatch>,
    has_rows: bool,
}

impl Borders {
    pub(super) fn new(key: Vec<usize>) -> Self {
        let (last, border, inner) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { key, first: None, last, border, inner, has_rows: false }
    }

    /// Adds the next rows of the chunk.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if !self.has_rows {
            self.has_rows = true;
            self.first = Some(batch.slice(0, 1));
        }
        let mut rest = batch;
        if let Some(first) = &self.first {
            let rows = self.run_from_start(&rest, first)?;
            if rows > 0 {
                self.border.push(rest.slice(0, rows));
            }
            if rows == rest.num_rows() {
                return Ok(());
            }
            self.first = None;
            rest = rest.slice(rows, rest.num_rows() - rows);
        }
        let start = self.last_run(&rest)?;
        let continues = match self.last.first() {
            Some(last) => start == 0 && self.run_from_start(&rest, &last.slice(0, 1))? > 0,
            None => false,
        };
        if !continues {
            self.inner.extend(self.last.drain(..));
            if start > 0 {
                self.inner.push_back(rest.slice(0, start));
            }
        }
        self.last.push(rest.slice(start, rest.num_rows() - start));
        Ok(())
    }

    /// The next rows of keys that are neither the first nor the last of the chunk, in its order, or `None` if more have
    /// to be added first.
    pub(super) fn next_inner(&mut self) -> Option<RecordBatch> {
        self.inner.pop_front()
    }

    /// All rows of the first and the last key, in the chunk's order, after all rows were added. Resets this value for
    /// the next chunk.
    pub(super) fn finish(&mut self) -> Vec<RecordBatch> {
        (self.first, self.has_rows) = (None, false);
        self.border.append(&mut self.last);
        std::mem::take(&mut self.border)
    }

    /// The number of rows at the start that have the key of another row.
    fn run_from_start(&self, batch: &RecordBatch, row: &RecordBatch) -> Result<usize> {
        let keys = comparators(&self.columns(batch), &self.columns(row))?;
        let is_equal = |index: usize| keys.iter().all(|compare| compare(index, 0).is_eq());
        Ok(partition_point(batch.num_rows(), is_equal))
    }

    /// The index of the first row that has the key of the last row.
    fn last_run(&self, batch: &RecordBatch) -> Result<usize> {
        let (columns, last) = (self.columns(batch), batch.num_rows() - 1);
        let keys = comparators(&columns, &columns)?;
        let differs = |index: usize| !keys.iter().all(|compare| compare(index, last).is_eq());
        Ok(partition_point(batch.num_rows(), differs))
    }

    fn columns(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.key.iter().map(|&column| batch.column(column).clone()).collect()
    }
}

fn comparators(left: &[ArrayRef], right: &[ArrayRef]) -> Result<Vec<DynComparator>> {
    let pairs = left.iter().zip(right);
    let compare = |(left, right): (&ArrayRef, &ArrayRef)| {
        Ok(make_comparator(left, right, SortOptions::default())?)
    };
    pairs.map(compare).collect()
}

/// The number of rows for which `holds`, which must hold for the first rows only.
fn partition_point(rows: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut start, mut end) = (0, rows);
    while start < end {
        let middle = start.midpoint(end);
        if holds(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array, UInt64Array};
    use datafusion::arrow::datatypes::{Int64Type, UInt64Type};

    use super::*;

    /// The key and the position of each row.
    type Rows = Vec<(Option<i64>, u64)>;

    fn rows(batches: &[RecordBatch]) -> Rows {
        let of_batch = |batch: &RecordBatch| {
            let keys = batch.column(0).as_primitive::<Int64Type>().clone();
            let positions = batch.column(1).as_primitive::<UInt64Type>().values().to_vec();
            keys.into_iter().zip(positions).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of_batch).collect()
    }

    /// Adds a chunk of these keys in batches of some rows. Returns its inner rows and those at its borders.
    fn parted(borders: &mut Borders, keys: &[Option<i64>], batch_rows: usize) -> (Rows, Rows) {
        let positions = (0..keys.len() as u64).collect::<UInt64Array>();
        let columns: [(&str, ArrayRef); 2] = [
            ("key", Arc::new(keys.iter().copied().collect::<Int64Array>())),
            ("position", Arc::new(positions)),
        ];
        let chunk = RecordBatch::try_from_iter(columns).unwrap();
        let mut inner = Vec::new();
        for start in (0..keys.len()).step_by(batch_rows) {
            borders.push(chunk.slice(start, batch_rows.min(keys.len() - start))).unwrap();
            inner.extend(std::iter::from_fn(|| borders.next_inner()));
        }
        let border = borders.finish();
        assert_eq!(borders.next_inner(), None);
        (rows(&inner), rows(&border))
    }

    #[test]
    fn the_first_and_the_last_key_are_parted_from_the_others_in_order() {
        let lengths = [1, 2, 3, 5];
        let mut borders = Borders::new(vec![0]);
        for runs in 0..6_u32 {
            for case in 0..lengths.len().pow(runs) {
                // The first run has NULL keys.
                let length = |run: u32| lengths[case / lengths.len().pow(run) % lengths.len()];
                let run = |run: u32| vec![(run > 0).then_some(i64::from(run)); length(run)];
                let keys: Vec<_> = (0..runs).flat_map(run).collect();
                let is_border =
                    |key: &Option<i64>| keys.first() == Some(key) || keys.last() == Some(key);
                let positioned = keys.iter().copied().zip(0..);
                let (border, inner) = positioned.partition::<Rows, _>(|(key, _)| is_border(key));
                for batch_rows in 1..=keys.len().max(1) {
                    let parts = parted(&mut borders, &keys, batch_rows);
                    assert_eq!(parts, (inner.clone(), border.clone()), "{keys:?} by {batch_rows}");
                }
            }
        }
    }
}
