//! From names of rows to positions among what a query sees, and back. All in logarithmic time.

use std::ops::Range;

use super::FileChanges;
use crate::block::{BLOCK_ROWS, Block, BlockChanges, ChangeCounts};
use crate::ids::{InsertId, Place, Rid, RowId, Sid};
use crate::insert::Position;

impl<V: Clone, K: Ord + Clone> FileChanges<V, K> {
    /// The number of rows that a query sees.
    #[must_use]
    pub fn visible_rows(&self) -> u64 {
        let counts = self.counts();
        self.row_count - counts.deleted + counts.inserted
    }

    /// The number of rows that a query sees of some stable rows and the inserts before each of them, without the tail.
    /// Rows that the file lacks do not count.
    ///
    /// For `Sid(0)..sid` this is SIDtoRIDlow of the thesis: the RID of the first insert before `sid`, or else of `sid`.
    #[must_use]
    pub fn visible_rows_in(&self, range: Range<Sid>) -> u64 {
        let end = range.end.0.min(self.row_count);
        let start = range.start.0.min(end);
        self.rows_before(Sid(end)) - self.rows_before(Sid(start))
    }

    /// The position of a stable row among what a query sees, unless it was deleted or the file lacks it.
    #[must_use]
    pub fn rid_of_sid(&self, sid: Sid) -> Option<Rid> {
        let up_to = |position: &Position<K>| position.place <= Place::Before(sid);
        self.is_visible(sid).then(|| Rid(self.rows_until(sid, up_to)))
    }

    /// The position of an insert among what a query sees, unless it does not exist or was deleted.
    #[must_use]
    pub fn rid_of_insert(&self, id: InsertId) -> Option<Rid> {
        self.located.get(&id).map(|located| Rid(self.rank(&located.0)))
    }

    /// The position of a row among what a query sees, if it sees the row.
    #[must_use]
    pub fn rid_of(&self, row: impl Into<RowId>) -> Option<Rid> {
        match row.into() {
            RowId::Stable(sid) => self.rid_of_sid(sid),
            RowId::Insert(id) => self.rid_of_insert(id),
        }
    }

    /// The row at a position among what a query sees; `None` if it sees fewer.
    #[must_use]
    pub fn row_at_rid(&self, rid: Rid) -> Option<RowId> {
        let start = |number: u64, before: ChangeCounts| {
            number * BLOCK_ROWS - before.deleted + before.inserted
        };
        let before_tail = self.rows_before(Sid(self.row_count));
        if rid.0 >= before_tail {
            let nth = rid.0 - before_tail;
            let (before, last) = self.tail.last_reached(|_, before| before <= nth)?;
            return (before == nth).then(|| last.id().into());
        }
        // The last block with changes that does not begin after the row. All blocks after it have none.
        let reached = |number: &u64, before: ChangeCounts| start(*number, before) <= rid.0;
        let Some((before, block)) = self.blocks.last_reached(reached) else {
            return Some(Sid(rid.0).into());
        };
        let first = block.first_row();
        Some(block.changes().row_at(first, rid.0 - start(first / BLOCK_ROWS, before)))
    }

    /// The number of rows that a query sees before a position: the SID of an insert at this position if all rows were
    /// written to a new file.
    pub(crate) fn rank(&self, position: &Position<K>) -> u64 {
        let before = |other: &Position<K>| other < position;
        match position.place {
            Place::Before(sid) => self.rows_until(sid, before),
            Place::Tail => self.rows_before(Sid(self.row_count)) + self.tail.sum_before(before),
        }
    }

    /// The visible rows before the inserts of a stable row. The row may be the end of the file.
    fn rows_before(&self, sid: Sid) -> u64 {
        self.rows_until(sid, |position| position.place < Place::Before(sid))
    }

    /// The visible stable rows before `sid`, and the inserts that are `before` a border between the row before `sid` and
    /// `sid`.
    fn rows_until(&self, sid: Sid, before: impl Fn(&Position<K>) -> bool) -> u64 {
        let (deleted, inserted) = self.counts_until(sid, before);
        sid.0 - deleted + inserted
    }

    /// The deleted stable rows before `sid`, and the inserts as in [`Self::rows_until`].
    fn counts_until(&self, sid: Sid, before: impl Fn(&Position<K>) -> bool) -> (u64, u64) {
        let (number, offset) = Block::<V, K>::locate(sid);
        let ChangeCounts { mut deleted, mut inserted, .. } =
            self.blocks.sum_before(|other| *other < number);
        if let Some(block) = self.block(number) {
            deleted += block.deleted.count_before(offset.into()) as u64;
            inserted += block.inserts.sum_before(before);
        }
        (deleted, inserted)
    }

    /// The deleted rows of a range, which is in the file, and the inserts before one of its rows.
    pub(super) fn counts_in(&self, range: Range<Sid>) -> (u64, u64) {
        let [from, to] = [range.start, range.end]
            .map(|sid| self.counts_until(sid, |position| position.place < Place::Before(sid)));
        (to.0 - from.0, to.1 - from.1)
    }
}

impl<V: Clone, K: Ord + Clone> BlockChanges<V, K> {
    /// The visible row number `nth` of a block that begins at stable row `first`, or of the blocks after it, if those have
    /// no changes.
    fn row_at(&self, first: u64, nth: u64) -> RowId {
        let rows_before = |offset: u64| {
            let inserted = self.inserts_before(Sid(first.saturating_add(offset)));
            offset - self.deleted.count_before(offset) as u64 + inserted
        };
        let visible = rows_before(BLOCK_ROWS);
        if nth >= visible {
            return Sid(first + BLOCK_ROWS + nth - visible).into();
        }
        // The last offset up to which there are no more rows: the row is that stable row, or an insert before it.
        let (mut low, mut high) = (0, BLOCK_ROWS);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if rows_before(middle) <= nth { low = middle } else { high = middle }
        }
        let sid = Sid(first + low);
        let nth_insert = self.inserts_before(sid) + (nth - rows_before(low));
        match self.inserts.last_reached(|_, before| before <= nth_insert) {
            Some((before, insert))
                if before == nth_insert && insert.place() == Place::Before(sid) =>
            {
                insert.id().into()
            }
            _ => sid.into(),
        }
    }

    fn inserts_before(&self, sid: Sid) -> u64 {
        self.inserts.sum_before(|position| position.place < Place::Before(sid))
    }
}
