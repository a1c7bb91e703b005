//! What is compared: tables that the same transactions change; and the first of them, the layers of the thesis.

use std::ops::Range;

use crate::pdt::{Layers, OwnLayer, Sink, Snapshot};

/// 16 bytes, as a scalar of a column may have.
pub(crate) type Value = (u64, u64);

pub(crate) const COLUMNS: usize = 4;

/// The column in which rows are patched.
pub(crate) const PATCHED: u16 = 3;

/// The most entries of a node of the shared layers, as in `coscan-pdt`. With 16 or 64, times differ by no more than they do
/// from run to run.
pub(crate) const NODE_MAX: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Patch,
    Delete,
    Insert,
    Append,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Patch, Kind::Delete, Kind::Insert, Kind::Append];

/// A table that transactions change one after the other.
pub(crate) trait Subject: Sized {
    type Transaction;

    fn new(rows: u64) -> Self;

    /// A copy that is changed as if there was no other.
    fn deep_copy(&self) -> Self;

    fn begin(&self) -> Self::Transaction;

    /// How a transaction that begins now names a stable row; `None` if it was deleted.
    fn name(&self, sid: u64) -> Option<u64>;

    /// Changes the row of a name, or inserts one before it or in the tail.
    fn change(&self, transaction: &mut Self::Transaction, kind: Kind, name: u64, value: Value);

    /// Returns whether no transaction since wrote the same row.
    fn commit(&mut self, transaction: Self::Transaction) -> bool;

    /// Forgets all that later commits are checked against. No transaction is open.
    fn forget(&mut self);

    /// What is done now and then, after some commits: returns whether it was done.
    fn tidy(&mut self) -> bool;

    fn rows(transaction: &Self::Transaction) -> u64;

    /// The position of a stable row; `None` if it was deleted.
    fn rid_of(transaction: &Self::Transaction, sid: u64) -> Option<u64>;

    /// The stable row at a position; `None` if the row there was inserted.
    fn sid_of(transaction: &Self::Transaction, rid: u64) -> Option<u64>;

    /// Passes on the rows of a chunk in a column.
    fn merge(
        transaction: &Self::Transaction,
        chunk: Range<u64>,
        column: u16,
        sink: &mut impl Sink<Value>,
    );
}

/// The thesis: the layers, and a file of so many rows. The write layer is folded when it has `WRITE_MAX` changes: with
/// 4,096, of 40 bytes each, it is a part of a cache of the second level.
pub(crate) struct LayeredTable<const WRITE_MAX: usize> {
    stable_rows: u64,
    layers: Layers<Value, NODE_MAX>,
}

/// As most figures have it.
pub(crate) type Thesis = LayeredTable<4_096>;

pub(crate) struct ThesisTransaction {
    stable_rows: u64,
    snapshot: Snapshot<Value, NODE_MAX>,
    own: OwnLayer<Value>,
}

impl<const WRITE_MAX: usize> Subject for LayeredTable<WRITE_MAX> {
    type Transaction = ThesisTransaction;

    fn new(stable_rows: u64) -> Self {
        Self { stable_rows, layers: Layers::new(COLUMNS) }
    }

    fn deep_copy(&self) -> Self {
        Self { layers: self.layers.deep_copy(), ..*self }
    }

    fn begin(&self) -> ThesisTransaction {
        ThesisTransaction {
            stable_rows: self.stable_rows,
            snapshot: self.layers.snapshot(),
            own: self.layers.own_layer(),
        }
    }

    fn name(&self, sid: u64) -> Option<u64> {
        self.layers.snapshot().rid_of(&self.layers.own_layer(), sid)
    }

    fn change(&self, transaction: &mut ThesisTransaction, kind: Kind, name: u64, value: Value) {
        let own = &mut transaction.own;
        match kind {
            Kind::Patch => own.modify(name, PATCHED, value),
            Kind::Delete => own.delete(name),
            Kind::Insert => own.insert(name, &[value; COLUMNS]),
            Kind::Append => {
                let end = transaction.snapshot.visible_rows(own, self.stable_rows);
                own.insert(end, &[value; COLUMNS]);
            }
        }
    }

    fn commit(&mut self, transaction: ThesisTransaction) -> bool {
        self.layers.commit(transaction.snapshot, transaction.own).is_ok()
    }

    fn forget(&mut self) {
        self.layers.forget(None);
    }

    fn tidy(&mut self) -> bool {
        let is_full = self.layers.write_len() >= WRITE_MAX;
        if is_full {
            self.layers.fold();
        }
        is_full
    }

    fn rows(transaction: &ThesisTransaction) -> u64 {
        transaction.snapshot.visible_rows(&transaction.own, transaction.stable_rows)
    }

    fn rid_of(transaction: &ThesisTransaction, sid: u64) -> Option<u64> {
        transaction.snapshot.rid_of(&transaction.own, sid)
    }

    fn sid_of(transaction: &ThesisTransaction, rid: u64) -> Option<u64> {
        transaction.snapshot.sid_of(&transaction.own, rid)
    }

    fn merge(
        transaction: &ThesisTransaction,
        chunk: Range<u64>,
        column: u16,
        sink: &mut impl Sink<Value>,
    ) {
        let has_tail = chunk.end == transaction.stable_rows;
        transaction.snapshot.merge(&transaction.own, chunk, has_tail, column, sink);
    }
}
