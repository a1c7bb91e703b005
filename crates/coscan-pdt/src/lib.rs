//! Changes by position: deletes, patches and inserts of the rows of a file that itself never changes. A pure value: no
//! clock, I/O, thread, lock, random number or hash order.
//!
//! A file has rows 0, 1, 2, …; these numbers are their names for as long as the file is read. A version of its changes
//! is a [`FileChanges`]: which rows are deleted, which cells have another value, which rows are inserted and before which
//! row. A scan reads the columns of the file as they are, shared with all other scans, and merges the changes of its
//! own version into each chunk.
//!
//! ```
//! use coscan_pdt::{FileChanges, Insert, InsertId, Place, Rid, RowId, Sid, Transaction};
//!
//! // A file of four rows.   SID    0      1      2      3
//! let version: FileChanges<&str> = FileChanges::new(4);
//! let mut transaction = Transaction::new(&version);
//! transaction.delete(Sid(1))?;
//! transaction.patch(Sid(3), 0, "patched")?;
//! transaction.insert(Insert::new(InsertId(7), Place::Before(Sid(2)), ["inserted"]))?;
//! // What a query sees:     RID    0             1      2      3
//! //                               row 0  insert 7  row 2  row 3, patched
//!
//! // Somebody else deletes row 0 and commits first: other rows, so this is no conflict.
//! let mut other = Transaction::new(&version);
//! other.delete(Sid(0))?;
//! let (latest, written) = other.into_parts();
//! let (latest, _) = transaction.rebased(&latest, [&written])?.into_parts();
//!
//! assert_eq!(latest.visible_rows(), 3);
//! assert_eq!(latest.row_at_rid(Rid(0)), Some(RowId::Insert(InsertId(7))));
//! assert_eq!(latest.rid_of_sid(Sid(3)), Some(Rid(2)));
//! let chunk = latest.range(Sid(2)..Sid(4));
//! assert_eq!(chunk.patches(0).collect::<Vec<_>>(), [(Sid(3), &"patched")]);
//! assert_eq!(chunk.inserts().count(), 1);
//! assert!(version.is_empty(), "a version never changes");
//! # Ok::<(), coscan_pdt::Error>(())
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | stable row | a row of the file, deleted or not |
//! | SID | the position of a stable row in its file: its name |
//! | RID | the position of a row among those that a query sees, in one version |
//! | patch | another value of one cell of a stable row |
//! | insert | a row that the file does not have, with an id of its own. It stands before a stable row, or in the tail |
//! | tail | the inserts after the last stable row |
//! | version | the changes of a file at one moment. Versions share what they have in common |
//! | write set | the rows that a transaction wrote in a file |
//! | checkpoint | a new file with the rows of a version: its SIDs are their RIDs |
//!
//! # Differences from the thesis
//!
//! SID and RID are those of the thesis (`[CS11 §2.8, §4.5]`: Świtakowski, 2011), as are snapshot isolation (§2.7) and
//! checkpoints (§2.9, §4.7). There, changes are in three layers of positional delta trees, and each layer names rows by
//! the RIDs of the one below. So a commit has to compute positions anew, for all that was committed meanwhile. Here,
//! changes have the file's own positions, whatever else was changed. A commit, a check for conflicts and replay
//! compute no position.
//!
//! - Versions are persistent trees instead of layers: a scan merges one of them, however many commits there were.
//! - An insert belongs to the chunk of the row *before which* it stands, so that ranges of SIDs that do not overlap have no
//!   change in common. Nothing is trimmed from neighbouring chunks (RangeTrim in Figure 4.5).
//! - A RID may lie between stable rows. The thesis gives it the SID of the next one, and needs two ways back (SIDtoRIDlow,
//!   SIDtoRIDhigh); here [`FileChanges::row_at_rid`] names the insert, and [`FileChanges::rid_of`] is its inverse.
//!
//! Start at [`FileChanges`], then [`Transaction`] and [`RowMap`].

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod block;
mod changes;
mod checkpoint;
mod error;
mod ids;
mod insert;
mod transaction;
mod tree;
mod write_set;

pub use block::ChangeCounts;
pub use changes::{DeletedMask, FileChanges, RangeChanges, RangeVersion};
pub use checkpoint::RowMap;
pub use error::Error;
pub use ids::{InsertId, Place, Rid, RowId, Sid};
pub use insert::Insert;
pub use transaction::Transaction;
pub use write_set::WriteSet;

#[cfg(test)]
extern crate self as coscan_pdt;

/// The tests from outside once more, with the small nodes and blocks that this crate has when it is tested itself.
#[cfg(test)]
#[path = "../tests/integration/main.rs"]
mod small;
