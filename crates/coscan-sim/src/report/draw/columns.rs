//! Tables as plain text.

use std::iter;

/// The widest line, in characters. Blocks that do not fit are shown below.
pub const WIDTH_MAX: usize = 120;

const GAP: &str = "  ";

/// The alignment of the cells of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// On the left.
    Left,
    /// On the right.
    Right,
}

/// Some columns under one title: lines of equal width.
#[derive(Clone, Debug)]
pub struct Block {
    width: usize,
    lines: Vec<String>,
}

impl Block {
    /// Creates a block. `title` is at the left and `title_right` at the right of the line above the columns; a title
    /// alone is where its columns are aligned to. All columns have the same number of cells.
    #[must_use]
    pub fn new(title: &str, title_right: &str, columns: &[Vec<String>], align: Align) -> Block {
        let widths: Vec<usize> = columns
            .iter()
            .map(|cells| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        let cells_width = widths.iter().sum::<usize>() + gaps;
        let titles = if title_right.is_empty() {
            title.to_string()
        } else {
            let space = cells_width.saturating_sub(title.len() + title_right.len());
            format!("{title}{}{title_right}", " ".repeat(space.max(1)))
        };
        let width = cells_width.max(titles.chars().count());

        let rows = (0..columns.first().map_or(0, Vec::len)).map(|row| {
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

/// Puts blocks beside `first`, and those that do not fit below, beside `first` again. Every line of blocks but the last
/// has the same number of them, so that none stands alone needlessly.
#[must_use]
pub fn beside(first: &Block, blocks: &[Block]) -> String {
    let widest = blocks.iter().map(|block| GAP.len() + block.width).max().unwrap_or(1);
    let room = WIDTH_MAX - first.width.min(WIDTH_MAX);
    let all = blocks.iter().map(|block| GAP.len() + block.width).sum::<usize>();
    let fit = if all <= room { blocks.len() } else { room / widest };
    let lines_of_blocks = blocks.len().div_ceil(fit.max(1)).max(1);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(width: usize) -> Block {
        Block::new(&"x".repeat(width), "", &[vec!["1".to_owned()]], Align::Right)
    }

    #[test]
    fn blocks_stand_beside_each_other_while_they_fit_and_below_where_not() {
        let first = Block::new("name", "", &[vec!["row".to_owned()]], Align::Left);
        // The widest would not fit four times, but all together do: 4 + 3 · 32 + 12.
        let narrow = [block(30), block(30), block(30), block(10)];
        assert_eq!(beside(&first, &narrow).lines().count(), 2);
        let wide = [block(30), block(30), block(30), block(30)];
        let text = beside(&first, &wide);
        assert_eq!(text.matches("name").count(), 2);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{text}");
    }
}
