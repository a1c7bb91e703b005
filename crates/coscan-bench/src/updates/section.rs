//! The parts of the measurements.

use std::fmt;
use std::str::FromStr;

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Queries over changed rows.
    Queries,
    /// A checkpoint.
    Checkpoint,
    /// Statements in a second.
    Statements,
    /// Streams of queries beside changes.
    Streams,
    /// The throughput test of TPC-H beside its refresh functions.
    Refresh,
}

impl Section {
    /// All parts, in the order in which they are measured.
    pub const ALL: [Self; 5] =
        [Self::Queries, Self::Checkpoint, Self::Statements, Self::Streams, Self::Refresh];

    fn name(self) -> &'static str {
        match self {
            Self::Queries => "queries",
            Self::Checkpoint => "checkpoint",
            Self::Statements => "statements",
            Self::Streams => "streams",
            Self::Refresh => "refresh",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is nothing called `{0}` to measure; choose of queries, checkpoint, statements, streams, refresh"
)]
pub struct UnknownSection(String);

impl FromStr for Section {
    type Err = UnknownSection;

    fn from_str(name: &str) -> Result<Self, UnknownSection> {
        let section = Self::ALL.into_iter().find(|section| section.name() == name);
        section.ok_or_else(|| UnknownSection(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn all_names_are_known_and_listed_in_the_error() {
        let error = "else".parse::<Section>().unwrap_err().to_string();
        for section in Section::ALL {
            assert_eq!(section.to_string().parse(), Ok(section));
            assert!(error.contains(section.name()), "{error}");
        }
    }
}
