//! What a scan sees of one column: the stable rows, through all layers.

use std::ops::Range;

use super::database::{OwnLayer, Snapshot};
use super::layer::Layer;
use super::node::{Change, Entry};
use super::tree::Cursor;

/// Takes the rows of a column in order.
pub(crate) trait Sink<V> {
    /// Neighbouring stable rows with the values that they have in the file.
    fn rows(&mut self, rows: Range<u64>);

    /// A row with another value.
    fn value(&mut self, value: &V);
}

impl<V: Copy, const N: usize> Snapshot<V, N> {
    /// Passes on the rows of a chunk in a column, with a transaction's own changes. What was inserted before a row is in
    /// the chunk of that row; what stands behind the last row is in a chunk that has the `tail`.
    ///
    /// Rows without changes are passed on in runs, so no layer handles them one by one.
    pub(crate) fn merge(
        &self,
        own: &OwnLayer<V>,
        chunk: Range<u64>,
        has_tail: bool,
        column: u16,
        sink: &mut impl Sink<V>,
    ) {
        let (starts, ends) = (self.bounds(chunk.start), self.bounds(chunk.end));
        let rows = |layer: usize| starts[layer]..ends[layer];
        let own = Merge::new(own, rows(2), has_tail, column, sink);
        let write = Merge::new(&self.write, rows(1), has_tail, column, own);
        let mut read = Merge::new(&self.read, rows(0), has_tail, column, write);
        read.rows(chunk);
        read.end();
        read.above.end();
        read.above.above.end();
    }

    /// A border between chunks in the rows below each layer.
    fn bounds(&self, sid: u64) -> [u64; 3] {
        let rid = self.read.low_rid(sid);
        [sid, rid, self.write.low_rid(rid)]
    }
}

/// One layer of a merge. It takes the rows of the layer below and passes on its own.
struct Merge<'a, V, S, const N: usize> {
    layer: &'a Layer<V, N>,
    cursor: Cursor,
    /// The entries of the cursor's leaf that are left.
    entries: &'a [Entry],
    /// The position of the next row from below.
    position: u64,
    /// Entries from this position on are those of another chunk.
    end: u64,
    column: u16,
    above: S,
}

impl<'a, V: Copy, S: Sink<V>, const N: usize> Merge<'a, V, S, N> {
    fn new(
        layer: &'a Layer<V, N>,
        rows: Range<u64>,
        has_tail: bool,
        column: u16,
        above: S,
    ) -> Self {
        let cursor = layer.first_from(rows.start);
        let entries = layer.tree.rest_of_leaf(&cursor);
        let end = if has_tail { u64::MAX } else { rows.end };
        Self { layer, cursor, entries, position: rows.start, end, column, above }
    }

    /// The next entry, if its position is before an end.
    fn next_before(&mut self, end: u64) -> Option<Entry> {
        if self.entries.is_empty() {
            if !self.layer.tree.to_next_leaf(&mut self.cursor) {
                return None;
            }
            self.entries = self.layer.tree.rest_of_leaf(&self.cursor);
        }
        self.entries.first().copied().filter(|entry| entry.sid < end.min(self.end))
    }

    fn pass(&mut self) {
        self.entries = &self.entries[1..];
    }

    fn insert(&mut self, at: u32) {
        self.above.value(&self.layer.rows.group(at)[usize::from(self.column)]);
    }

    /// Whether an entry replaces or drops the row at the position. If so, the row was passed on as it has become.
    fn replaces(&mut self, entry: Entry) -> bool {
        match entry.change {
            Change::Insert(at) => self.insert(at),
            Change::Delete => return true,
            Change::Modify { column, value } if column == self.column => {
                self.above.value(self.layer.cells.get(value));
                return true;
            }
            Change::Modify { .. } => {}
        }
        false
    }

    /// Goes to the next row, past all entries of this one.
    fn advance(&mut self) {
        self.position += 1;
        while self.next_before(self.position).is_some() {
            self.pass();
        }
    }

    /// Passes on what stands behind the last row.
    fn end(&mut self) {
        while let Some(entry) = self.next_before(self.end) {
            self.pass();
            if let Change::Insert(at) = entry.change {
                self.insert(at);
            }
        }
    }
}

impl<V: Copy, S: Sink<V>, const N: usize> Sink<V> for Merge<'_, V, S, N> {
    fn rows(&mut self, mut rows: Range<u64>) {
        while !rows.is_empty() {
            let Some(entry) = self.next_before(self.position + (rows.end - rows.start)) else {
                self.position += rows.end - rows.start;
                self.above.rows(rows);
                return;
            };
            let run = rows.start..rows.start + (entry.sid - self.position);
            if !run.is_empty() {
                rows.start = run.end;
                self.position = entry.sid;
                self.above.rows(run);
            }
            self.pass();
            if self.replaces(entry) {
                rows.start += 1;
                self.advance();
            }
        }
    }

    fn value(&mut self, value: &V) {
        while let Some(entry) = self.next_before(self.position + 1) {
            self.pass();
            if self.replaces(entry) {
                self.advance();
                return;
            }
        }
        self.above.value(value);
        self.position += 1;
    }
}

impl<V, S: Sink<V>> Sink<V> for &mut S {
    fn rows(&mut self, rows: Range<u64>) {
        (**self).rows(rows);
    }

    fn value(&mut self, value: &V) {
        (**self).value(value);
    }
}
