//! Tables that change: their versions, and transactions that make the next ones. Knows no file format and no query
//! engine: a file is a name with a number of rows, and a value whatever the user of the crate takes for one.
//!
//! A [`Database`] has tables. A [`TableVersion`] is a table at one moment: its files, with the changes of their rows by
//! position (`coscan-pdt`), and the rows that no file has. A [`Transaction`] sees the versions of its start, and its own
//! changes. At its commit they are applied to the latest versions: snapshot isolation, in which the first of two
//! transactions that wrote the same row commits, and the other fails `[CS11 §2.7]`.
//!
//! ```
//! use coscan_database::{DataFile, Database};
//!
//! let database = Database::<i64>::default();
//! let mut load = database.begin();
//! let table = load.create_table("readings", *b"a schema")?;
//! load.add_file(table, database.new_file(), DataFile::new("readings/1.parquet", 1000))?;
//! load.insert(table, [7, 8])?;
//! load.commit()?;
//!
//! let mut change = database.begin();
//! let version = change.version(table)?;
//! assert_eq!(version.row_count(), 1001);
//! change.delete(table, version.row(17).expect("a row of the file"))?;
//! change.update(table, version.row(1000).expect("the inserted row"), [(1, 9)])?;
//! change.commit()?;
//! assert_eq!(database.begin().version(table)?.visible_rows(), 1000);
//! # Ok::<(), coscan_database::Error>(())
//! ```
//!
//! Start at [`Database`], then `commit.rs`.

#![forbid(unsafe_code)]

mod checkpoint;
mod commit;
mod database;
mod error;
mod log;
mod rewrite;
mod state;
mod table;
mod table_transaction;
mod table_writes;
mod transaction;
mod version;

pub use checkpoint::Checkpoint;
pub use commit::PendingCommit;
pub use coscan_wal as wal;
pub use coscan_wal::Lsn;
pub use database::Database;
pub use error::Error;
pub use log::{Reader, ValueFormat, put_bytes, put_number};
pub use table::{DataFile, FileId, RetiredFile, Table, TableId, TableRowId};
pub use transaction::Transaction;
pub use version::{ChangedFile, TablePart, TableVersion};
