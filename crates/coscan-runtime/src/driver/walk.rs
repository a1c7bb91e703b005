//! What goes in steps, and how far it is.

use coscan_core::{ScanId, TableId};

use crate::tables::registry::FileId;

/// Chunks that a scan is registered for, or that are removed from it, while the lock is held once.
pub(super) const STEP_CHUNKS: usize = 1024;

/// Something that goes in steps, and how far it is.
#[derive(Debug)]
pub(super) enum Walk {
    /// Drops what a scan needs that has failed.
    DropNeeds(ScanId),
    /// Drops what a scan needs that has ended, and then the scan.
    EndScan(ScanId),
    /// Releases the files of a table that is no longer held, and then the table.
    ReleaseTable { table: TableId, files: Vec<FileId> },
    /// Tells the owners of files what scans need, as they may be others now.
    AnnounceAgain,
    /// Computes who owns what: of new files, and of all when the members or the choice of `auto` have changed.
    RenewOwners,
    /// Removes from core what nobody holds any more.
    LetGo,
}
