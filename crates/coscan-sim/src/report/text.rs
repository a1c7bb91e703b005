//! Results as plain text, at most [`columns::WIDTH_MAX`] characters wide.

use super::draw::columns::{self, Align, Block};
use super::results::Results;
use super::tables::{Row, Table, agreements, tables};

/// The results of an experiment: tables with one column for each policy, and whether the orders that the paper states
/// hold here.
#[must_use]
pub fn text(results: &Results<'_>) -> String {
    let spec = results.spec();
    let mut text = format!("{}: {}  {}", spec.name, spec.title, spec.source).trim_end().to_owned();
    if !spec.sweeps.is_empty() {
        let sweeps: Vec<&str> = spec.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
        text.push_str(&format!("\nRows are cases: {}.", sweeps.join(" - ")));
    }
    let seeds = results.seeds().len();
    if seeds > 1 {
        text.push_str(&format!("\nAverages over {seeds} seeds."));
    }
    text.push_str("\n\n");
    let tables = tables(results);
    let blocks: Vec<String> = tables.iter().map(|table| table_text(results, table)).collect();
    text.push_str(&blocks.join("\n"));
    let agreements = agreements(results);
    if !agreements.is_empty() {
        text.push('\n');
    }
    for agreement in agreements {
        text.push_str(&agreement.sentence());
        text.push('\n');
    }
    text
}

fn table_text(results: &Results<'_>, table: &Table) -> String {
    let name = |row: &Row| if row.part { format!("  {}", row.name) } else { row.name.clone() };
    let names = table.rows.iter().map(name).collect();
    let first = Block::new(&table.title, "", &[names], Align::Left);
    let policies = results.policies().iter().enumerate().map(|(column, policy)| {
        let cells = table.rows.iter().map(|row| row.cells[column].clone()).collect();
        Block::new(policy, "", &[cells], Align::Right)
    });
    columns::beside(&first, &policies.collect::<Vec<_>>())
}
