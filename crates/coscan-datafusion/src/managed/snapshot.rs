//! The versions of managed tables that a statement sees.

use std::sync::Arc;

use coscan_database::Transaction;
use coscan_storage::table::Value;
use datafusion::catalog::Session;
use datafusion::error::Result;

use crate::error::from_database;
use crate::managed::database::ManagedDatabase;
use crate::managed::table::ManagedTable;
use crate::managed::transactions::{SessionTransaction, committed};
use crate::tables::statement_snapshot::StatementSnapshot;

/// All tables of a database at one moment, for one statement.
#[derive(Clone, Debug)]
pub(crate) struct ManagedSnapshot {
    database: ManagedDatabase,
    transaction: Arc<Transaction<Value>>,
    /// The session that has begun the transaction, unless it is the statement's own.
    session: Option<Arc<SessionTransaction>>,
}

impl ManagedSnapshot {
    /// The tables as a statement of a session sees them: as they are now, or as the session's transaction sees them.
    ///
    /// # Errors
    /// If the session's transaction is one of another database.
    pub(crate) fn of(session: &dyn Session, database: &ManagedDatabase) -> Result<Self> {
        let session = SessionTransaction::of(session);
        let begun = session.as_ref().map(|session| session.for_database(database)).transpose()?;
        let (transaction, session) = match begun.flatten() {
            Some(transaction) => (transaction, session),
            None => (Arc::new(database.versions().begin()), None),
        };
        Ok(Self { database: database.clone(), transaction, session })
    }

    /// Whether it is one of this database.
    pub(crate) fn is_of(&self, database: &ManagedDatabase) -> bool {
        self.database.is_same(database)
    }

    /// Whether the transaction is the statement's own.
    pub(crate) fn is_own(&self) -> bool {
        self.session.is_none()
    }

    /// A transaction with this snapshot, for the changes of the statement.
    pub(crate) fn transaction(&self) -> Transaction<Value> {
        self.transaction.as_ref().clone()
    }

    /// Ends the statement with these changes, which take about so much memory: commits them, or leaves them to the session's
    /// transaction.
    ///
    /// # Errors
    /// If another statement that committed first wrote the same row, or the database cannot be written.
    pub(crate) async fn finish(
        &self,
        changed: Transaction<Value>,
        change_bytes: u64,
    ) -> Result<(), coscan_database::Error> {
        // The last moment at which the statement can be cancelled.
        tokio::task::yield_now().await;
        match &self.session {
            Some(session) => session.replace(&self.transaction, changed, change_bytes),
            None => {
                committed(changed).await?;
                self.database.count_changes(change_bytes);
                self.database.notify_changed();
                Ok(())
            }
        }
    }

    /// A table at this moment.
    ///
    /// # Errors
    /// If a file cannot be opened, or the table was dropped.
    pub(crate) async fn table(&self, table: &ManagedTable) -> Result<StatementSnapshot> {
        let version = self.transaction.version(table.id()).map_err(from_database)?;
        let source = table.source(&version, &self.transaction).await?;
        let pinned = StatementSnapshot::new(Arc::new(source), Vec::new());
        Ok(if table.has_row_numbers() { pinned.with_row_numbers() } else { pinned })
    }
}
