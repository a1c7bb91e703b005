//! How a database keeps its files.

use std::sync::Arc;
use std::time::Duration;

use crate::managed::publisher::TablePublisher;

/// How a database keeps its files.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Whether checkpoints run and the log is cut in the background.
    pub background: bool,
    /// The most bytes that checkpoints in the background and those of [`ManagedDatabase::checkpoint`](crate::ManagedDatabase::checkpoint) write in a second;
    /// `None` for no limit.
    pub checkpoint_bytes_per_second: Option<u64>,
    /// How long files are kept that a checkpoint has replaced, as a safeguard: nothing reads them any more but statements that are running.
    pub retention: Duration,
    /// Publishes tables to other engines whenever all of their rows are in files; `None` if nothing does.
    pub publisher: Option<Arc<dyn TablePublisher>>,
}

impl Default for DatabaseOptions {
    /// In the background, at 100 MB a second. Files are kept for a week, and nothing is published.
    fn default() -> Self {
        Self {
            background: true,
            checkpoint_bytes_per_second: Some(100_000_000),
            retention: Duration::from_secs(7 * 24 * 60 * 60),
            publisher: None,
        }
    }
}
