//! The second of what is compared: the versions of `coscan-pdt`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

use coscan_pdt::*;

use crate::pdt::Sink;
use crate::subjects::{COLUMNS, Kind, PATCHED, Subject, Value};

/// This crate: the latest version, and the write sets of recent commits.
pub(crate) struct Product {
    latest: FileChanges<Value>,
    recent: VecDeque<WriteSet>,
    forgotten: usize,
    next_id: Cell<u64>,
}

pub(crate) struct ProductTransaction {
    transaction: Transaction<Value>,
    commits: usize,
}

impl Subject for Product {
    type Transaction = ProductTransaction;

    fn new(stable_rows: u64) -> Self {
        let (latest, recent) = (FileChanges::new(stable_rows), VecDeque::new());
        Self { latest, recent, forgotten: 0, next_id: Cell::new(0) }
    }

    fn deep_copy(&self) -> Self {
        let (latest, recent) = (self.latest.clone(), self.recent.clone());
        Self { latest, recent, forgotten: self.forgotten, next_id: self.next_id.clone() }
    }

    fn begin(&self) -> ProductTransaction {
        let transaction = Transaction::new(&self.latest);
        ProductTransaction { transaction, commits: self.forgotten + self.recent.len() }
    }

    fn name(&self, sid: u64) -> Option<u64> {
        (!self.latest.is_deleted(Sid(sid))).then_some(sid)
    }

    fn change(&self, transaction: &mut ProductTransaction, kind: Kind, name: u64, value: Value) {
        let (transaction, sid) = (&mut transaction.transaction, Sid(name));
        let insert = |place| {
            let id = InsertId(self.next_id.get());
            self.next_id.set(id.0 + 1);
            Insert::new(id, place, [value; COLUMNS])
        };
        let done = match kind {
            Kind::Patch => transaction.patch(sid, u32::from(PATCHED), value),
            Kind::Delete => transaction.delete(sid),
            Kind::Insert => transaction.insert(insert(Place::Before(sid))),
            Kind::Append => transaction.insert(insert(Place::Tail)),
        };
        done.expect("a row that the transaction sees");
    }

    fn commit(&mut self, transaction: ProductTransaction) -> bool {
        let ProductTransaction { transaction, commits } = transaction;
        let since = self.recent.range(commits - self.forgotten..);
        let Ok(rebased) = transaction.rebased(&self.latest, since) else { return false };
        drop(transaction);
        let (latest, writes) = rebased.into_parts();
        self.latest = latest;
        self.recent.push_back(writes);
        true
    }

    fn forget(&mut self) {
        self.forgotten += self.recent.len();
        self.recent.clear();
    }

    fn tidy(&mut self) -> bool {
        false
    }

    fn rows(transaction: &ProductTransaction) -> u64 {
        transaction.transaction.changes().visible_rows()
    }

    fn rid_of(transaction: &ProductTransaction, sid: u64) -> Option<u64> {
        transaction.transaction.changes().rid_of_sid(Sid(sid)).map(|rid| rid.0)
    }

    fn sid_of(transaction: &ProductTransaction, rid: u64) -> Option<u64> {
        match transaction.transaction.changes().row_at_rid(Rid(rid)) {
            Some(RowId::Stable(sid)) => Some(sid.0),
            _ => None,
        }
    }

    fn merge(
        transaction: &ProductTransaction,
        chunk: Range<u64>,
        column: u16,
        sink: &mut impl Sink<Value>,
    ) {
        let changes = transaction.transaction.changes();
        merge_range(&changes.range(Sid(chunk.start)..Sid(chunk.end)), column, sink);
        if chunk.end == changes.row_count() {
            changes.tail().for_each(|insert| sink.value(&insert.row()[usize::from(column)]));
        }
    }
}

/// Merges the changes of a chunk, which are three sorted streams.
fn merge_range(changes: &RangeChanges<'_, Value>, column: u16, sink: &mut impl Sink<Value>) {
    let Range { start: Sid(mut at), end: Sid(end) } = changes.rows();
    let mut deleted = changes.deleted_runs().peekable();
    let mut patches = changes.patches(u32::from(column)).peekable();
    let mut inserts = changes.inserts().peekable();
    let place = |insert: &&Insert<Value>| match insert.place() {
        Place::Before(sid) => sid.0,
        Place::Tail => u64::MAX,
    };
    loop {
        let insert = inserts.peek().map_or(end, place);
        let patch = patches.peek().map_or(end, |(sid, _)| sid.0);
        let run = deleted.peek().map_or(end, |run| run.start.0);
        let next = insert.min(patch).min(run);
        if at < next {
            sink.rows(at..next);
            at = next;
        }
        if at == end && insert == end {
            return;
        }
        if insert <= at {
            // Also those that stand before a row in the midst of a run of deleted ones.
            inserts.next().into_iter().for_each(|one| sink.value(&one.row()[usize::from(column)]));
        } else if patch == at {
            patches.next().into_iter().for_each(|(_, value)| sink.value(value));
            at += 1;
        } else {
            deleted.next().into_iter().for_each(|run| at = run.end.0);
        }
    }
}
