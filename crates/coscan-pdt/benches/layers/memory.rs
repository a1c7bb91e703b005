//! The memory of changes, and what it costs to keep an old version while commits go on.

use std::time::Instant;

use crate::counting::{bytes_in_use, used_by};
use crate::measure::{CASES, commit_one, grown, median, micros, name, warm_up};
use crate::product::Product;
use crate::random::Random;
use crate::subjects::{KINDS, Kind, LayeredTable, Subject, Thesis};

pub(crate) fn bytes() {
    println!("\nBytes of heap for each change. A value has 16 bytes, an inserted row four values.");
    println!("\n| | rows, changes | coscan | layers | layers / coscan |");
    println!("|---|---|--:|--:|--:|");
    for kind in KINDS {
        for case in CASES.into_iter().filter(|(_, changes)| *changes > 0) {
            let of = |bytes: f64| bytes / case.1 as f64;
            let product = of(used_by(&mut || grown::<Product>(case, Some(kind))));
            let thesis = of(used_by(&mut || grown::<Thesis>(case, Some(kind))));
            let (case, ratio) = (name(case), thesis / product);
            println!("| {kind:?} | {case} | {product:.1} | {thesis:.1} | {ratio:.2} |");
        }
    }
}

/// Which old versions are kept.
#[derive(Clone, Copy)]
enum Kept {
    None,
    First,
    All,
}

/// Microseconds for a commit and for the longest folding, and the bytes that are there for old versions only.
struct Costs {
    commit: f64,
    folding: f64,
    bytes: f64,
}

/// A commit that seems to take longer was interrupted, and is not counted: none copies more than a write layer.
const COMMIT_MICROS_MAX: f64 = 2_000.0;

/// Commits transactions of one patch each.
fn costs<S: Subject>(subject: &mut S, rows: u64, kept: Kept, random: &mut Random) -> Costs {
    let commits = if matches!(kept, Kept::All) { 1_000 } else { 10_000 };
    let mut versions = Vec::with_capacity(commits);
    let (mut times, mut folding) = (Vec::with_capacity(commits), 0.0_f64);
    for number in 0..commits {
        if matches!(kept, Kept::All) || matches!(kept, Kept::First) && number == 0 {
            versions.push(subject.begin());
        }
        let start = Instant::now();
        commit_one(subject, rows, Kind::Patch, random);
        subject.forget();
        let end = Instant::now();
        times.push(micros(end - start));
        subject.tidy();
        folding = folding.max(micros(end.elapsed()));
    }
    times.retain(|time| *time < COMMIT_MICROS_MAX);
    let before = bytes_in_use();
    versions.clear();
    let bytes = (before - bytes_in_use()) as f64;
    Costs { commit: times.iter().sum::<f64>() / times.len() as f64, folding, bytes }
}

/// A line of the table: medians over some turns. The longest folding is that of the turn in which it was interrupted
/// least.
fn line(what: &str, case: (u64, u64), turns: &[Vec<Costs>; 3]) {
    let [none, first, all] = turns.each_ref().map(|turns| {
        let folding = turns.iter().map(|one| one.folding).fold(f64::INFINITY, f64::min);
        let median = |f: fn(&Costs) -> f64| median(turns.iter().map(f).collect());
        Costs { commit: median(|one| one.commit), folding, bytes: median(|one| one.bytes) }
    });
    println!(
        "| {what} | {} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} |",
        name(case),
        none.commit,
        none.folding / 1e3,
        first.folding / 1e3,
        first.bytes / 1e6,
        all.commit,
        all.bytes / 1e6
    );
}

fn turn<S: Subject>(
    subject: &mut S,
    rows: u64,
    random: &mut Random,
    costs_of: &mut [Vec<Costs>; 3],
) {
    for (kept, costs_of) in [Kept::None, Kept::First, Kept::All].into_iter().zip(costs_of) {
        costs_of.push(costs(subject, rows, kept, random));
    }
}

pub(crate) fn versions() {
    println!(
        "\nCommits of one patch while old versions are kept: 10,000 with none kept, 10,000 with that before the first \
         kept, 1,000 with each kept. Commits in microseconds with the lookup of a name and without folding."
    );
    println!(
        "\n| | rows, changes | none kept: commit | longest folding, ms | one kept: longest folding, ms | MB | all kept: commit | MB |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for case in CASES.into_iter().filter(|(_, changes)| *changes > 0) {
        let mut product = grown::<Product>(case, Some(Kind::Patch));
        let mut small = grown::<LayeredTable<512>>(case, Some(Kind::Patch));
        let mut thesis = grown::<Thesis>(case, Some(Kind::Patch));
        warm_up(&mut product, case.0, Kind::Patch);
        warm_up(&mut small, case.0, Kind::Patch);
        warm_up(&mut thesis, case.0, Kind::Patch);
        let mut costs = [(); 3].map(|()| [(); 3].map(|()| Vec::new()));
        let mut randoms = [Random(8), Random(8), Random(8)];
        for _ in 0..5 {
            turn(&mut product, case.0, &mut randoms[0], &mut costs[0]);
            turn(&mut small, case.0, &mut randoms[1], &mut costs[1]);
            turn(&mut thesis, case.0, &mut randoms[2], &mut costs[2]);
        }
        line("coscan", case, &costs[0]);
        line("layers, write layer up to 512", case, &costs[1]);
        line("layers, write layer up to 4,096", case, &costs[2]);
    }
}
