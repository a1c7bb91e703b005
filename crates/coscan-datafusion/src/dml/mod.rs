//! `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE` and `MERGE` on managed tables.
//!
//! The engine would pass a table the filters that it finds in an optimized plan, which may be too few ([how]). So a rule of
//! the analyzer (`rewrite`, `merge`) rewrites such a statement before any other rule: into a normal query, whose result has
//! the number of each row to be changed (`row_numbers`), and an insert of this result into a `target` that is not the table itself. A
//! `sink` then applies the rows to a transaction (`apply`), large inserts as files (`inserted_rows`), when the statement is
//! executed.
//!
//! [how]: https://github.com/apache/datafusion/issues/24654

pub(crate) mod apply;
pub(crate) mod inserted_rows;
pub(crate) mod merge;
pub(crate) mod operation;
pub(crate) mod rewrite;
pub(crate) mod row_numbers;
pub(crate) mod sink;
pub(crate) mod target;
