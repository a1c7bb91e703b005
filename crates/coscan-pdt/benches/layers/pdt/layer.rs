//! One layer: changes of the rows that the layer below produces.

use super::node::{Change, Entry, delta_of};
use super::slab::Slab;
use super::tree::{Cursor, Tree};

/// Another transaction changed the same row and committed first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict;

/// Changes by position. A SID is a position in the rows below, a RID one in the rows that this layer produces
/// `[CS11 §4.5]`.
pub(crate) struct Layer<V, const N: usize> {
    pub(super) tree: Tree<N>,
    /// Inserted rows.
    pub(super) rows: Slab<V>,
    /// Other values of cells of rows below.
    pub(super) cells: Slab<V>,
}

impl<V: Copy, const N: usize> Layer<V, N> {
    pub(crate) fn new(columns: usize) -> Self {
        Self { tree: Tree::new(), rows: Slab::new(columns), cells: Slab::new(1) }
    }

    /// Forgets all changes and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.tree.clear();
        self.rows.clear();
        self.cells.clear();
    }

    /// The number of changes.
    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }

    /// How many rows more than the layer below it produces.
    pub(super) fn delta(&self) -> i64 {
        self.tree.delta()
    }

    /// Inserts a row before the one at a position.
    pub(crate) fn insert(&mut self, rid: u64, row: &[V]) {
        let cursor = self.find(rid);
        let change = Change::Insert(self.rows.put(row));
        self.tree.insert(&cursor, Entry { sid: rid.wrapping_add_signed(-cursor.delta), change });
    }

    /// Deletes the row at a position. Of a row that this layer inserted nothing is left.
    pub(crate) fn delete(&mut self, rid: u64) {
        let mut cursor = self.find(rid);
        let mut row = self.row_entry(&cursor, rid);
        if let Some(Entry { change: Change::Insert(at), .. }) = row {
            self.rows.free(at);
            self.tree.remove(&cursor);
            return;
        }
        // Other values of the row are of no use any more. The last entry becomes that of the delete.
        while let Some(Entry { change: Change::Modify { value, .. }, sid }) = row {
            self.cells.free(value);
            if self.second_of_row(&cursor, sid).is_none() {
                self.tree.replace(&cursor, Entry { sid, change: Change::Delete });
                return;
            }
            self.tree.remove(&cursor);
            cursor = self.find(rid);
            row = self.row_entry(&cursor, rid);
        }
        let sid = rid.wrapping_add_signed(-cursor.delta);
        self.tree.insert(&cursor, Entry { sid, change: Change::Delete });
    }

    /// Gives a cell of the row at a position another value.
    pub(crate) fn modify(&mut self, rid: u64, column: u16, new: V) {
        let mut cursor = self.find(rid);
        let mut row = self.row_entry(&cursor, rid);
        loop {
            match row {
                Some(Entry { change: Change::Insert(at), .. }) => {
                    self.rows.group_mut(at)[usize::from(column)] = new;
                    return;
                }
                Some(Entry { change: Change::Modify { column: other, value }, .. })
                    if other == column =>
                {
                    *self.cells.get_mut(value) = new;
                    return;
                }
                Some(Entry { change: Change::Modify { column: other, .. }, sid })
                    if other < column =>
                {
                    self.tree.to_next(&mut cursor);
                    row = self.tree.entry(&cursor).filter(|entry| entry.sid == sid);
                }
                _ => break,
            }
        }
        let change = Change::Modify { column, value: self.cells.put(&[new]) };
        self.tree.insert(&cursor, Entry { sid: rid.wrapping_add_signed(-cursor.delta), change });
    }

    /// Makes these the changes of a layer on the rows that an earlier transaction left, instead of on those before it.
    /// After a conflict they are of no use.
    ///
    /// The thesis walks over both; a search for each of these changes is cheaper when they are the fewer.
    pub(crate) fn serialize<const M: usize>(
        &mut self,
        earlier: &Layer<V, M>,
    ) -> Result<(), Conflict> {
        self.tree.try_shift(|own| {
            let (rid, is_changed) = earlier.position_of(own.sid);
            if is_changed && !own.is_insert() {
                return Err(Conflict);
            }
            own.sid = rid;
            Ok(())
        })
    }

    /// Adds the changes of the layer above.
    pub(crate) fn propagate<const M: usize>(&mut self, above: &Layer<V, M>) {
        let mut delta = 0;
        above.for_each_entry(|entry| {
            let rid = entry.rid(delta);
            match entry.change {
                Change::Insert(at) => self.insert(rid, above.rows.group(at)),
                Change::Delete => self.delete(rid),
                Change::Modify { column, value } => {
                    self.modify(rid, column, *above.cells.get(value));
                }
            }
            delta += delta_of(entry.change);
        });
    }

    /// The SID of the row at a position; `None` if this layer inserted it.
    pub(super) fn sid_of(&self, rid: u64) -> Option<u64> {
        let cursor = self.find(rid);
        match self.row_entry(&cursor, rid) {
            Some(entry) if entry.is_insert() => None,
            _ => Some(rid.wrapping_add_signed(-cursor.delta)),
        }
    }

    /// The RID of a row of the layer below; `None` if it is deleted.
    pub(super) fn rid_of(&self, sid: u64) -> Option<u64> {
        let cursor = self.find_row(sid);
        match self.tree.entry(&cursor) {
            Some(entry) if entry.sid == sid && entry.change == Change::Delete => None,
            _ => Some(sid.wrapping_add_signed(cursor.delta)),
        }
    }

    /// The lowest RID of what this layer makes of the rows below from a SID on.
    pub(super) fn low_rid(&self, sid: u64) -> u64 {
        sid.wrapping_add_signed(self.first_from(sid).delta)
    }

    /// The first change of the rows from a SID on, or of what stands before them.
    pub(super) fn first_from(&self, sid: u64) -> Cursor {
        self.tree.find(|entry, _| entry.sid < sid)
    }

    fn for_each_entry(&self, mut f: impl FnMut(&Entry)) {
        let mut cursor = self.first_from(0);
        loop {
            self.tree.rest_of_leaf(&cursor).iter().for_each(&mut f);
            if !self.tree.to_next_leaf(&mut cursor) {
                return;
            }
        }
    }

    /// Where the row at a position has its entries, if it has any: after the rows deleted before it.
    fn find(&self, rid: u64) -> Cursor {
        self.tree.find(|entry, delta| {
            let at = entry.rid(delta);
            at < rid || at == rid && entry.change == Change::Delete
        })
    }

    /// Where a row of the layer below has its entries: after the inserts before it.
    fn find_row(&self, sid: u64) -> Cursor {
        self.tree.find(|entry, _| entry.sid < sid || entry.sid == sid && entry.is_insert())
    }

    /// The position of a row of the layer below, or of the next row that is left, and whether this layer changes it.
    fn position_of(&self, sid: u64) -> (u64, bool) {
        let cursor = self.find_row(sid);
        let is_changed = self.tree.entry(&cursor).is_some_and(|entry| entry.sid == sid);
        (sid.wrapping_add_signed(cursor.delta), is_changed)
    }

    /// The entry that was found for the row at a position.
    fn row_entry(&self, cursor: &Cursor, rid: u64) -> Option<Entry> {
        self.tree.entry(cursor).filter(|entry| entry.rid(cursor.delta) == rid)
    }

    fn second_of_row(&self, cursor: &Cursor, sid: u64) -> Option<Entry> {
        let mut next = *cursor;
        self.tree.to_next(&mut next);
        self.tree.entry(&next).filter(|entry| entry.sid == sid)
    }
}

impl<V: Copy, const N: usize> Clone for Layer<V, N> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone(), rows: self.rows.clone(), cells: self.cells.clone() }
    }
}
