//! Workloads drawn at random, as different as those of real installations, to measure policies out of sample.
//!
//! [`random_file`] writes a workload file as people write them (`docs/workloads.md`), so that each of them can be read,
//! changed and run by itself. Sizes, speeds and times are drawn evenly on a logarithmic scale between bounds that stand
//! below. The form of the file is that of `coscan_sim::Spec::parse`.

mod machines;
mod queries;
mod tables;

use std::fmt::Write as _;

use coscan_sim::Random;

/// The workload file of a seed: one to three tables in row or column layout; a hard disk, an SSD, an array or an object
/// store; 1 to 16 cores; a pool of 4 to 60 % of the tables; 2 to 20 streams of scans of all lengths, fast and slow,
/// some in order; in some of them dashboards and lookups as well. What the file leaves open (which rows, which query,
/// when) follows from the seed of `coscan_sim::Case::workload`.
#[must_use]
pub(crate) fn random_file(seed: u64) -> String {
    let mut random = Random::new(seed);
    let tables = tables::draw(&mut random.fork());
    let machine = machines::draw(&mut random.fork(), &tables);
    let queries = queries::draw(&mut random.fork(), &tables);
    let read_s = tables.iter().map(|table| table.bytes).sum::<f64>() / machine.bytes_per_second;
    let streams = queries::draw_streams(&mut random.fork(), &queries, read_s);
    let tables_title = tables.iter().map(|table| table.title.as_str()).collect::<Vec<_>>();
    let title = format!("{}; {}; {}", machine.title, tables_title.join(" and "), streams.title);
    let mut file = format!("name = \"random-{seed}\"\ntitle = \"{title}\"\n\n{}", machine.text);
    let parts = tables.iter().map(|part| &part.text).chain(queries.iter().map(|part| &part.text));
    for part in parts.chain([&streams.text]) {
        let _ = write!(file, "\n{part}");
    }
    file
}

/// A part of the file, and its words in the title.
struct Part {
    text: String,
    title: String,
}

/// A number from `low` to `high`, evenly on a logarithmic scale, with two significant digits.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    two_digits(low * (high / low).powf(random.unit()))
}

/// A whole number from `low` to `high`, evenly on a logarithmic scale, with two significant digits.
fn count_between(random: &mut Random, low: f64, high: f64) -> u64 {
    between(random, low, high).round() as u64
}

fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use coscan_sim::Spec;

    use super::*;

    #[test]
    fn every_file_can_be_read_and_a_seed_always_gives_the_same() {
        for seed in 0..300 {
            let file = random_file(seed);
            assert_eq!(file, random_file(seed));
            let spec = Spec::parse(&file).unwrap_or_else(|error| panic!("{seed}: {error}\n{file}"));
            let workload = spec.cases[0].workload(1);
            assert!(workload.queries().count() >= 4, "{file}");
        }
    }

    #[test]
    fn everything_that_may_be_drawn_is_drawn() {
        let files: Vec<_> = (0..200).map(random_file).collect();
        let words = [
            "disk.seek-transfer",
            "disk.raid",
            "disk.object-store",
            "size = ",
            "columns = {",
            "page = ",
            "table.b",
            "index_rows = ",
            "workers = ",
            "in_order_percent = 50",
            "think = ",
            "slow",
            "[streams.dashboards]",
        ];
        for word in words {
            let count = files.iter().filter(|file| file.contains(word)).count();
            assert!((10..=195).contains(&count), "{word}: {count} of {}", files.len());
        }
    }

    #[test]
    fn numbers_keep_to_their_bounds() {
        let mut random = Random::new(1);
        let numbers: Vec<_> = (0..2_000).map(|_| between(&mut random, 0.5, 50.0)).collect();
        assert!(numbers.iter().all(|number| (0.5..=50.0).contains(number)));
        let below_5 = numbers.iter().filter(|&&number| number < 5.0).count();
        assert!((900..1_100).contains(&below_5), "half below the geometric middle: {below_5}");
    }
}
