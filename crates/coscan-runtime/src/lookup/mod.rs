//! Reads of a few rows: the first rows of a table, read past the scheduler, and the rows where keys begin in a sorted
//! table, by statistics and a scan.

pub(crate) mod find_rows;
pub(crate) mod first_rows;
