//! Faults that a test schedules, and the count of operations by which it does.

use std::collections::BTreeMap;
use std::io;

/// A kind of operation of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Operation {
    /// Create a file.
    Create,
    /// Open a file, for reading or writing.
    Open,
    /// Read from a file or ask for its length.
    Read,
    /// Write to a file.
    Write,
    /// Preallocate or truncate a file.
    SetLength,
    /// Sync a file.
    Sync,
    /// Create a directory.
    CreateDirectory,
    /// Sync a directory.
    SyncDirectory,
    /// Give a file a second name.
    Link,
    /// Rename a file.
    Rename,
    /// Remove a file.
    Remove,
    /// List a directory.
    List,
    /// Lock a file.
    Lock,
}

impl Operation {
    const fn changes(self) -> bool {
        !matches!(self, Self::Open | Self::Read | Self::List)
    }
}

/// The reason for which an operation is not carried out as asked.
pub(super) enum Refused {
    /// The operation does nothing.
    Entirely(io::Error),
    /// The disk fails in the middle of the operation.
    Midway(io::Error),
}

#[derive(Debug)]
struct Failure {
    /// Any kind if there is none.
    operation: Option<Operation>,
    /// The number of such operations that succeed before.
    skip: u64,
}

/// The faults of one disk.
#[derive(Debug, Default)]
pub(super) struct Faults {
    counts: BTreeMap<Operation, u64>,
    failures: Vec<Failure>,
    /// The number of operations after which the power is off.
    last: Option<u64>,
    pub(super) read_only: bool,
    pub(super) bytes_max: Option<u64>,
}

impl Faults {
    /// The number of operations so far, of one kind or of all.
    pub(super) fn count(&self, operation: Option<Operation>) -> u64 {
        match operation {
            Some(operation) => self.counts.get(&operation).copied().unwrap_or(0),
            None => self.counts.values().sum(),
        }
    }

    pub(super) fn power_off_after(&mut self, more: u64) {
        self.last = Some(self.count(None) + more);
    }

    pub(super) fn fail(&mut self, operation: Option<Operation>, skip: u64) {
        self.failures.push(Failure { operation, skip });
    }

    /// Counts an operation and says whether it is carried out.
    pub(super) fn step(&mut self, operation: Operation) -> Result<(), Refused> {
        if self.last.is_some_and(|last| self.count(None) >= last) {
            return Err(Refused::Entirely(io::Error::other("the power is off")));
        }
        *self.counts.entry(operation).or_default() += 1;
        if self.read_only && operation.changes() {
            return Err(Refused::Entirely(io::ErrorKind::ReadOnlyFilesystem.into()));
        }
        let mut failed = false;
        self.failures.retain_mut(|failure| {
            if failure.operation.is_some_and(|kind| kind != operation) {
                return true;
            }
            let now = failure.skip == 0;
            failure.skip = failure.skip.saturating_sub(1);
            failed |= now;
            !now
        });
        if failed {
            return Err(Refused::Midway(io::Error::other("the simulated disk fails")));
        }
        Ok(())
    }
}
