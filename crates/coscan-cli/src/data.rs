//! The directory of generated data.

use std::path::PathBuf;

use crate::Failure;

/// The directory asked for, or `$XDG_CACHE_HOME/coscan/data`, or the same below the home directory.
///
/// # Errors
/// If there is no home directory.
pub(crate) fn data_directory(asked_for: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let directory = asked_for.cloned().or_else(cache_directory);
    directory.ok_or_else(|| {
        "there is no home directory; choose where to keep data with --data DIRECTORY".into()
    })
}

fn cache_directory() -> Option<PathBuf> {
    let cache =
        std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join("coscan/data"))
}
