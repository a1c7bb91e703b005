//! The rows that a transaction wrote in a table, by which conflicts are found.

use std::collections::BTreeMap;

use coscan_pdt::WriteSet;

use crate::table::FileId;

/// The rows that a transaction wrote in a table.
#[derive(Clone, Default, Debug)]
pub(crate) struct TableWrites {
    pub(crate) files: BTreeMap<FileId, WriteSet>,
    pub(crate) inserted: WriteSet,
}

impl TableWrites {
    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.files.values().chain([&self.inserted]).map(WriteSet::len).sum()
    }
}
