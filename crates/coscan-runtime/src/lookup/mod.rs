//! Reads past the scheduler: the first rows of a table, and where keys begin in a sorted one.

pub(crate) mod find_rows;
pub(crate) mod first_rows;
