//! Writes `docs/out-of-sample.md`: `cargo run --release -p coscan-sim --example out_of_sample > docs/out-of-sample.md`.
//!
//! `-- --tuning` runs that half alone and prints a line for each case, worst first: changes of a policy are judged
//! by it. `-- --show SEED` prints the file of a case, for `coscan sim run`, `-- --runs SEED` the latencies of its queries.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // An example may use threads and print.

mod cases;
#[allow(dead_code)] // Other examples use the rest of it.
#[path = "../common/mod.rs"]
mod common;
mod explained;
mod generator;
mod page;
mod statistics;

use std::process::ExitCode;

use cases::Half;
use generator::random_file;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => cases::run(Half::Tuning).and_then(|tuning| {
            let reporting = cases::run(Half::Reporting)?;
            page::write(&tuning, &reporting);
            Ok(())
        }),
        ["--tuning"] => cases::run(Half::Tuning).map(|cases| page::list(&cases)),
        [option @ ("--show" | "--runs"), seed] => match (option, seed.parse()) {
            ("--show", Ok(seed)) => {
                print!("{}", random_file(seed));
                Ok(())
            }
            (_, Ok(seed)) => cases::print_runs(seed),
            (_, Err(_)) => Err(format!("{option} needs the number of a case")),
        },
        _ => Err("write nothing, --tuning, --show SEED or --runs SEED".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
