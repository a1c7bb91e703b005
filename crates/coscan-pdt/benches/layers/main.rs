//! The versions of `coscan-pdt` beside the layers of the thesis: times of commits, positions and merges, and memory.
//!
//! `cargo bench -p coscan-pdt --bench layers` runs it; a word after `--` chooses the tables whose names have it. Tables
//! have microseconds or bytes, and ratios: those above 1 are in favour of `coscan-pdt`. The two take turns, and figures
//! are medians over turns, so that the machine's other work weighs on both.

#![allow(missing_docs, clippy::disallowed_types, clippy::disallowed_methods)]

mod commits;
#[path = "../support/counting.rs"]
mod counting;
mod measure;
mod memory;
mod pdt;
mod product;
#[path = "../support/random.rs"]
mod random;
mod reading;
mod subjects;

use subjects::Kind;

fn main() {
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tables: [(&str, fn()); 8] = [
        ("commits of patches", || commits::commits(Kind::Patch)),
        ("commits of deletes", || commits::commits(Kind::Delete)),
        ("commits of inserts", || commits::commits(Kind::Insert)),
        ("commits of appends", || commits::commits(Kind::Append)),
        ("merges", reading::merges),
        ("positions", reading::positions),
        ("bytes", memory::bytes),
        ("versions", memory::versions),
    ];
    println!("load average: {}", measure::load());
    for (name, table) in tables {
        if word.as_ref().is_none_or(|word| name.contains(word)) {
            table();
        }
    }
    println!("\nload average: {}", measure::load());
}
