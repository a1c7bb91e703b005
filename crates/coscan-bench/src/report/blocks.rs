//! Tables as plain text: names at the left, and a block of columns for each engine.

use std::iter;

use coscan_sim::report::draw::columns::{Align, Block, beside};

/// A column of a table, with the header first.
pub(super) type Column = Vec<String>;

/// The header and the cells of the column.
pub(super) fn column(header: &str, cells: impl IntoIterator<Item = String>) -> Column {
    iter::once(header.to_owned()).chain(cells).collect()
}

/// The table with the name and the columns of each engine.
pub(super) fn table<'a>(
    names: &Block,
    engines: impl Iterator<Item = (&'a str, Vec<Column>)>,
) -> String {
    let engines = engines.map(|(name, columns)| Block::new(name, "", &columns, Align::Right));
    beside(names, &engines.collect::<Vec<_>>())
}

/// A cell: whether all answers of an engine are equal to those of the first one.
pub(super) fn yes_or_no(answers_equal: bool) -> String {
    if answers_equal { "yes" } else { "NO" }.to_owned()
}

/// A cell without a value.
pub(super) fn dash() -> String {
    "-".to_owned()
}
