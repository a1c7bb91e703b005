//! A Delta log for each table of a database, so that other engines read it.
//!
//! - `publisher`: writes the next version of a table, and removes what is no longer needed.
//! - `log_state`: what a log has.
//! - `actions`: the actions of a commit, as JSON, and who has written one.
//! - `schema`: columns as Delta Lake has them.
//! - `directory`: the directory of a table: its log, and links to the files of the database.

mod actions;
mod directory;
mod log_state;
pub(crate) mod publisher;
mod schema;
