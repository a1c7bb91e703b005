//! Tables: sizes and layouts.

use coscan_sim::Random;

use super::{between, count_between};

/// A table of the file.
pub(super) struct Table {
    pub(super) name: String,
    /// Names of its columns; a row layout has none.
    pub(super) columns: Vec<String>,
    pub(super) bytes: f64,
    /// Bytes of the pages that a chunk needs.
    pub(super) chunk_bytes: f64,
    pub(super) text: String,
    pub(super) title: String,
}

/// Draws one to three tables.
pub(super) fn draw(random: &mut Random) -> Vec<Table> {
    let count = *random.choose(&[1, 1, 1, 2, 3]);
    ["a", "b", "c"].into_iter().take(count).map(|name| table(random, name)).collect()
}

fn table(random: &mut Random, name: &str) -> Table {
    let chunks = count_between(random, 30.0, 500.0);
    if random.percent(40) {
        in_rows(random, name, chunks)
    } else {
        in_columns(random, name, chunks)
    }
}

/// Draws a table with all columns together, in chunks of 1 to 32 MB.
fn in_rows(random: &mut Random, name: &str, chunks: u64) -> Table {
    let chunk_mb = between(random, 1.0, 32.0);
    let bytes = chunk_mb * 1e6 * chunks as f64;
    let rows = chunks * 100_000;
    Table {
        name: name.to_owned(),
        columns: Vec::new(),
        bytes,
        chunk_bytes: chunk_mb * 1e6,
        text: format!("[table.{name}]\nrows = {rows}\nchunks = {chunks}\nsize = \"{bytes} B\"\n"),
        title: format!("{chunks} chunks of {chunk_mb} MB in rows"),
    }
}

/// Draws a table with three to twelve columns of 0.3 to 16 bytes per row, in chunks of 32 to 256 thousand rows. Half of
/// the tables have pages of one size, about what a column of a chunk takes, that do not end where chunks do.
fn in_columns(random: &mut Random, name: &str, chunks: u64) -> Table {
    let chunk_rows = 1_u64 << random.between(15, 18);
    let widths: Vec<_> = (0..random.between(3, 12)).map(|_| between(random, 0.3, 16.0)).collect();
    let columns: Vec<_> = (0..widths.len()).map(|column| format!("c{column}")).collect();
    let forms: Vec<_> =
        columns.iter().zip(&widths).map(|(column, width)| format!("{column} = {width}")).collect();
    let rows = chunks * chunk_rows;
    let row_bytes: f64 = widths.iter().sum();
    let chunk_bytes = row_bytes * chunk_rows as f64;
    let page_bytes = match random.percent(50) {
        true => (between(random, 0.3, 3.0) * chunk_bytes / widths.len() as f64).round(),
        false => 0.0,
    };
    let page =
        if page_bytes > 0.0 { format!("page = \"{page_bytes} B\"\n") } else { String::new() };
    let forms = forms.join(", ");
    Table {
        name: name.to_owned(),
        bytes: row_bytes * rows as f64,
        // A page of each column may reach into it from either side.
        chunk_bytes: chunk_bytes + 2.0 * page_bytes * widths.len() as f64,
        text: format!(
            "[table.{name}]\nrows = {rows}\nchunk_rows = {chunk_rows}\n{page}columns = {{ {forms} }}\n"
        ),
        title: format!(
            "{chunks} chunks of {:.1} MB in {} columns",
            chunk_bytes / 1e6,
            columns.len()
        ),
        columns,
    }
}
