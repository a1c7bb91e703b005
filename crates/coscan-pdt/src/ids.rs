//! Names of rows, and of places between them.

use std::fmt;

/// The position of a stable row in its file, counted from 0: its name in every version `[CS11 §4.5]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Sid(pub u64);

/// The position of a row among those that a query sees in one version, counted from 0 `[CS11 §4.5]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Rid(pub u64);

/// The name of an inserted row. The caller chooses it; no two inserts of a table ever have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct InsertId(pub u64);

/// The name of a row that can be changed: it stays the same until a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum RowId {
    /// A row of the file.
    Stable(Sid),
    /// A row that was inserted.
    Insert(InsertId),
}

/// The place of an inserted row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Place {
    /// Before a stable row, also if that row was deleted. The insert belongs to the chunk of that row.
    Before(Sid),
    /// After the last stable row. The insert belongs to no chunk of the file.
    Tail,
}

impl From<Sid> for RowId {
    fn from(sid: Sid) -> Self {
        Self::Stable(sid)
    }
}

impl From<InsertId> for RowId {
    fn from(id: InsertId) -> Self {
        Self::Insert(id)
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.0)
    }
}

impl fmt::Display for InsertId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "insert {}", self.0)
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stable(sid) => sid.fmt(f),
            Self::Insert(id) => id.fmt(f),
        }
    }
}
