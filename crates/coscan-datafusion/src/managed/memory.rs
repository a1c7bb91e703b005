//! The memory that changes take, which is part of the budget of the manager.

use coscan_database::Database;
use coscan_storage::table::Value;
use datafusion::common::resources_err;
use datafusion::error::Result;

use crate::managed::database::ManagedDatabase;
use crate::managed::opened_files::changes_of;

impl ManagedDatabase {
    /// Counts the memory of changes that were made, in bytes.
    pub(crate) fn count_changes(&self, bytes: u64) {
        let counted = self.coscan().manager().count_metadata(bytes);
        self.memory().add(counted);
    }

    /// Counts the memory of all changes anew. Takes a time that grows with them.
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
        let (bytes, budget) = (self.memory().bytes(), self.budget_bytes());
        resources_err!(
            "the changes of the database {} take {bytes} of the {budget} bytes of memory, and queries need the rest: write \
             them to files with VACUUM FULL, or give coscan more memory",
            self.name()
        )
    }

    /// Whether changes take less than half of the budget.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory().bytes() < self.budget_bytes() / 2
    }

    fn budget_bytes(&self) -> u64 {
        self.coscan().manager().options().memory_bytes
    }
}

/// About the memory that the changes of all tables take, in bytes.
pub(crate) fn change_bytes(versions: &Database<Value>) -> u64 {
    let transaction = versions.begin();
    let tables = versions.tables().into_iter();
    let tables = tables.filter_map(|table| transaction.version(table.id).ok());
    tables.map(|version| changes_of(&version).memory_bytes()).sum()
}
