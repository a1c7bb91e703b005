//! The files of the experiments.

use super::experiment::CyclotronSpec;
use crate::spec::SpecError;

/// The names and the files.
const FILES: &[(&str, &str)] = &[
    ("dc-figure5.6", include_str!("../../experiments/dc-figure5.6.toml")),
    ("dc-table5.3", include_str!("../../experiments/dc-table5.3.toml")),
    ("dc-table5.4", include_str!("../../experiments/dc-table5.4.toml")),
    ("dc-figure5.9", include_str!("../../experiments/dc-figure5.9.toml")),
    ("dc-figure5.10", include_str!("../../experiments/dc-figure5.10.toml")),
    ("dc-ring-sizes", include_str!("../../experiments/dc-ring-sizes.toml")),
];

/// The names of the experiments: the thesis's, in its order, then our own.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The file of an experiment.
#[must_use]
pub fn file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(other, _)| *other == name).map(|&(_, text)| text)
}

/// An experiment by its name; `None` if there is none.
///
/// # Errors
/// If its file is wrong.
pub fn find(name: &str) -> Option<Result<CyclotronSpec, SpecError>> {
    file(name).map(CyclotronSpec::parse)
}
