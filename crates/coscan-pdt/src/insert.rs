//! Inserted rows, and their places.

use std::sync::Arc;

use crate::ids::{InsertId, Place};
use crate::tree::Entry;

/// An inserted row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Insert<V, K = ()> {
    pub(crate) position: Position<K>,
    pub(crate) row: Arc<[V]>,
}

/// The order of inserts: by place, sort key and id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Position<K> {
    pub(crate) place: Place,
    pub(crate) sort_key: K,
    pub(crate) id: InsertId,
}

impl<V> Insert<V> {
    /// A row of a table without an order. Among those of one place, it stands by its id.
    #[must_use]
    pub fn new(id: InsertId, place: Place, row: impl Into<Arc<[V]>>) -> Self {
        Self::sorted(id, place, (), row)
    }
}

impl<V, K> Insert<V, K> {
    /// A row of a table with an order. Among those of one place, it stands by its sort key, then by its id.
    #[must_use]
    pub fn sorted(id: InsertId, place: Place, sort_key: K, row: impl Into<Arc<[V]>>) -> Self {
        Self { position: Position { place, sort_key, id }, row: row.into() }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> InsertId {
        self.position.id
    }

    /// The stable row before which it stands, or the tail.
    #[must_use]
    pub fn place(&self) -> Place {
        self.position.place
    }

    /// Its order among the inserts of one place.
    #[must_use]
    pub fn sort_key(&self) -> &K {
        &self.position.sort_key
    }

    /// Its values, by column.
    #[must_use]
    pub fn row(&self) -> &Arc<[V]> {
        &self.row
    }
}

impl<V: Clone, K: Ord + Clone> Entry for Insert<V, K> {
    type Key = Position<K>;
    type Sum = u64;

    fn key(&self) -> &Position<K> {
        &self.position
    }

    fn sum(&self) -> u64 {
        1
    }
}

/// The position of an insert, found by its id.
#[derive(Clone)]
pub(crate) struct Located<K>(pub(crate) Position<K>);

impl<K: Clone> Entry for Located<K> {
    type Key = InsertId;
    type Sum = u64;

    fn key(&self) -> &InsertId {
        &self.0.id
    }

    fn sum(&self) -> u64 {
        1
    }
}
