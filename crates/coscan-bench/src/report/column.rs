//! A column of a table as plain text.

use std::iter;

/// The header and the cells of the column.
pub(super) fn column(header: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    iter::once(header.to_owned()).chain(cells).collect()
}
