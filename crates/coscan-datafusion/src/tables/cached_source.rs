//! The source of a table's plans, kept as long as there is memory for the footers.

use std::sync::Arc;

use coscan_runtime::{CachedMetadata, Registration};
use coscan_storage::table::ParquetFile;

use crate::tables::source::ScanSource;

/// A source that is dropped when no plan uses it and memory is short. The table stays registered, and keeps its pages
/// until it is opened again.
#[derive(Debug)]
pub(crate) struct CachedSource {
    source: CachedMetadata<ScanSource>,
    _registration: Registration,
}

impl CachedSource {
    pub(crate) fn new(source: &Arc<ScanSource>) -> Self {
        let registration = source.table.registration();
        let kept = Self { source: source.manager.cache_slot(), _registration: registration };
        kept.put(source);
        kept
    }

    /// The source, if it is in memory.
    pub(crate) fn get(&self) -> Option<Arc<ScanSource>> {
        self.source.get()
    }

    /// Stores the source after it was opened again.
    pub(crate) fn put(&self, source: &Arc<ScanSource>) {
        let files = source.table.table().parquet_files().iter();
        let bytes = files.map(|file| ParquetFile::memory_bytes(file)).sum();
        self.source.put(Arc::clone(source), bytes);
    }
}
