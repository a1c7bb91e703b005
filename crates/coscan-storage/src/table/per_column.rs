//! Values per column, made on demand. Most columns of most files are never used, so even the slots of values are
//! allocated on demand.

use std::sync::OnceLock;

/// A value per column, each made once.
pub(super) struct PerColumn<T> {
    column_count: usize,
    values: OnceLock<Box<[OnceLock<Box<T>>]>>,
}

impl<T> PerColumn<T> {
    pub(super) fn new(column_count: usize) -> Self {
        Self { column_count, values: OnceLock::new() }
    }

    /// The value of a column. If it cannot be made, the next call tries again.
    ///
    /// # Panics
    /// If there is no such column.
    pub(super) fn get_or_try_make<E>(
        &self,
        column: usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        let values =
            self.values.get_or_init(|| (0..self.column_count).map(|_| OnceLock::new()).collect());
        if let Some(made) = values[column].get() {
            return Ok(made);
        }
        let made = Box::new(make()?);
        Ok(values[column].get_or_init(|| made))
    }

    /// Its heap memory in bytes; `heap_bytes` is that of a value.
    pub(super) fn memory_bytes(&self, heap_bytes: impl Fn(&T) -> usize) -> usize {
        let Some(values) = self.values.get() else { return 0 };
        let made = values.iter().filter_map(OnceLock::get);
        size_of_val(&**values) + made.map(|value| size_of::<T>() + heap_bytes(value)).sum::<usize>()
    }
}
