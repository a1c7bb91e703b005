//! The layers of one table, and the transactions over them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::layer::{Conflict, Layer};

/// The most entries of a node of a transaction's layer: most have few changes.
const OWN_NODE_MAX: usize = 8;

/// The changes of one transaction.
pub(crate) type OwnLayer<V> = Layer<V, OWN_NODE_MAX>;

/// The layers that all transactions share, and the layers of recent commits, which later ones are checked against. `N` is
/// the most entries of a node.
pub(crate) struct Layers<V, const N: usize> {
    columns: usize,
    read: Arc<Layer<V, N>>,
    write: Arc<Layer<V, N>>,
    /// Each on the rows that the one before left.
    recent: VecDeque<OwnLayer<V>>,
    /// How many commits are recent no more.
    forgotten: usize,
}

/// What a reader sees: the two lower layers at one moment.
#[derive(Clone)]
pub(crate) struct Snapshot<V, const N: usize> {
    pub(super) read: Arc<Layer<V, N>>,
    pub(super) write: Arc<Layer<V, N>>,
    /// How many commits it has.
    commits: usize,
}

impl<V: Copy, const N: usize> Layers<V, N> {
    pub(crate) fn new(columns: usize) -> Self {
        let (read, write) = (Layer::new(columns).into(), Layer::new(columns).into());
        Self { columns, read, write, recent: VecDeque::new(), forgotten: 0 }
    }

    /// A copy that shares nothing.
    pub(crate) fn deep_copy(&self) -> Self {
        let (read, write) = (Layer::clone(&self.read).into(), Layer::clone(&self.write).into());
        Self { read, write, recent: self.recent.clone(), ..*self }
    }

    pub(crate) fn snapshot(&self) -> Snapshot<V, N> {
        let (read, write) = (Arc::clone(&self.read), Arc::clone(&self.write));
        Snapshot { read, write, commits: self.forgotten + self.recent.len() }
    }

    pub(crate) fn own_layer(&self) -> OwnLayer<V> {
        Layer::new(self.columns)
    }

    /// Commits the changes of a transaction on a snapshot. The write layer is changed in place if nobody else has a
    /// snapshot with it; otherwise it is copied, and they keep the old one.
    pub(crate) fn commit(
        &mut self,
        snapshot: Snapshot<V, N>,
        mut own: OwnLayer<V>,
    ) -> Result<(), Conflict> {
        let since = snapshot.commits - self.forgotten;
        drop(snapshot);
        self.recent.range(since..).try_for_each(|earlier| own.serialize(earlier))?;
        Arc::make_mut(&mut self.write).propagate(&own);
        self.recent.push_back(own);
        Ok(())
    }

    /// Forgets the commits before the oldest snapshot that a transaction still has; all if there is none.
    pub(crate) fn forget(&mut self, oldest: Option<&Snapshot<V, N>>) {
        let end = oldest.map_or(self.recent.len(), |oldest| oldest.commits - self.forgotten);
        self.recent.drain(..end);
        self.forgotten += end;
    }

    /// The number of changes of the write layer.
    pub(crate) fn write_len(&self) -> usize {
        self.write.len()
    }

    /// Puts the changes of the write layer into the read layer. The rows that both produce stay the same, so transactions
    /// that are open can still commit. The read layer is copied if somebody has a snapshot with it.
    pub(crate) fn fold(&mut self) {
        Arc::make_mut(&mut self.read).propagate(&self.write);
        match Arc::get_mut(&mut self.write) {
            Some(write) => write.clear(),
            None => self.write = Layer::new(self.columns).into(),
        }
    }
}

impl<V: Copy, const N: usize> Snapshot<V, N> {
    /// How many rows there are, with a transaction's own changes.
    pub(crate) fn visible_rows(&self, own: &OwnLayer<V>, stable_rows: u64) -> u64 {
        stable_rows.wrapping_add_signed(self.read.delta() + self.write.delta() + own.delta())
    }

    /// The stable row at a position; `None` if the row there was inserted.
    pub(crate) fn sid_of(&self, own: &OwnLayer<V>, rid: u64) -> Option<u64> {
        self.read.sid_of(self.write.sid_of(own.sid_of(rid)?)?)
    }

    /// The position of a stable row; `None` if it was deleted.
    pub(crate) fn rid_of(&self, own: &OwnLayer<V>, sid: u64) -> Option<u64> {
        own.rid_of(self.write.rid_of(self.read.rid_of(sid)?)?)
    }
}
