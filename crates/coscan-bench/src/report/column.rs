//! A column of a table as plain text.

use std::iter;

/// Its header and its cells.
pub(super) fn column(header: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    iter::once(header.to_owned()).chain(cells).collect()
}
