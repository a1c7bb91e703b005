//! `lineitem` as a directory with a file for each day, such as a pipeline writes.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow::temporal_conversions::date32_to_datetime;
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

use super::others::write;
use super::{TpchError, check_scale, in_parallel, make};

/// The most files. Each is one of so many parts of a table, so that a file does not depend on how many others are made.
pub const DAYS_MAX: usize = 1000;

/// The bytes of `lineitem` per unit of scale factor, in Parquet.
const BYTES_PER_SCALE: f64 = 270e6;

/// 2024-01-01, in days since 1970.
const FIRST_DAY: i32 = 19_723;

/// Makes `days` files of about `file_bytes` bytes, `day=2024-01-01/lineitem.parquet` and so on, in a directory of their own in
/// `directory`, unless an earlier run left them there. Returns their paths, the first day first. `on_file` gets the number of
/// those that are there.
///
/// # Errors
/// As [`super::lineitem`].
///
/// # Panics
/// For more than [`DAYS_MAX`] days.
pub fn lineitem_by_day(
    directory: &Path,
    days: usize,
    file_bytes: u64,
    on_file: &(dyn Fn(usize) + Sync),
) -> Result<Vec<PathBuf>, TpchError> {
    assert!(days <= DAYS_MAX, "a table has {DAYS_MAX} days");
    let scale_factor = file_bytes as f64 * DAYS_MAX as f64 / BYTES_PER_SCALE;
    check_scale(scale_factor)?;
    let table = directory.join(format!("lineitem-by-day-{file_bytes}"));
    let threads = thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let made = AtomicUsize::new(0);
    let indices: Vec<usize> = (0..days).collect();
    let files = in_parallel(&indices, threads, |_, &index| {
        let day = date32_to_datetime(FIRST_DAY + index as i32).unwrap_or_default().date();
        let directory = table.join(format!("day={day}"));
        let path = directory.join("lineitem.parquet");
        make(&directory, &path, |file| {
            let generator = LineItemGenerator::new(scale_factor, index as i32 + 1, DAYS_MAX as i32);
            write(file, Box::new(LineItemArrow::new(generator)))
        })?;
        on_file(made.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(path)
    });
    files.into_iter().collect()
}
