//! The memory that changes take, which is part of the budget of the manager.

use std::sync::atomic::Ordering;

use coscan_runtime::MetadataReservation;
use datafusion::common::resources_err;
use datafusion::error::Result;

use crate::managed::database::ManagedDatabase;
use crate::managed::opened_files::change_bytes;

/// The memory of the changes of a transaction that is open.
#[derive(Debug)]
pub(crate) struct OpenChanges {
    database: ManagedDatabase,
    bytes: u64,
    _counted: MetadataReservation,
}

impl OpenChanges {
    /// Counts so many bytes.
    pub(crate) fn new(database: &ManagedDatabase, bytes: u64) -> Self {
        database.open_bytes().fetch_add(bytes, Ordering::Relaxed);
        let counted = database.coscan().manager().count_metadata(bytes);
        Self { database: database.clone(), bytes, _counted: counted }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for OpenChanges {
    fn drop(&mut self) {
        self.database.open_bytes().fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ManagedDatabase {
    /// Counts the memory of changes that were made, in bytes.
    pub(crate) fn count_changes(&self, bytes: u64) {
        let counted = self.coscan().manager().count_metadata(bytes);
        self.memory().add(counted);
    }

    /// Counts the memory of all committed changes anew. Takes a time that grows with them.
    pub(crate) fn recount_changes(&self) {
        let bytes = change_bytes(self.versions());
        *self.memory() = self.coscan().manager().count_metadata(bytes);
    }

    /// Checks that changes leave memory for queries.
    ///
    /// # Errors
    /// If they take half of the budget.
    pub(crate) fn check_memory(&self) -> Result<()> {
        if self.has_memory() {
            return Ok(());
        }
        // What was counted of changes that replace others, or were rolled back, is gone.
        self.recount_changes();
        if self.has_memory() {
            return Ok(());
        }
        let (bytes, budget) = (self.change_bytes(), self.budget_bytes());
        resources_err!(
            "the changes of the database {} take {bytes} of the {budget} bytes of memory, and queries need the rest: write \
             them to files with VACUUM FULL, end transactions that are open, or give coscan more memory",
            self.name()
        )
    }

    /// Whether changes take less than half of the budget.
    pub(crate) fn has_memory(&self) -> bool {
        self.change_bytes() < self.budget_bytes() / 2
    }

    /// The memory of committed changes and of those of open transactions.
    fn change_bytes(&self) -> u64 {
        self.memory().bytes() + self.open_bytes().load(Ordering::Relaxed)
    }

    fn budget_bytes(&self) -> u64 {
        self.coscan().manager().options().memory_bytes
    }
}
