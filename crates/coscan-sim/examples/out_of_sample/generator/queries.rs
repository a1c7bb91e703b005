//! Queries, and the streams that send them.

use std::fmt::Write as _;

use coscan_sim::Random;

use super::tables::Table;
use super::{Part, between, count_between, two_digits};

/// A query of the file.
pub(super) struct Query {
    name: String,
    is_lookup: bool,
    pub(super) text: String,
}

/// Draws for each table a fast query, mostly a slow one, too, and at times lookups.
pub(super) fn draw(random: &mut Random, tables: &[Table]) -> Vec<Query> {
    let mut queries = Vec::new();
    let lookups = random.percent(25);
    let in_parallel = random.percent(20);
    for table in tables {
        let workers = if in_parallel { random.between(2, 4) } else { 1 };
        // Nanoseconds per byte of filters and sums, and of grouping, joins and decompression.
        let fast = between(random, 0.2, 3.0);
        queries.push(scan(random, "fast", table, fast, workers));
        if random.percent(70) {
            let slow = between(random, 3.0, 30.0);
            queries.push(scan(random, "slow", table, slow, workers));
        }
        if lookups {
            queries.push(lookup(random, table));
        }
    }
    queries
}

fn scan(random: &mut Random, kind: &str, table: &Table, ns_per_byte: f64, workers: u64) -> Query {
    let name = format!("{kind}_{}", table.name);
    let mut text = head(random, &name, table);
    let _ = writeln!(text, "cost = \"{ns_per_byte} ns/byte\"");
    if workers > 1 {
        let _ = writeln!(text, "workers = {workers}");
    }
    Query { name, is_lookup: false, text }
}

/// A query for some rows that an index finds.
fn lookup(random: &mut Random, table: &Table) -> Query {
    let name = format!("lookup_{}", table.name);
    let mut text = head(random, &name, table);
    let _ =
        writeln!(text, "index_rows = {}\ncost = \"1 ns/byte\"", count_between(random, 1.0, 10.0));
    Query { name, is_lookup: true, text }
}

/// The table and columns of a query: each column with a probability of one half, at least one.
fn head(random: &mut Random, name: &str, table: &Table) -> String {
    let mut text = format!("[query.{name}]\ntable = \"{}\"\n", table.name);
    if !table.columns.is_empty() {
        let mut columns: Vec<_> = table
            .columns
            .iter()
            .filter(|_| random.percent(50))
            .map(|name| format!("{name:?}"))
            .collect();
        if columns.is_empty() {
            columns.push(format!("{:?}", random.choose(&table.columns)));
        }
        let _ = writeln!(text, "columns = [{}]", columns.join(", "));
    }
    text
}

/// Draws streams of these queries. `read_s` is the time of the disk for all tables, in seconds.
pub(super) fn draw_streams(random: &mut Random, queries: &[Query], read_s: f64) -> Part {
    let (scans, lookups): (Vec<_>, Vec<_>) = queries.iter().partition(|query| !query.is_lookup);
    let scans: Vec<_> = scans.iter().map(|query| query.name.as_str()).collect();
    let lookups: Vec<_> = lookups.iter().map(|query| query.name.as_str()).collect();
    let streams = count_between(random, 2.0, 20.0);
    let queries = random.between(2, 4);
    let percent = random.choose(&[
        "1, 2, 5, 10, 20",
        "1, 2, 10, 50, 100",
        "1, 10, 100",
        "10, 30, 50, 100",
        "50, 75, 100",
        "100",
    ]);
    let mut text = format!("[streams.scans]\ncount = {streams}\n");
    if random.percent(80) {
        let _ = writeln!(
            text,
            "apart = \"about {} s\"",
            two_digits(between(random, 0.005, 0.5) * read_s)
        );
    }
    if random.percent(40) {
        let _ = writeln!(
            text,
            "think = \"about {} s\"",
            two_digits(between(random, 0.01, 0.5) * read_s)
        );
    }
    let in_order = *random.choose(&[0, 0, 0, 0, 25, 50, 100]);
    let _ = writeln!(text, "draw = {queries}\nfrom = {scans:?}\npercent = [{percent}]");
    let mut title = format!("{streams} streams of {queries} queries over {percent} %");
    if in_order > 0 {
        let _ = writeln!(text, "in_order_percent = {in_order}");
        let _ = write!(title, ", {in_order} % in order");
    }
    if random.percent(25) {
        let percent = random.choose(&[1, 2, 5]);
        text += &beside(random, "dashboards", &scans, Some(*percent), read_s);
        let _ = write!(title, ", dashboards over {percent} %");
    }
    if !lookups.is_empty() {
        text += &beside(random, "lookups", &lookups, None, read_s);
        title += ", lookups";
    }
    Part { text, title }
}

/// Draws one to four streams of many short queries.
fn beside(
    random: &mut Random,
    name: &str,
    from: &[&str],
    percent: Option<u64>,
    read_s: f64,
) -> String {
    let mut text = format!("\n[streams.{name}]\ncount = {}\n", random.between(1, 4));
    let think_s = two_digits(between(random, 0.01, 0.2) * read_s);
    let _ = writeln!(
        text,
        "think = \"about {think_s} s\"\ndraw = {}\nfrom = {from:?}",
        random.between(8, 20)
    );
    if let Some(percent) = percent {
        let _ = writeln!(text, "percent = [{percent}]");
    }
    text
}
