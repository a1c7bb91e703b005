//! Observations from reading a file that its footer does not contain. They are kept with the file, like its statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_schema::DataType;
use coscan_core::{ChunkIndex, Index};

use super::ParquetFile;

impl ParquetFile {
    /// Whether a column is known to hold no NaN in a chunk: it has no floating-point numbers, or all rows of the chunk
    /// were decoded and none was NaN.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn is_without_nan(&self, chunk: ChunkIndex, column: usize) -> bool {
        let data_type = self.field(column).data_type();
        match is_floating(data_type) {
            true => self.observed.without_nan.get(self.observed.position(chunk, column)),
            false => data_type.is_integer() || data_type.is_decimal(),
        }
    }

    /// Notes that the rows of a row group were found not to be in the order of a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn note_unordered(&self, column: usize, is_descending: bool) {
        self.observed.unordered.set(2 * column + usize::from(is_descending));
    }

    /// Whether the rows of a row group were found not to be in the order of a column. If false, they may or may not be.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn is_unordered(&self, column: usize, is_descending: bool) -> bool {
        self.observed.unordered.get(2 * column + usize::from(is_descending))
    }
}

/// The observations of a file.
pub(super) struct Observed {
    chunk_count: usize,
    /// For each column and chunk, whether it holds no NaN.
    without_nan: Flags,
    /// For each column, whether rows of a row group do not ascend, and whether they do not descend.
    unordered: Flags,
}

impl Observed {
    pub(super) fn new(column_count: usize, chunk_count: usize) -> Self {
        Self {
            chunk_count,
            without_nan: Flags::new(column_count * chunk_count),
            unordered: Flags::new(2 * column_count),
        }
    }

    fn position(&self, chunk: ChunkIndex, column: usize) -> usize {
        column * self.chunk_count + chunk.as_usize()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.without_nan.0) + size_of_val(&*self.unordered.0)
    }
}

/// Flags that are only ever set, one bit each.
struct Flags(Box<[AtomicU64]>);

impl Flags {
    fn new(count: usize) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    fn get(&self, position: usize) -> bool {
        self.0[position / 64].load(Ordering::Relaxed) >> (position % 64) & 1 == 1
    }

    fn set(&self, position: usize) {
        self.0[position / 64].fetch_or(1 << (position % 64), Ordering::Relaxed);
    }
}

/// Watches a column of a chunk while all its rows are decoded, for NaN.
pub(super) struct NanWatch {
    observed: Arc<Observed>,
    position: usize,
}

impl NanWatch {
    /// A watch; `None` if there is nothing to find out.
    pub(super) fn new(file: &ParquetFile, chunk: ChunkIndex, column: usize) -> Option<Self> {
        let is_open = is_floating(file.field(column).data_type());
        let position = file.observed.position(chunk, column);
        let watch = || Self { observed: Arc::clone(&file.observed), position };
        (is_open && !file.is_without_nan(chunk, column)).then(watch)
    }

    /// Checks the next rows; `None` if there is NaN among them.
    pub(super) fn after(self, rows: &dyn Array) -> Option<Self> {
        (!may_hold_nan(rows)).then_some(self)
    }

    /// Notes that all rows were decoded without NaN.
    pub(super) fn end(self) {
        self.observed.without_nan.set(self.position);
    }
}

fn is_floating(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_floating(values),
        data_type => data_type.is_floating(),
    }
}

/// Whether an array has NaN, or may have.
pub(super) fn may_hold_nan(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Dictionary(..) => may_hold_nan(array.as_any_dictionary().values()),
        DataType::Float16 => any::<Float16Type>(array, |value| value.is_nan()),
        DataType::Float32 => any::<Float32Type>(array, f32::is_nan),
        DataType::Float64 => any::<Float64Type>(array, f64::is_nan),
        _ => true,
    }
}

/// Whether `is` holds for any value. All values are checked, without a branch for each.
fn any<T: ArrowPrimitiveType>(array: &dyn Array, is: impl Fn(T::Native) -> bool) -> bool {
    array.as_primitive::<T>().values().iter().fold(false, |found, &value| found | is(value))
}
