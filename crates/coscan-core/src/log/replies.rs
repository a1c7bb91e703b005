//! Return values of commands, as the log has them.

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, PageId, ScanId, TableId, TicketId};

/// The return value of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The first of new pages.
    Pages(PageId),
    /// A new table, and the first of its pages.
    Layout(TableId, PageId),
    /// The indexes of new chunks.
    Chunks(Vec<ChunkIndex>),
    /// Whether a page that was offered was taken.
    Taken(bool),
    /// The id of a new table.
    Table(TableId),
    /// The id of a new scan.
    Scan(ScanId),
    /// The bytes that the pool may hold, or that were handed out.
    // The name in older logs.
    #[serde(alias = "pool_bytes")]
    Bytes(u64),
    /// The ticket of a request for memory.
    Ticket(TicketId),
    /// An error.
    Refused,
}

/// The recorded part of a return value.
pub(super) trait Returned {
    fn reply(&self) -> Option<Reply>;
}

impl Returned for () {
    fn reply(&self) -> Option<Reply> {
        None
    }
}

impl Returned for PageId {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Pages(*self))
    }
}

impl Returned for (TableId, PageId) {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Layout(self.0, self.1))
    }
}

impl Returned for Vec<ChunkIndex> {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Chunks(self.clone()))
    }
}

impl Returned for bool {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Taken(*self))
    }
}

impl Returned for TableId {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Table(*self))
    }
}

impl Returned for ScanId {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Scan(*self))
    }
}

impl Returned for u64 {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Bytes(*self))
    }
}

impl Returned for TicketId {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Ticket(*self))
    }
}

impl<T: Returned, E> Returned for Result<T, E> {
    fn reply(&self) -> Option<Reply> {
        self.as_ref().map_or(Some(Reply::Refused), T::reply)
    }
}
