//! The rows that a transaction wrote.

use std::fmt;

use crate::block::{BLOCK_ROWS, BlockRows};
use crate::ids::{InsertId, RowId, Sid};
use crate::tree::{Entry, Tree};

/// The rows that a transaction wrote in one file: patched, deleted or inserted. A clone costs two counters.
///
/// Two transactions conflict if both wrote the same row `[CS11 §2.7]`, whichever columns.
#[derive(Clone, Default)]
pub struct WriteSet {
    stable: Tree<WrittenBlock>,
    inserts: Tree<InsertId>,
}

/// The rows of a block that were written, at least one.
#[derive(Clone)]
struct WrittenBlock {
    number: u64,
    rows: BlockRows,
}

impl WriteSet {
    /// Adds a row. Returns whether it is new.
    pub fn add(&mut self, row: impl Into<RowId>) -> bool {
        let row = row.into();
        if self.contains(row) {
            return false;
        }
        match row {
            RowId::Stable(Sid(sid)) => {
                let number = sid / BLOCK_ROWS;
                self.stable.alter(&number, |slot| {
                    let new = || WrittenBlock { number, rows: BlockRows::default() };
                    slot.get_or_insert_with(new).rows.insert((sid % BLOCK_ROWS) as u16)
                })
            }
            RowId::Insert(id) => {
                self.inserts.put(id);
                true
            }
        }
    }

    /// Whether the row was written.
    #[must_use]
    pub fn contains(&self, row: impl Into<RowId>) -> bool {
        match row.into() {
            RowId::Stable(Sid(sid)) => {
                let block = self.stable.get(&(sid / BLOCK_ROWS));
                block.is_some_and(|block| block.rows.contains((sid % BLOCK_ROWS) as u16))
            }
            RowId::Insert(id) => self.inserts.get(&id).is_some(),
        }
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stable.is_empty() && self.inserts.is_empty()
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.stable.sum() + self.inserts.sum()
    }

    /// All rows: stable ones by position, then inserts by id.
    pub fn iter(&self) -> impl Iterator<Item = RowId> {
        let stable = self.stable.iter().flat_map(|block| {
            block.rows.iter(0..BLOCK_ROWS).map(|offset| RowId::Stable(block.sid(offset)))
        });
        stable.chain(self.inserts.iter().map(|id| RowId::Insert(*id)))
    }

    /// The first row that both sets have. Time grows with the smaller set.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<RowId> {
        let (few, many) = ordered(&self.stable, &other.stable);
        let in_block = |block: &WrittenBlock| {
            let offset = block.rows.first_common(&many.get(&block.number)?.rows)?;
            Some(block.sid(offset).into())
        };
        few.iter().find_map(in_block).or_else(|| {
            let (few, many) = ordered(&self.inserts, &other.inserts);
            few.iter().find(|id| many.get(id).is_some()).map(|id| RowId::Insert(*id))
        })
    }
}

/// Two sets, the one with fewer rows first.
fn ordered<'a, E: Entry<Sum = u64>>(
    one: &'a Tree<E>,
    other: &'a Tree<E>,
) -> (&'a Tree<E>, &'a Tree<E>) {
    if one.sum() <= other.sum() { (one, other) } else { (other, one) }
}

impl WrittenBlock {
    fn sid(&self, offset: u16) -> Sid {
        Sid(self.number * BLOCK_ROWS + u64::from(offset))
    }
}

impl Entry for WrittenBlock {
    type Key = u64;
    type Sum = u64;

    fn key(&self) -> &u64 {
        &self.number
    }

    fn sum(&self) -> u64 {
        self.rows.len() as u64
    }
}

impl Entry for InsertId {
    type Key = Self;
    type Sum = u64;

    fn key(&self) -> &Self {
        self
    }

    fn sum(&self) -> u64 {
        1
    }
}

impl<R: Into<RowId>> FromIterator<R> for WriteSet {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut writes = Self::default();
        for row in rows {
            writes.add(row);
        }
        writes
    }
}

impl PartialEq for WriteSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for WriteSet {}

impl fmt::Debug for WriteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
