//! Work that goes in steps, and its progress.

use coscan_core::{ScanId, TableId};

use crate::tables::registry::FileId;

/// The number of chunks that a scan is registered for, or that are removed from it, while the lock is held once.
pub(super) const STEP_CHUNKS: usize = 1024;

/// Work that goes in steps, and its progress.
#[derive(Debug)]
pub(super) enum Walk {
    /// Drops the needs of a scan that has failed.
    DropNeeds(ScanId),
    /// Drops the needs of a scan that has ended, and then the scan.
    EndScan(ScanId),
    /// Releases the files of a table that is no longer held, and then the table.
    ReleaseTable { table: TableId, files: Vec<FileId> },
    /// Announces the needs of scans to the owners of files again, as owners may have changed.
    AnnounceAgain,
    /// Computes owners: for new files, and for all when the members or the choice of `auto` have changed.
    RenewOwners,
    /// Removes from core what is no longer held.
    LetGo,
}
