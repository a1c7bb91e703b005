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

macro_rules! returned_as_is {
    ($($value:ty => $reply:ident),*) => {$(
        impl Returned for $value {
            fn reply(&self) -> Option<Reply> {
                Some(Reply::$reply(Self::clone(self)))
            }
        }
    )*};
}

returned_as_is!(PageId => Pages, Vec<ChunkIndex> => Chunks, bool => Taken, TableId => Table);
returned_as_is!(ScanId => Scan, u64 => Bytes, TicketId => Ticket);

impl Returned for () {
    fn reply(&self) -> Option<Reply> {
        None
    }
}

impl Returned for (TableId, PageId) {
    fn reply(&self) -> Option<Reply> {
        Some(Reply::Layout(self.0, self.1))
    }
}

impl<T: Returned, E> Returned for Result<T, E> {
    fn reply(&self) -> Option<Reply> {
        self.as_ref().map_or(Some(Reply::Refused), T::reply)
    }
}
