//! The page of the results.

use crate::cases::{Case, MEASURES, POLICIES};
use crate::explained::why;
use crate::statistics::{Summary, summary};

/// The number of cases that are shown one by one.
const WORST: usize = 10;

/// The part of the time for which the device, or the processors, must be busy to be the limit.
const LIMIT: f64 = 0.9;

/// Writes the page from the cases of both halves.
pub(crate) fn write(tuning: &[Case], reporting: &[Case]) {
    println!("{}", include_str!("intro.md").replace("CASES", &reporting.len().to_string()));
    println!("## `relevance` relative to other policies\n");
    println!(
        "| beside | measure | reporting half | tuning half | less / more | more by 10 % | 95 % below |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (policy, kind) in POLICIES.iter().enumerate().skip(1) {
        for (measure, (_, name)) in MEASURES.iter().enumerate() {
            let [of_reporting, of_tuning] =
                [reporting, tuning].map(|cases| summary(&ratios(cases, policy, measure)));
            println!(
                "| `{kind}` | {name} | {} | {} | {} / {} | {} | {:.2} |",
                interval(&of_reporting),
                interval(&of_tuning),
                of_reporting.wins,
                of_reporting.losses,
                of_reporting.large_losses,
                of_reporting.p95
            );
        }
    }
    write_kinds(reporting);
    write_worst(reporting);
}

fn interval(summary: &Summary) -> String {
    format!("**{:.3}** ({:.3} to {:.3})", summary.mean, summary.low, summary.high)
}

fn ratios(cases: &[Case], policy: usize, measure: usize) -> Vec<f64> {
    cases.iter().map(|case| case.ratio(policy, measure)).collect()
}

type IsOfKind = fn(&Case) -> bool;

/// Writes the gains of `relevance`, kind by kind.
fn write_kinds(cases: &[Case]) {
    let kinds: [(&str, IsOfKind); 9] = [
        ("the device is the limit", |case| case.disk_use > LIMIT && case.cpu_use <= LIMIT),
        ("processors are the limit", |case| case.cpu_use > LIMIT),
        ("neither, or both by turns", |case| case.disk_use <= LIMIT && case.cpu_use <= LIMIT),
        ("object stores", |case| case.title.contains("object store")),
        ("some or all in order", |case| case.title.contains("in order")),
        ("none in order", |case| !case.title.contains("in order")),
        ("several tables", |case| case.title.contains(" and ")),
        ("dashboards or lookups beside", |case| {
            case.title.contains("dashboards") || case.title.contains("lookups")
        }),
        ("all scans over 100 %", |case| case.title.contains("over 100 %")),
    ];
    println!("\n## By kind of case\n");
    println!("Stream time and bytes read, in the reporting half.\n");
    println!("| cases | | `relevance-2007` | bytes | `elevator` | bytes | `predictive` | bytes |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for (name, of_kind) in kinds {
        let cases: Vec<&Case> = cases.iter().filter(|case| of_kind(case)).collect();
        print!("| {name} | {} |", cases.len());
        for policy in 1..POLICIES.len() {
            for measure in [0, MEASURES.len() - 1] {
                let ratios: Vec<f64> =
                    cases.iter().map(|case| case.ratio(policy, measure)).collect();
                print!(" {:.2} |", summary(&ratios).mean);
            }
        }
        println!();
    }
}

/// Writes the worst cases.
fn write_worst(cases: &[Case]) {
    println!("\n## The ten worst cases\n");
    println!(
        "Of the reporting half, those with the largest stream time relative to the best of the three others. `out_of_sample \
         -- --show 4711` prints the workload file of case 4711; `coscan sim run FILE` repeats it.\n"
    );
    for case in worst_first(cases).into_iter().take(WORST) {
        println!("**Case {}.** {}.\n", case.seed, case.title);
        println!(
            "| relative to | stream time | normalized latency | bytes read |\n|---|--:|--:|--:|"
        );
        for (policy, kind) in POLICIES.iter().enumerate().skip(1) {
            let values =
                (0..MEASURES.len()).map(|measure| format!("{:.2}", case.ratio(policy, measure)));
            println!("| `{kind}` | {} |", values.collect::<Vec<_>>().join(" | "));
        }
        println!(
            "\nThe device is busy for {:.0} % of the time, processors for {:.0} %. {}\n",
            case.disk_use * 100.0,
            case.cpu_use * 100.0,
            why(case.seed).unwrap_or("Not explained yet.")
        );
    }
}

/// The cases, the one with the largest stream time relative to the best of the others first.
fn worst_first(cases: &[Case]) -> Vec<&Case> {
    let worst =
        |case: &Case| (1..POLICIES.len()).map(|policy| case.ratio(policy, 0)).fold(0.0, f64::max);
    let mut sorted: Vec<_> = cases.iter().collect();
    sorted.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    sorted
}

/// Prints a line for each case, worst first, and a summary.
pub(crate) fn list(cases: &[Case]) {
    for case in worst_first(cases) {
        print!("{:<5}", case.seed);
        for policy in 1..POLICIES.len() {
            (0..MEASURES.len()).for_each(|measure| print!(" {:>6.3}", case.ratio(policy, measure)));
            print!(" |");
        }
        println!(
            " disk {:>3.0} cpu {:>3.0}  {}",
            case.disk_use * 100.0,
            case.cpu_use * 100.0,
            case.title
        );
    }
    for (policy, kind) in POLICIES.iter().enumerate().skip(1) {
        for (measure, (_, name)) in MEASURES.iter().enumerate() {
            let all = summary(&ratios(cases, policy, measure));
            println!(
                "{:<15} {name:<20} {}, {} won, {} lost, {} by 10 %, p95 {:.2}",
                kind.name(),
                interval(&all),
                all.wins,
                all.losses,
                all.large_losses,
                all.p95
            );
        }
    }
}
