//! The changes of the rows that a scan reads of a chunk, merged into batch after batch.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::compute::FilterBuilder;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::ArrowError;
use coscan_core::ChunkIndex;
use coscan_pdt::Sid;

use super::arrays::patched;
use super::value::Value;
use super::{FileChanges, ParquetTable};

/// The changes of the rows that a scan reads of a chunk.
#[derive(Debug)]
pub struct ChunkChanges {
    /// The changes of the file; `None` for chunks of inserted rows, of which some may be missing.
    changes: Option<Arc<FileChanges>>,
    /// The rows left, as positions in the file.
    left: VecDeque<Range<u64>>,
    /// The number of rows of the file.
    end: u64,
}

impl ParquetTable {
    /// The changes of a chunk; `None` if it has none. With a selection, which counts from the start of the chunk, only
    /// the selected rows are read.
    ///
    /// # Panics
    /// If there is no such chunk, or the selection exceeds it.
    #[must_use]
    pub fn chunk_changes(
        &self,
        chunk: ChunkIndex,
        selection: Option<&[Range<u64>]>,
    ) -> Option<ChunkChanges> {
        let file = self.chunk_file(chunk);
        let Range { start, end } = self.layout().rows(chunk);
        let file_start = self.first_row(file);
        let (start, end) = (start - file_start, end - file_start);
        let (changes, visible_end) = if self.inserted_file() == Some(file) {
            (None, self.changes().inserted_count())
        } else {
            let changes = self.file_changes(file)?;
            if changes.range(Sid(start)..Sid(end)).is_empty() {
                return None;
            }
            (Some(Arc::clone(changes)), u64::MAX)
        };
        let left = match selection {
            None => std::iter::once(start..end).collect(),
            Some(rows) => rows.iter().map(|rows| start + rows.start..start + rows.end).collect(),
        };
        Some(ChunkChanges { changes, left, end: visible_end })
    }
}

impl ChunkChanges {
    /// The next `rows` rows with their changes. `arrays` are the columns of the table with these numbers, as the file has
    /// them. Returns the columns and the number of rows, which are fewer if some are deleted.
    ///
    /// # Errors
    /// If a changed value does not have the type of its column.
    pub fn merge(
        &mut self,
        columns: &[usize],
        mut arrays: Vec<ArrayRef>,
        rows: u64,
    ) -> Result<(Vec<ArrayRef>, u64), ArrowError> {
        let runs = self.take(rows);
        if let Some(changes) = &self.changes {
            for (array, &column) in arrays.iter_mut().zip(columns) {
                let (positions, values) = patches(changes, &runs, column);
                if !positions.is_empty() {
                    *array = patched(array, &positions, &values)?;
                }
            }
        }
        let Some(mask) = self.mask(&runs, rows) else { return Ok((arrays, rows)) };
        let left = mask.count_set_bits() as u64;
        let filter = FilterBuilder::new(&BooleanArray::new(mask, None)).optimize().build();
        let arrays = arrays.iter().map(|array| filter.filter(array));
        Ok((arrays.collect::<Result<_, _>>()?, left))
    }

    /// Takes the next rows off those that are left.
    fn take(&mut self, rows: u64) -> Vec<Range<u64>> {
        let (mut runs, mut missing) = (Vec::new(), rows);
        while missing > 0 {
            let Some(next) = self.left.front_mut() else { break };
            let taken = next.start..next.end.min(next.start + missing);
            missing -= taken.end - taken.start;
            next.start = taken.end;
            if next.is_empty() {
                self.left.pop_front();
            }
            runs.push(taken);
        }
        runs
    }

    /// One bit for each row: whether a query sees it. `None` if it sees all.
    fn mask(&self, runs: &[Range<u64>], rows: u64) -> Option<BooleanBuffer> {
        let visible = |run: &Range<u64>| match &self.changes {
            Some(changes) => {
                let range = changes.range(Sid(run.start)..Sid(run.end));
                run.end - run.start - range.deleted_count()
            }
            None => self.end.min(run.end) - self.end.min(run.start),
        };
        if runs.iter().map(visible).sum::<u64>() == rows {
            return None;
        }
        let mut mask = BooleanBufferBuilder::new(as_length(rows));
        for run in runs {
            match &self.changes {
                Some(changes) => append_visible(&mut mask, changes, run),
                None => {
                    let visible = visible(run);
                    mask.append_n(as_length(visible), true);
                    mask.append_n(as_length(run.end - run.start - visible), false);
                }
            }
        }
        Some(mask.finish())
    }
}

/// Appends a bit for each row of a run: whether it is not deleted.
fn append_visible(mask: &mut BooleanBufferBuilder, changes: &FileChanges, run: &Range<u64>) {
    let mut next = run.start;
    for deleted in changes.range(Sid(run.start)..Sid(run.end)).deleted_runs() {
        mask.append_n(as_length(deleted.start.0 - next), true);
        mask.append_n(as_length(deleted.end.0 - deleted.start.0), false);
        next = deleted.end.0;
    }
    mask.append_n(as_length(run.end - next), true);
}

/// The patches of a column in some runs of rows: their positions among these rows, and their values.
fn patches<'a>(
    changes: &'a FileChanges,
    runs: &[Range<u64>],
    column: usize,
) -> (Vec<usize>, Vec<&'a Value>) {
    let (mut positions, mut values) = (Vec::new(), Vec::new());
    let mut before = 0;
    for run in runs {
        for (sid, value) in changes.range(Sid(run.start)..Sid(run.end)).patches(column as u32) {
            positions.push(as_length(before + sid.0 - run.start));
            values.push(value);
        }
        before += run.end - run.start;
    }
    (positions, values)
}

fn as_length(rows: u64) -> usize {
    usize::try_from(rows).expect("rows of a batch fit into memory")
}
