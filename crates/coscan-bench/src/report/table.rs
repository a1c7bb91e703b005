//! CS07 Table 2 as plain text, at most [`WIDTH_MAX`] characters wide.

use std::iter;

use crate::metrics::EngineReport;

use super::rows::{kind_rows, system_rows};

/// The widest line, in characters. Engines that do not fit are shown below, in a block of their own.
pub const WIDTH_MAX: usize = 120;

const GAP: &str = "  ";

/// The table for any number of engines: figures of the whole run, then of each kind of query.
pub fn table(reports: &[EngineReport]) -> String {
    let system = system_rows(reports);
    let names = system.iter().map(|row| row.name.to_string()).collect();
    let engines = reports.iter().enumerate().map(|(engine, report)| {
        let values = system.iter().map(|row| row.values[engine].clone()).collect();
        Block::new(&report.engine, "", &[values], Align::Right)
    });
    let upper =
        beside(&Block::new("system", "", &[names], Align::Left), &engines.collect::<Vec<_>>());

    let kinds = kind_rows(reports);
    let column = |header: &str, value: &dyn Fn(usize) -> String| -> Vec<String> {
        iter::once(header.to_string()).chain((0..kinds.len()).map(value)).collect()
    };
    let first = Block::new(
        "queries",
        "alone",
        &[
            column("kind", &|row| kinds[row].label.clone()),
            column("count", &|row| kinds[row].count.clone()),
            column("cold [s]", &|row| kinds[row].standalone_s.clone()),
        ],
        Align::Right,
    );
    let engines = reports.iter().enumerate().map(|(engine, report)| {
        let columns = ["avg [s]", "stddev", "norm."]
            .iter()
            .enumerate()
            .map(|(index, header)| column(header, &|row| kinds[row].values[engine][index].clone()));
        Block::new(&report.engine, "", &columns.collect::<Vec<_>>(), Align::Right)
    });
    let lower = beside(&first, &engines.collect::<Vec<_>>());
    format!("{upper}\n{lower}")
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

/// Some columns under one title: lines of equal width.
struct Block {
    width: usize,
    lines: Vec<String>,
}

impl Block {
    /// `title` is at the left and `title_right` at the right of the line above the columns; a
    /// title alone is where its columns are aligned to.
    fn new(title: &str, title_right: &str, columns: &[Vec<String>], align: Align) -> Block {
        let widths: Vec<usize> = columns
            .iter()
            .map(|cells| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        let cells_width = widths.iter().sum::<usize>() + GAP.len() * (columns.len() - 1);
        let titles = if title_right.is_empty() {
            title.to_string()
        } else {
            let space = cells_width.saturating_sub(title.len() + title_right.len());
            format!("{title}{}{title_right}", " ".repeat(space.max(1)))
        };
        let width = cells_width.max(titles.chars().count());

        let rows = (0..columns[0].len()).map(|row| {
            let cells = columns.iter().zip(&widths).map(|(cells, width)| match align {
                Align::Left => format!("{:<width$}", cells[row]),
                Align::Right => format!("{:>width$}", cells[row]),
            });
            cells.collect::<Vec<_>>().join(GAP)
        });
        let lines = iter::once(titles).chain(rows).map(|line| match align {
            Align::Left => format!("{line:<width$}"),
            Align::Right => format!("{line:>width$}"),
        });
        Block { width, lines: lines.collect() }
    }
}

/// Puts blocks beside `first`, and those that do not fit below, beside `first` again. Every line of
/// blocks but the last has the same number of them, so that none stands alone needlessly.
fn beside(first: &Block, blocks: &[Block]) -> String {
    let widest = blocks.iter().map(|block| GAP.len() + block.width).max().unwrap_or(1);
    let fit = ((WIDTH_MAX - first.width.min(WIDTH_MAX)) / widest).max(1);
    let lines_of_blocks = blocks.len().div_ceil(fit).max(1);
    let per_line = blocks.len().div_ceil(lines_of_blocks).max(1);
    let lines_of_blocks = blocks.chunks(per_line).map(|shown| {
        let mut text = String::new();
        for (row, line) in first.lines.iter().enumerate() {
            let cells: Vec<&str> = iter::once(line.as_str())
                .chain(shown.iter().map(|block| block.lines[row].as_str()))
                .collect();
            text.push_str(cells.join(GAP).trim_end());
            text.push('\n');
        }
        text
    });
    lines_of_blocks.collect::<Vec<_>>().join("\n")
}
