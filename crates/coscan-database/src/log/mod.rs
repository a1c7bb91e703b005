//! The database in its write-ahead log: what a record says (`record`), in which bytes (`encoding`), how a commit becomes
//! one (`changes`), and how records become a database again (`replay`), from a state that cuts the log (`state_file`).

mod changes;
mod encoding;
mod record;
mod replay;
mod state_file;

pub(crate) use changes::{rows_now, runs, stable_rows, table_changes};
pub use encoding::{Reader, ValueFormat, put_bytes, put_number};
pub(crate) use record::{EncodedFiles, Record};
pub(crate) use replay::Replay;
pub(crate) use state_file::{
    read as read_state, remove_old as remove_old_states, write as write_state,
};
