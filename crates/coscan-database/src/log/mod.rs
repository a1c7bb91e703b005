//! The database in its write-ahead log: what a record says (`record`), in which bytes (`encoding`), how a commit becomes
//! one (`changes`), and how records become a database again (`replay`).

mod changes;
mod encoding;
mod record;
mod replay;

pub(crate) use changes::table_changes;
pub use encoding::{Reader, ValueFormat, put_bytes, put_number};
pub(crate) use record::Record;
pub(crate) use replay::Replay;
