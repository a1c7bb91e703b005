//! TPC-H: the data that its queries read and share, without running them `[CS11 §7.1.2, Table 7.1]`, and a change to
//! the run.

use std::collections::BTreeMap;

use coscan_core::{IndexSet, PageIndex, PolicyKind};
use coscan_sim::{Metric, Spec, Workload};

use crate::common::run_all;
use crate::format::{head, number, row, shown};
use crate::variations::variant;

/// Table 7.1: the row of each query has the megabytes that it shares with each query before it, and those that it
/// reads.
const PAPER: &str = include_str!("table7.1.txt");
const QUERIES: usize = 22;
const SEEDS: u64 = 20;
/// The megabytes below which a pair shares next to nothing.
const LITTLE: f64 = 20.0;

/// Megabytes, in the form of the table.
type Shared = Vec<Vec<f64>>;

fn published() -> Result<Shared, String> {
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("Table 7.1: {word}"));
    PAPER.lines().map(|line| line.split(' ').map(number).collect()).collect()
}

/// The data that the queries of the first stream share.
fn shared(workload: &Workload) -> Shared {
    let mut bytes = [0; QUERIES];
    let mut pages: Vec<BTreeMap<usize, IndexSet<PageIndex>>> = vec![BTreeMap::new(); QUERIES];
    for scan in &workload.streams[0].queries {
        let number = scan.label.trim_start_matches('Q').split('-').next().unwrap_or_default();
        let query = number.parse::<usize>().expect("scans are named after their queries") - 1;
        let layout = &workload.tables[scan.table].layout;
        for page in scan.all_pages(layout).iter() {
            bytes[query] += layout.bytes_of(page); // Read by two of its scans, it counts twice, as in the paper.
            pages[query].entry(scan.table).or_default().insert(page);
        }
    }
    let both = |one: usize, other: usize| {
        let tables = pages[one].iter().filter_map(|(table, of_one)| {
            let common = of_one.intersection(pages[other].get(table)?);
            let layout = &workload.tables[*table].layout;
            Some(common.iter().map(|page| layout.bytes_of(page)).sum::<u64>())
        });
        tables.sum::<u64>()
    };
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let line = |query: usize| {
        let others = (0..query).map(|other| megabytes(both(query, other)));
        others.chain([megabytes(bytes[query])]).collect()
    };
    (0..QUERIES).map(line).collect()
}

/// The average over seeds: a seed decides the positions of ranges.
fn average(spec: &Spec) -> Result<Shared, String> {
    let case = spec.cases.first().ok_or("a file has a case")?;
    let draws: Vec<Shared> = (1..=SEEDS).map(|seed| shared(&case.workload(seed))).collect();
    let mean = |row: usize, column: usize| {
        draws.iter().map(|draw| draw[row][column]).sum::<f64>() / SEEDS as f64
    };
    Ok((0..QUERIES).map(|row| (0..=row).map(|column| mean(row, column)).collect()).collect())
}

/// Writes the gain of cooperative scans over PBM if some scans need their rows in order.
pub(crate) fn write_orders() -> Result<String, String> {
    let sweeps = "[[sweep]]\nkey = \"streams.all.in_order_percent\"\nvalues = [0, 25, 50]\n\
                  [[sweep]]\nkey = \"machine.pool\"\nvalues = [\"20 %\", \"40 %\"]\n";
    let spec = variant("cs11-figure7.3", sweeps)?;
    let predictive = "predictive".parse::<PolicyKind>().map_err(|error| error.to_string())?;
    let names: Vec<_> = spec.cases.iter().map(|case| case.name.clone()).collect();
    let runs = run_all(&[spec], &[predictive, PolicyKind::Relevance2007], 2)?;
    let mut text = "\n## If some scans needed their rows in order\n\nBytes read, over 2 seeds. How many of the published plans were \
                    cooperative is not said.\n\n"
        .to_owned();
    text += &head(
        &["percent in order, pool", "predictive", "relevance-2007", "relevance-2007 ÷ predictive"],
        1,
    );
    for (name, case) in names.into_iter().zip(runs.iter().flatten()) {
        let [predictive, relevance] = [0, 1].map(|policy| case.average(policy, Metric::BytesRead));
        let bytes = [predictive, relevance].map(|bytes| shown(Metric::BytesRead, bytes));
        let ratio = number(relevance / predictive);
        text += &row([name.replace('-', ", ")].into_iter().chain(bytes).chain([ratio]));
    }
    Ok(text)
}

/// Writes the volumes of the queries and of what pairs share, beside the paper's.
pub(crate) fn write_volumes(spec: &Spec) -> Result<String, String> {
    let (paper, ours) = (published()?, average(spec)?);
    let mut text = format!(
        "## What the queries read and share\n\n`[CS11 §7.1.2, Table 7.1]`, to which the bytes per column were fitted. \
         Megabytes that each query reads; ours on average over {SEEDS} seeds.\n\n"
    );
    text += &head(&["query", "paper", "here", "here ÷ paper"], 1);
    for query in 0..QUERIES {
        let (paper, ours) = (paper[query][query], ours[query][query]);
        let cells = [paper, ours, ours / paper].map(number);
        text += &row(std::iter::once(format!("Q{}", query + 1)).chain(cells));
    }
    let pairs = (0..QUERIES).flat_map(|row| (0..row).map(move |column| (row, column)));
    let pairs: Vec<_> = pairs.map(|at| (at, paper[at.0][at.1], ours[at.0][at.1])).collect();
    let (little, more): (Vec<_>, Vec<_>) =
        pairs.iter().partition(|(_, paper, ours)| paper.max(*ours) < LITTLE);
    let within = |factor: f64| {
        let close = |&&&(_, paper, ours): &&&((usize, usize), f64, f64)| {
            ours <= factor * paper && paper <= factor * ours
        };
        more.iter().filter(close).count()
    };
    text += &format!(
        "\nOf the {} pairs of queries {} share less than {LITTLE:.0} MB in the paper and here. Of the other {} ours is within a \
         quarter of the paper's for {}, within a factor of 2 for {}. The pairs that share most, and those most apart:\n\n",
        pairs.len(),
        little.len(),
        more.len(),
        within(1.25),
        within(2.0),
    );
    let mut largest = pairs.clone();
    largest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut apart = pairs;
    apart.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
    text += &head(&["pair", "paper", "here", "", "pair", "paper", "here"], 1);
    for (large, far) in largest.iter().zip(&apart).take(10) {
        let cells = |&((row, column), paper, ours): &((usize, usize), f64, f64)| {
            [format!("Q{}, Q{}", column + 1, row + 1), number(paper), number(ours)]
        };
        text += &row(cells(large).into_iter().chain([String::new()]).chain(cells(far)));
    }
    Ok(text)
}
