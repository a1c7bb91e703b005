//! Transactions: snapshots, and changes that nobody else sees yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_wal::Lsn;

use crate::commit::{Changes, PendingCommit};
use crate::database::Database;
use crate::error::Error;
use crate::state::Snapshot;
use crate::table::{DataFile, FileId, Table, TableId, TableRowId};
use crate::table_transaction::TableTransaction;
use crate::version::TableVersion;

/// A transaction: it sees all tables as they were at its start, and its own changes. Dropping it rolls it back. A clone
/// is a second transaction with the same changes.
#[derive(Clone, Debug)]
pub struct Transaction<V: Clone> {
    database: Database<V>,
    snapshot: Arc<Snapshot<V>>,
    created: Vec<Table>,
    dropped: Vec<TableId>,
    tables: BTreeMap<TableId, TableTransaction<V>>,
}

impl<V: Clone> Database<V> {
    /// Starts a transaction, which sees all commits so far.
    #[must_use]
    pub fn begin(&self) -> Transaction<V> {
        Transaction {
            database: self.clone(),
            snapshot: Arc::new(self.state().snapshot()),
            created: Vec::new(),
            dropped: Vec::new(),
            tables: BTreeMap::new(),
        }
    }
}

impl<V: Clone> Transaction<V> {
    /// The last commit that it sees.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.snapshot.lsn()
    }

    /// Another transaction that sees the same commits, without the changes of this one.
    #[must_use]
    pub fn at_start(&self) -> Self {
        Self {
            database: self.database.clone(),
            snapshot: Arc::clone(&self.snapshot),
            created: Vec::new(),
            dropped: Vec::new(),
            tables: BTreeMap::new(),
        }
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database<V> {
        &self.database
    }

    /// A table as the transaction sees it.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if its snapshot does not have the table.
    pub fn version(&self, table: TableId) -> Result<TableVersion<V>, Error> {
        match self.tables.get(&table) {
            Some(changes) => Ok(changes.version()),
            None => self.snapshot.version(table).cloned(),
        }
    }

    /// Creates a table without rows, which nobody else sees before the commit. Returns its number.
    ///
    /// # Errors
    /// [`Error::TableExists`] if the transaction sees one of this name.
    pub fn create_table(
        &mut self,
        name: impl Into<Arc<str>>,
        definition: impl Into<Arc<[u8]>>,
    ) -> Result<TableId, Error> {
        let (name, definition) = (name.into(), definition.into());
        let seen = self.snapshot.tables().filter(|table| !self.dropped.contains(&table.id));
        if seen.chain(&self.created).any(|table| table.name == name) {
            return Err(Error::TableExists(name));
        }
        let id = self.database.new_table();
        self.created.push(Table { id, name, definition });
        self.tables.insert(id, TableTransaction::new(TableVersion::default(), self.lsn()));
        Ok(id)
    }

    /// Drops a table at the commit. This transaction can still read it, as it was at its start, but not change it. Transactions
    /// that have started see it until their end, but cannot commit changes of it after this commit.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if the transaction does not see it.
    pub fn drop_table(&mut self, table: TableId) -> Result<(), Error> {
        self.changes(table)?;
        self.tables.remove(&table);
        let created = self.created.len();
        self.created.retain(|created| created.id != table);
        if self.created.len() == created {
            self.dropped.push(table);
        }
        Ok(())
    }

    /// Adds a file with rows to a table, under a [new number](Database::new_file).
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if its snapshot does not have the table.
    pub fn add_file(&mut self, table: TableId, id: FileId, file: DataFile) -> Result<(), Error> {
        self.changes(table)?.add_file(id, file);
        Ok(())
    }

    /// Inserts a row, one value for each column of the table.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if its snapshot does not have the table.
    pub fn insert(&mut self, table: TableId, row: impl Into<Arc<[V]>>) -> Result<(), Error> {
        let id = self.database.new_insert();
        self.changes(table)?.insert(id, row.into())
    }

    /// Gives cells of a row other values. Without any the row still counts as written: no other transaction can change it
    /// and commit first.
    ///
    /// # Errors
    /// If the transaction does not see the row.
    pub fn update(
        &mut self,
        table: TableId,
        row: TableRowId,
        cells: impl IntoIterator<Item = (u32, V)>,
    ) -> Result<(), Error> {
        self.changes(table)?.update(row, cells)
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// If the transaction does not see the row.
    pub fn delete(&mut self, table: TableId, row: TableRowId) -> Result<(), Error> {
        self.changes(table)?.delete(row)
    }

    /// Makes its changes durable, and visible to all transactions that start from now on: all of them, or none. Returns the commit's
    /// number, or that of its snapshot if nothing was changed.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a transaction that committed since its start wrote a row that it wrote, too,
    /// [`Error::NoSuchTable`] if a table was dropped since, and [`Error::Log`] if the log has failed.
    pub fn commit(self) -> Result<Lsn, Error>
    where
        V: PartialEq,
    {
        if let Some(log) = self.database.log() {
            log.make_room()?;
        }
        self.start_commit()?.wait()
    }

    /// As [`Self::commit`], without waiting until it is durable: only then is it visible.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn start_commit(self) -> Result<PendingCommit<V>, Error>
    where
        V: PartialEq,
    {
        let seen = self.lsn();
        let Self { database, created, dropped, mut tables, .. } = self;
        tables.retain(|_, changes| !changes.is_empty());
        database.commit(Changes { seen, dropped, created, tables })
    }

    fn changes(&mut self, table: TableId) -> Result<&mut TableTransaction<V>, Error> {
        if self.dropped.contains(&table) {
            return Err(Error::NoSuchTable);
        }
        if !self.tables.contains_key(&table) {
            self.tables.insert(table, TableTransaction::new(self.version(table)?, self.lsn()));
        }
        self.tables.get_mut(&table).ok_or(Error::NoSuchTable)
    }
}
