//! The directory of a run, to which files are added.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::panels::Panel;
use crate::runner::EngineError;

/// Adds a file of a partition, `day=…/lineitem.parquet`, to the directory of a run, as a link where the file system has them.
///
/// # Errors
/// If the directory cannot be written.
pub(super) fn add(directory: &Path, file: &Path) -> Result<(), EngineError> {
    let (Some(name), Some(day)) = (file.file_name(), file.parent().and_then(Path::file_name))
    else {
        return Err(format!("{} is not in a directory of its day", file.display()).into());
    };
    let to = directory.join(day).join(name);
    let add = || {
        fs::create_dir_all(directory.join(day))?;
        fs::hard_link(file, &to).or_else(|_| fs::copy(file, &to).map(|_| ()))
    };
    add().map_err(|error| format!("cannot write {}: {error}", to.display()).into())
}

/// The stored bytes of the columns of a file that panels read.
///
/// # Errors
/// If it is not a Parquet file.
pub(super) fn compulsory_bytes(file: &PathBuf, panels: &[Panel]) -> Result<u64, EngineError> {
    let reader = SerializedFileReader::new(File::open(file)?)?;
    let row_groups = reader.metadata().row_groups();
    let columns = row_groups.iter().flat_map(|row_group| row_group.columns());
    let read = columns.filter(|column| {
        let name = column.column_path().string();
        panels.iter().any(|panel| panel.reads(&name))
    });
    Ok(read.map(|column| column.compressed_size().max(0) as u64).sum())
}
