//! Changes of one row, which make a version another one.

use std::sync::Arc;

use super::FileChanges;
use crate::block::{Block, Cell, Patch};
use crate::error::Error;
use crate::ids::{InsertId, Place, RowId, Sid};
use crate::insert::{Insert, Located, Position};
use crate::tree::Tree;

impl<V: Clone, K: Ord + Clone> FileChanges<V, K> {
    /// Inserts a row.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`] if it stands before a row that the file lacks, [`Error::InsertExists`] if its id is taken.
    pub fn insert(&mut self, insert: Insert<V, K>) -> Result<(), Error> {
        if let Place::Before(sid) = insert.place() {
            self.check(sid)?;
        }
        if self.is_visible(insert.id()) {
            return Err(Error::InsertExists(insert.id()));
        }
        self.located.put(Located(insert.position.clone()));
        self.change_inserts(insert.place(), |inserts| inserts.put(insert));
        Ok(())
    }

    /// Gives a cell of a row another value. In a stable row it replaces the patch of that cell, if there is one.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`], [`Error::RowDeleted`] or [`Error::NoSuchInsert`] if no query sees the row,
    /// [`Error::NoSuchColumn`] if an inserted row lacks the column. What columns a file has is not known here.
    pub fn patch(&mut self, row: impl Into<RowId>, column: u32, value: V) -> Result<(), Error> {
        match row.into() {
            RowId::Stable(sid) => {
                self.check_visible(sid)?;
                let (number, row) = Block::<V, K>::locate(sid);
                let patch = Patch { cell: Cell { column, row }, value };
                self.blocks.change_block(number, |block| block.patches.put(patch));
                Ok(())
            }
            RowId::Insert(id) => self.patch_insert(id, column, value),
        }
    }

    /// Deletes a row: of a stable one the patches go, too; of an insert nothing is left.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`], [`Error::RowDeleted`] or [`Error::NoSuchInsert`] if no query sees the row.
    pub fn delete(&mut self, row: impl Into<RowId>) -> Result<(), Error> {
        match row.into() {
            RowId::Stable(sid) => {
                self.check_visible(sid)?;
                let (number, offset) = Block::<V, K>::locate(sid);
                self.blocks.change_block(number, |block| block.delete(offset));
            }
            RowId::Insert(id) => {
                let position = self.position(id)?;
                self.located.remove(&id);
                self.change_inserts(position.place, |inserts| inserts.remove(&position));
            }
        }
        Ok(())
    }

    /// Gives a stable row these patches, and no others.
    pub(crate) fn replace_patches(
        &mut self,
        sid: Sid,
        patches: impl IntoIterator<Item = (u32, V)>,
    ) -> Result<(), Error> {
        self.check_visible(sid)?;
        let (number, row) = Block::<V, K>::locate(sid);
        self.blocks.change_block(number, |block| {
            block.drop_patches(row);
            let cells = patches.into_iter().map(|(column, value)| (Cell { column, row }, value));
            cells.for_each(|(cell, value)| block.patches.put(Patch { cell, value }));
        });
        Ok(())
    }

    /// Gives an insert, which exists, another row.
    pub(crate) fn replace_insert(&mut self, id: InsertId, row: Arc<[V]>) -> Result<(), Error> {
        let position = self.position(id)?;
        let place = position.place;
        self.change_inserts(place, |inserts| inserts.put(Insert { position, row }));
        Ok(())
    }

    fn patch_insert(&mut self, id: InsertId, column: u32, value: V) -> Result<(), Error> {
        let insert = self.insert_of(id).ok_or(Error::NoSuchInsert(id))?;
        let mut row = Arc::clone(&insert.row);
        let columns = row.len();
        let Some(cell) = Arc::make_mut(&mut row).get_mut(column as usize) else {
            return Err(Error::NoSuchColumn { id, column, columns });
        };
        *cell = value;
        self.replace_insert(id, row)
    }

    /// Changes the inserts of a place.
    fn change_inserts(&mut self, place: Place, change: impl FnOnce(&mut Tree<Insert<V, K>>)) {
        match place {
            Place::Before(sid) => {
                let (number, _) = Block::<V, K>::locate(sid);
                self.blocks.change_block(number, |block| change(&mut block.inserts));
            }
            Place::Tail => change(&mut self.tail),
        }
    }

    /// # Errors
    /// If no query sees the row.
    pub(crate) fn check_row(&self, row: RowId) -> Result<(), Error> {
        match row {
            RowId::Stable(sid) => self.check_visible(sid),
            RowId::Insert(id) => self.position(id).map(drop),
        }
    }

    fn position(&self, id: InsertId) -> Result<Position<K>, Error> {
        let located = self.located.get(&id).ok_or(Error::NoSuchInsert(id))?;
        Ok(located.0.clone())
    }

    fn check_visible(&self, sid: Sid) -> Result<(), Error> {
        self.check(sid)?;
        if self.is_deleted(sid) { Err(Error::RowDeleted(sid)) } else { Ok(()) }
    }
}
