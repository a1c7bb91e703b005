//! The identity of files and tables: when two of them are the same.

use std::sync::Arc;

use coscan_storage::table::{FileOptions, FileVersion, TableFile};

/// An open file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FileId(pub(crate) u64);

/// Identifies a file: its version, how it was opened, and its store. Two stores of one address may hold different
/// files.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct FileKey {
    version: FileVersion,
    options: FileOptions,
    store: usize,
}

/// Identifies a table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TableKey {
    /// By name, columns, and their number of groups: successive snapshots of one table.
    Named(String, Arc<str>, usize),
    /// By its files, in order.
    Listed(Vec<FileId>, Arc<str>),
    /// By its tables and the rows of each chunk.
    Joint(JointKey),
}

/// Identifies a joint table: the files and columns of its tables, and the rows of its chunks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct JointKey {
    pub(super) tables: Vec<(Vec<FileId>, Arc<str>)>,
    pub(super) rows: Vec<(u64, u64)>,
}

impl FileKey {
    pub(crate) fn new(file: &TableFile, options: FileOptions) -> Self {
        let store = Arc::as_ptr(&file.store).cast::<()>().addr();
        Self { version: file.version(), options, store }
    }
}
