//! The part of a table that a query reads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::WorkloadError;

/// The part of the table that a query reads: 1 to 100 percent of the range of its key, or one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Percent(u32);

impl Percent {
    /// The whole table. Queries have no predicate on the key.
    pub const WHOLE: Percent = Percent(100);

    /// One key, which is a tiny part of the table.
    pub const ONE_KEY: Percent = Percent(0);

    /// The number from 1 to 100, or 0 for one key.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Percent> for u32 {
    fn from(percent: Percent) -> u32 {
        percent.0
    }
}

impl TryFrom<u32> for Percent {
    type Error = WorkloadError;

    fn try_from(percent: u32) -> Result<Self, WorkloadError> {
        match percent {
            0..=100 => Ok(Percent(percent)),
            _ => Err(WorkloadError::Percent(percent.to_string())),
        }
    }
}

impl FromStr for Percent {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        match text.trim().parse() {
            Ok(percent @ 1..=100) => Ok(Percent(percent)),
            _ => Err(WorkloadError::Percent(text.to_string())),
        }
    }
}
