//! The transaction that a session has begun.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_database::Transaction;
use coscan_storage::table::Value;
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::error::from_database;
use crate::managed::database::ManagedDatabase;
use crate::managed::memory::OpenChanges;

/// The transaction that a session has begun, in its configuration. Sessions that have the same one share it.
#[derive(Debug, Default)]
pub struct SessionTransaction(Mutex<Option<OpenTransaction>>);

/// A transaction at one moment, as a savepoint keeps it.
#[derive(Clone, Debug)]
pub struct SavedTransaction(Option<OpenTransaction>);

/// A transaction that was begun. Its database is that of the first table that a statement names.
#[derive(Clone, Debug)]
enum OpenTransaction {
    Begun,
    Of(ManagedDatabase, Arc<Transaction<Value>>, Arc<OpenChanges>),
}

impl OpenTransaction {
    fn new(database: &ManagedDatabase, transaction: Transaction<Value>) -> Self {
        let changes = Arc::new(OpenChanges::new(database, 0));
        Self::Of(database.clone(), Arc::new(transaction), changes)
    }
}

impl SessionTransaction {
    /// Adds it to a session, unless the session has one.
    pub(crate) fn add_to(config: &mut SessionConfig) {
        if config.get_extension::<Self>().is_none() {
            config.set_extension(Arc::new(Self::default()));
        }
    }

    /// Makes it that of a session, instead of the one that it has.
    pub fn attach_to(self: &Arc<Self>, config: &mut SessionConfig) {
        config.set_extension(Arc::clone(self));
    }

    /// One that has begun already.
    pub(crate) fn begun(database: &ManagedDatabase, transaction: Transaction<Value>) -> Self {
        Self(Mutex::new(Some(OpenTransaction::new(database, transaction))))
    }

    /// Whether one has begun.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open().is_some()
    }

    /// That of a session.
    pub(crate) fn of(session: &dyn Session) -> Option<Arc<Self>> {
        session.config().get_extension::<Self>()
    }

    fn open(&self) -> MutexGuard<'_, Option<OpenTransaction>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `BEGIN`.
    ///
    /// # Errors
    /// If the session has begun one already.
    pub fn begin(&self) -> Result<()> {
        let mut open = self.open();
        if open.is_some() {
            return plan_err!("a transaction has begun already: COMMIT or ROLLBACK it first");
        }
        *open = Some(OpenTransaction::Begun);
        Ok(())
    }

    /// The transaction in which a statement sees the tables of a database; `None` if it is one of its own.
    ///
    /// # Errors
    /// If the transaction is one of another database.
    pub(crate) fn for_database(
        &self,
        database: &ManagedDatabase,
    ) -> Result<Option<Arc<Transaction<Value>>>> {
        let mut open = self.open();
        match &*open {
            None => Ok(None),
            Some(OpenTransaction::Of(of, transaction, _)) if of.is_same(database) => {
                Ok(Some(Arc::clone(transaction)))
            }
            Some(OpenTransaction::Of(of, ..)) => plan_err!(
                "this transaction is one of the database {}: COMMIT or ROLLBACK it before a statement on {}",
                of.name(),
                database.name()
            ),
            Some(OpenTransaction::Begun) => {
                *open = Some(OpenTransaction::new(database, database.versions().begin()));
                drop(open);
                self.for_database(database)
            }
        }
    }

    /// Replaces the transaction by the same one with the changes of a statement that has begun with `before`, which take so many
    /// bytes.
    ///
    /// # Errors
    /// If it has ended, or another statement of the session has changed it meanwhile.
    pub(crate) fn replace(
        &self,
        before: &Arc<Transaction<Value>>,
        after: Transaction<Value>,
        bytes: u64,
    ) -> Result<(), coscan_database::Error> {
        let mut open = self.open();
        match &mut *open {
            Some(OpenTransaction::Of(database, transaction, changes))
                if Arc::ptr_eq(transaction, before) =>
            {
                *transaction = Arc::new(after);
                let all = OpenChanges::new(database, changes.bytes() + bytes);
                *changes = Arc::new(all);
                Ok(())
            }
            _ => Err(coscan_database::Error::Ended),
        }
    }

    /// `COMMIT`. The transaction has ended then, also if this fails.
    ///
    /// # Errors
    /// If none has begun, or another one that committed first wrote the same row.
    pub async fn commit(&self) -> Result<()> {
        match self.end()? {
            OpenTransaction::Begun => Ok(()),
            OpenTransaction::Of(database, transaction, changes) => {
                committed(Arc::unwrap_or_clone(transaction)).await.map_err(from_database)?;
                database.count_changes(changes.bytes());
                database.notify_changed();
                Ok(())
            }
        }
    }

    /// `ROLLBACK`.
    ///
    /// # Errors
    /// If none has begun.
    pub fn roll_back(&self) -> Result<()> {
        self.end().map(drop)
    }

    /// The transaction as it is now, or that there is none.
    #[must_use]
    pub fn save(&self) -> SavedTransaction {
        SavedTransaction(self.open().clone())
    }

    /// `ROLLBACK TO SAVEPOINT`: undoes what was changed since the transaction was saved. It goes on to see the same moment. A
    /// statement that is still running has no effect any more.
    pub fn restore(&self, saved: &SavedTransaction) {
        let mut open = self.open();
        let restored = match (&saved.0, &*open) {
            (Some(OpenTransaction::Of(database, transaction, changes)), Some(_)) => {
                // Another one, by which running statements see that theirs has ended.
                let transaction = Arc::new(Transaction::clone(transaction));
                OpenTransaction::Of(database.clone(), transaction, Arc::clone(changes))
            }
            (Some(OpenTransaction::Begun), Some(OpenTransaction::Of(database, transaction, _))) => {
                OpenTransaction::new(database, transaction.at_start())
            }
            _ => return,
        };
        *open = Some(restored);
    }

    fn end(&self) -> Result<OpenTransaction> {
        match self.open().take() {
            Some(open) => Ok(open),
            None => plan_err!("no transaction has begun: BEGIN one first"),
        }
    }
}

/// Commits a transaction. If this is cancelled, the transaction is committed all the same.
///
/// # Errors
/// If another one that committed first wrote the same row, or the database cannot be written.
pub(crate) async fn committed(
    transaction: Transaction<Value>,
) -> Result<(), coscan_database::Error> {
    transaction.database().make_room().await?;
    let pending = transaction.start_commit()?;
    match tokio::spawn(pending.durable()).await {
        Ok(durable) => durable.map(drop),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(coscan_database::Error::Ended),
        },
    }
}
