//! A checkpoint: the rows of a version become the stable rows of a new file.

use crate::block::{Block, BlockChanges};
use crate::changes::FileChanges;
use crate::error::Error;
use crate::ids::{InsertId, Place, Rid, RowId, Sid};
use crate::insert::{Insert, Position};
use crate::transaction::Transaction;
use crate::tree::diff;
use crate::write_set::WriteSet;

/// A map from the rows of a file to those of the file that a checkpoint writes: new SID = RID at the checkpoint's version
/// `[CS11 §2.9, §4.7]`.
///
/// It is that version itself, so making the map costs nothing, and a lookup takes logarithmic time. What was committed
/// while the new file was written is mapped when the table switches to it; then its readers see the same rows as before.
///
/// A checkpoint may write the rows of several files into one, each [after](Self::starting_at) those of the files before it.
#[derive(Clone, Debug)]
pub struct RowMap<V: Clone, K: Ord + Clone = ()> {
    at: FileChanges<V, K>,
    /// The row of the new file that is the first one of this file.
    first: u64,
    /// Whether inserts that the version does not have stand in the tail, whatever their place was.
    has_inserts_last: bool,
}

impl<V: Clone, K: Ord + Clone> RowMap<V, K> {
    /// The map of the checkpoint of a version.
    #[must_use]
    pub fn new(at: &FileChanges<V, K>) -> Self {
        Self { at: at.clone(), first: 0, has_inserts_last: false }
    }

    /// The same map for a new file in which other rows come first. Inserts at the end of a file stand after all rows of the
    /// new one, so only the last of several files may have any.
    #[must_use]
    pub fn starting_at(self, first: Sid) -> Self {
        Self { first: first.0, ..self }
    }

    /// The same map for a table without an order: inserts that the version does not have stand in the tail, so that they can be
    /// [taken from the new file](FileChanges::split_tail).
    #[must_use]
    pub fn with_inserts_last(self) -> Self {
        Self { has_inserts_last: true, ..self }
    }

    /// The number of rows of the file that the new one has.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.at.visible_rows()
    }

    /// The name of a row after the switch. Inserts of the checkpoint's version are stable rows then; an insert that it does
    /// not have keeps its name. `None` if the version does not have the stable row.
    #[must_use]
    pub fn map_row(&self, row: impl Into<RowId>) -> Option<RowId> {
        match row.into() {
            RowId::Stable(sid) => self.stable(sid).ok().map(RowId::from),
            RowId::Insert(id) => Some(self.inserted(id)),
        }
    }

    /// The written rows by their names after the switch. Rows that the checkpoint's version does not have are left out:
    /// nobody can write them again.
    #[must_use]
    pub fn map_writes(&self, writes: &WriteSet) -> WriteSet {
        writes.iter().filter_map(|row| self.map_row(row)).collect()
    }

    /// The changes of the new file that make its rows those of a later version of the old one.
    ///
    /// Rows have the same order. Only inserts whose places had deleted rows between them, and which now have the same
    /// place, stand by sort key and id there.
    ///
    /// Time grows with what was changed after the checkpoint's version. A cell that has its value again has no patch. So
    /// this is for the version with which the new file begins; what is later there is made from that one.
    ///
    /// # Errors
    /// [`Error::NotLater`] if `later` was not made from the checkpoint's version, as far as that is seen.
    pub fn map_changes(&self, later: &FileChanges<V, K>) -> Result<FileChanges<V, K>, Error>
    where
        V: PartialEq,
    {
        let mut mapped = FileChanges::new(self.first + self.row_count());
        self.carry(&self.at, later, &mut mapped)?;
        Ok(mapped)
    }

    /// A transaction whose snapshot is the checkpoint's version or a later one, as a transaction on the new file. One that
    /// began before the checkpoint's version is rebased onto a later version of the old file first.
    ///
    /// If its snapshot has a patch in the new file, so has its own version, even if it restored the value of the new file:
    /// in what is made from a version, a patch goes only with its row, or the next checkpoint would not see the change.
    ///
    /// # Errors
    /// [`Error::NotLater`] if its snapshot is not later, as far as that is seen.
    pub fn map_transaction(&self, old: &Transaction<V, K>) -> Result<Transaction<V, K>, Error>
    where
        V: PartialEq,
    {
        let mut new = Transaction::new(&self.map_changes(old.snapshot())?);
        self.carry_transaction(old, &mut new)?;
        Ok(new)
    }

    /// Adds the changes of a transaction to one on the new file, whose version has what is mapped of the snapshot of the
    /// old one.
    ///
    /// # Errors
    /// As of [`Self::map_transaction`].
    pub fn carry_transaction(
        &self,
        old: &Transaction<V, K>,
        new: &mut Transaction<V, K>,
    ) -> Result<(), Error>
    where
        V: PartialEq,
    {
        new.change(self.map_writes(old.writes()), |changes| {
            self.carry(old.snapshot(), old.changes(), changes)
        })
    }

    /// Makes what is mapped of one version of the old file what is mapped of another, which was made from it. Time grows
    /// with what was changed between them.
    ///
    /// # Errors
    /// [`Error::NotLater`] if one was not made from the other, as far as that is seen.
    pub fn carry(
        &self,
        from: &FileChanges<V, K>,
        to: &FileChanges<V, K>,
        mapped: &mut FileChanges<V, K>,
    ) -> Result<(), Error>
    where
        V: PartialEq,
    {
        if to.row_count() != self.at.row_count() {
            return Err(Error::NotLater);
        }
        for (old, new) in diff(from.blocks(), to.blocks()) {
            self.map_block(old, new, mapped)?;
        }
        for (old, new) in diff(from.tail_tree(), to.tail_tree()) {
            self.map_insert(old, new, mapped)?;
        }
        Ok(())
    }

    fn map_block(
        &self,
        old: Option<&Block<V, K>>,
        new: Option<&Block<V, K>>,
        mapped: &mut FileChanges<V, K>,
    ) -> Result<(), Error>
    where
        V: PartialEq,
    {
        let Some(block) = old.or(new) else { return Ok(()) };
        let none = BlockChanges::default();
        let [old, new] = [old, new].map(|block| block.map_or(&none, Block::changes));
        for offset in new.deleted.minus(&old.deleted) {
            mapped.delete(self.stable(block.sid(offset))?)?;
        }
        if old.deleted.minus(&new.deleted).next().is_some() {
            return Err(Error::NotLater);
        }
        for (before, after) in diff(&old.patches, &new.patches) {
            match (before, after) {
                (Some(before), Some(patch)) if before.value == patch.value => {}
                (_, Some(patch)) => {
                    let sid = self.stable(block.sid(patch.cell.row))?;
                    mapped.patch(sid, patch.cell.column, patch.value.clone())?;
                }
                // A patch goes only with its row.
                (Some(before), None) if !new.deleted.contains(before.cell.row) => {
                    return Err(Error::NotLater);
                }
                (_, None) => {}
            }
        }
        for (before, after) in diff(&old.inserts, &new.inserts) {
            self.map_insert(before, after, mapped)?;
        }
        Ok(())
    }

    fn map_insert(
        &self,
        old: Option<&Insert<V, K>>,
        new: Option<&Insert<V, K>>,
        mapped: &mut FileChanges<V, K>,
    ) -> Result<(), Error>
    where
        V: PartialEq,
    {
        match (old, new) {
            (None, Some(insert)) => {
                let Position { sort_key, id, .. } = insert.position.clone();
                let place = self.place(&insert.position);
                mapped.insert(Insert::sorted(id, place, sort_key, insert.row().clone()))
            }
            (Some(insert), None) => mapped.delete(self.inserted(insert.id())),
            (Some(old), Some(new)) => {
                let row = self.inserted(old.id());
                let values = old.row().iter().zip(new.row().iter());
                let changed = values.zip(0..).filter(|((old, new), _)| old != new);
                changed
                    .map(|((_, new), column)| (column, new))
                    .try_for_each(|(column, new)| mapped.patch(row, column, new.clone()))
            }
            (None, None) => Ok(()),
        }
    }

    /// The new name of a stable row.
    fn stable(&self, sid: Sid) -> Result<Sid, Error> {
        self.at.rid_of_sid(sid).map(|rid| self.sid(rid)).ok_or(Error::NotLater)
    }

    /// The new name of an insert: a stable row if the checkpoint's version has it.
    fn inserted(&self, id: InsertId) -> RowId {
        self.at.rid_of_insert(id).map_or(id.into(), |rid| self.sid(rid).into())
    }

    /// The new place of an insert that the checkpoint's version does not have: before the row that followed it.
    fn place(&self, position: &Position<K>) -> Place {
        if self.has_inserts_last {
            return Place::Tail;
        }
        let rank = self.at.rank(position);
        if rank < self.row_count() { Place::Before(self.sid(Rid(rank))) } else { Place::Tail }
    }

    fn sid(&self, rid: Rid) -> Sid {
        Sid(self.first + rid.0)
    }
}
