//! A few rows: the first ones of a table, read past the scheduler, and those where keys begin in a sorted one, by
//! statistics and a scan.

pub(crate) mod find_rows;
pub(crate) mod first_rows;
