//! Ids and indexes, each kind with a type of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A newtype over a dense index, so that sets and tables of it can be plain arrays.
pub trait Index: Copy + Ord + fmt::Debug {
    /// The index with this position.
    fn from_usize(position: usize) -> Self;
    /// The position in an array.
    fn as_usize(self) -> usize;
}

impl Index for usize {
    fn from_usize(position: usize) -> Self {
        position
    }
    fn as_usize(self) -> usize {
        self
    }
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        index! { $(#[$doc])* $name(u32), $prefix }
    };
    ($(#[$doc:meta])* $name:ident($number:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub $number);

        impl Index for $name {
            fn from_usize(position: usize) -> Self {
                Self(<$number>::try_from(position).expect("fewer of a kind than there are ids"))
            }
            fn as_usize(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index! {
    /// A registered table.
    TableId, "t"
}
index! {
    /// A chunk of a table. In a table made of a [`Layout`](crate::Layout) they count from the first row, else in the order
    /// in which they were added; the index of a retired chunk is given again.
    ChunkIndex, "c"
}
index! {
    /// A column group of a table.
    GroupIndex, "g"
}
index! {
    /// A page of a [`Layout`](crate::Layout), in the order in which the layout lists them.
    PageIndex, "p"
}
index! {
    /// A page: bytes that are read and evicted together, whichever tables list them. Ids of pages that were added
    /// together are consecutive. The id of a removed page may be given again.
    PageId, "p"
}
index! {
    /// A device or store that reads come from. Each has load slots of its own.
    DeviceId, "d"
}
index! {
    /// One of the workers that share a scan, counted from 0.
    WorkerIndex, "w"
}
index! {
    /// A registered scan. Ids are given in the order of registration and never again.
    ScanId, "s"
}
index! {
    /// A decided load. Ids are given in the order of decision and never again.
    LoadId(u64), "l"
}

index! {
    /// A request for memory. Ids ascend in the order of requests and are never reused.
    TicketId(u64), "m"
}

index! {
    /// What a query computes of each chunk of a scan. The caller chooses the numbers.
    ComputationId(u64), "f"
}

index! {
    /// The position of a running scan among those of its table, so that sets of them take a few bits. Given to another scan
    /// after it has ended.
    ScanPosition, "q"
}
index! {
    /// A class of chunks of a table.
    ClassIndex, "k"
}

/// One column group of one chunk of a table: the pages that hold it are a slice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SliceId {
    /// The table.
    pub table: TableId,
    /// The chunk of it.
    pub chunk: ChunkIndex,
    /// The column group.
    pub group: GroupIndex,
}

/// A point in time: nanoseconds since a start that the caller chooses.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Time(pub u64);

impl Time {
    /// Nanoseconds since `earlier`; 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
