//! The positions of reads in a table.

use std::collections::BTreeMap;

use coscan_storage::table::TableFile;
use object_store::path::Path;

/// The offset of each file in the whole table, in bytes.
#[derive(Debug)]
pub(super) struct FilePlaces {
    starts: BTreeMap<Path, u64>,
    bytes: u64,
}

impl FilePlaces {
    pub(super) fn new(files: &[TableFile]) -> Self {
        let mut bytes = 0;
        let mut starts = BTreeMap::new();
        for file in files {
            starts.insert(file.meta.location.clone(), bytes);
            bytes += file.meta.size;
        }
        Self { starts, bytes: bytes.max(1) }
    }

    /// The position from 0, the first byte of the table, to 1, its end.
    pub(super) fn position(&self, file: &Path, offset: u64) -> f64 {
        let start = self.starts.get(file).copied().unwrap_or(0);
        (start + offset) as f64 / self.bytes as f64
    }
}
