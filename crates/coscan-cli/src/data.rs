//! Generated data.

use std::path::PathBuf;

use coscan_bench::tpch;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Failure;

/// The requested directory, or `$XDG_CACHE_HOME/coscan/data`, or the same below the home directory.
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

/// Makes lineitem, unless an earlier run left it, and shows the progress.
///
/// # Errors
/// If it cannot be written.
pub(crate) async fn make_lineitem(directory: PathBuf, scale: f64) -> Result<PathBuf, Failure> {
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("making lineitem {wide_bar} {percent} % ({eta} left)")
    {
        bar.set_style(style);
    }
    let progress = bar.clone();
    let made = tokio::task::spawn_blocking(move || {
        tpch::lineitem(&directory, scale, &|done, total| {
            progress.set_length(total);
            progress.set_position(done);
        })
    });
    let path = made.await??;
    bar.finish_and_clear();
    Ok(path)
}

/// A directory that is removed at the end.
pub(crate) struct Removed(pub(crate) PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("coscan: cannot remove {}: {error}", self.0.display());
        }
    }
}
