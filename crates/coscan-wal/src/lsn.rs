//! Log sequence numbers.

use std::fmt;

/// A log sequence number: the number of a record of the log. Records are numbered from 1 without a gap, and a number is
/// never given again, whatever was cut. `Lsn(0)` stands before all records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The number of the record after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number of the record before this one; `Lsn(0)` stays as it is.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LSN {}", self.0)
    }
}
