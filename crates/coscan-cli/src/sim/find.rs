//! Finds an experiment by name or file.

use std::path::Path;

use coscan_core::log::{Log, ReadLogError};
use coscan_sim::Spec;
use coscan_sim::cyclotron::{self, CyclotronSpec};
use coscan_sim::experiment;
use coscan_sim::recorded::Recorded;

use crate::Failure;

/// The number of names that are suggested for an unknown one.
const NEAREST: usize = 3;

/// One of the papers' experiments, or a file with an experiment or a recorded run.
pub(super) fn find(name_or_file: &str) -> Result<Spec, Failure> {
    if experiment::file(name_or_file).is_some() {
        return Ok(experiment::find(name_or_file)?);
    }
    let path = Path::new(name_or_file);
    if !path.exists() && path.extension().is_none() {
        return Err(unknown(name_or_file));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {name_or_file}: {error}"))?;
    match text.parse::<Log>() {
        Ok(log) => Ok(Recorded::from_log(&log).spec(name_or_file)),
        Err(ReadLogError::NotALog) => {
            Ok(Spec::parse(&text).map_err(|error| format!("{name_or_file}: {error}"))?)
        }
        Err(error) => Err(format!("{name_or_file}: {error}").into()),
    }
}

/// An experiment with a ring, found by name or in a file with a table `[ring]`. `None` for other kinds of experiments.
pub(super) fn find_ring(name_or_file: &str) -> Result<Option<CyclotronSpec>, Failure> {
    if let Some(spec) = cyclotron::find(name_or_file) {
        return Ok(Some(spec?));
    }
    let Ok(text) = std::fs::read_to_string(name_or_file) else { return Ok(None) };
    if !text.lines().any(|line| line.trim() == "[ring]") {
        return Ok(None);
    }
    let spec = CyclotronSpec::parse(&text);
    Ok(Some(spec.map_err(|error| format!("{name_or_file}: {error}"))?))
}

/// The error for an unknown name, with the most similar names.
pub(super) fn unknown(name: &str) -> Failure {
    let mut names: Vec<&str> = experiment::names().chain(cyclotron::names()).collect();
    names.sort_by_key(|known| distance(name, known));
    let nearest = names[..NEAREST.min(names.len())].join("`, `");
    format!(
        "there is no experiment or file `{name}`; did you mean `{nearest}`? `coscan sim list` shows all"
    )
    .into()
}

/// The edit distance of two texts (Levenshtein): characters to insert, remove or change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // The distances from the characters of `left` so far to each prefix of `right`.
    let mut distances: Vec<usize> = (0..=right.len()).collect();
    for (row, character) in left.chars().enumerate() {
        let mut diagonal = distances[0];
        distances[0] = row + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(character != *other);
            diagonal = distances[column + 1];
            distances[column + 1] = changed.min(diagonal + 1).min(distances[column] + 1);
        }
    }
    distances[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_changes() {
        assert_eq!(distance("table2", "table2"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("cs07-tabel2", "cs07-table2"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
