//! A write-ahead log with group commit, and disks to test it on.
//!
//! A database directory has one log for all its tables. A change is durable when its record is: the database replays the
//! records after a crash. What is in a record is not known here.
//!
//! ```
//! use std::sync::Arc;
//! use coscan_wal::{Log, LogError, LogOptions, Lsn, SimulatedDisk};
//!
//! let disk = SimulatedDisk::new(7);
//! let (mut log, _) = Log::open(Arc::new(disk.clone()), LogOptions::default())?;
//! assert_eq!(log.append_all(&["first", "second"])?, Lsn(2));
//!
//! let disk = disk.crash(8); // The power goes off and comes back.
//! let (log, recovery) = Log::open(Arc::new(disk), LogOptions::default())?;
//! let mut seen = Vec::new();
//! recovery.for_each(recovery.first(), |record| {
//!     seen.push((record.lsn, String::from_utf8_lossy(record.payload).into_owned()));
//!     Ok::<(), LogError>(())
//! })?;
//! assert_eq!(seen, [(Lsn(1), "first".into()), (Lsn(2), "second".into())]);
//! # Ok::<(), LogError>(())
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | record | bytes that are appended as a whole, with a number |
//! | LSN | the log sequence number: the number of a record, from 1 without a gap |
//! | durable | it survives a crash, unless the medium is damaged |
//! | acknowledged | the caller was told that it is durable |
//! | group | records that are written together and made durable by one sync |
//! | segment | a file of the log, named by the first LSN that it has |
//! | opening | the time from opening the log until the next. A segment has the records of one opening |
//! | torn write | a write of which a crash has left some sectors, in any order. It was never acknowledged |
//! | corruption | damage of bytes that were durable: an error, never cut |
//!
//! # What is guaranteed
//!
//! - What was acknowledged is there after every crash, or opening or reading it is an error that names the damage.
//! - What was not acknowledged is there in part: some of the first of the records, in order, unchanged.
//! - Nothing that a recovery has cut comes back later, whatever sectors do.
//! - Torn writes and corruption are told apart by what records say about those before them (`log/tail.rs`). They look the
//!   same only in the last group, if the log was neither closed nor opened since; [`Recovery::torn`] then reports the cut.
//!
//! Start at [`Disk`], then [`Publication`], [`Log`], [`Recovery`] and [`GroupCommit`].

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_types)]

mod disk;
mod durable_rename;
mod error;
mod format;
mod group_commit;
mod log;
mod lsn;
mod reader;
mod recovery;

pub use disk::{Disk, DiskFile, DiskLock, LocalDisk, Operation, SECTOR_BYTES, SimulatedDisk};
pub use durable_rename::{Publication, publish, remove_temporaries};
pub use error::LogError;
pub use group_commit::{Commit, Executor, GroupCommit, Job, PENDING_BYTES_MAX};
pub use log::{Log, LogOptions, RECORD_BYTES_MAX};
pub use lsn::Lsn;
pub use recovery::{Record, Records, Recovery, TornTail};
