//! The three layers of positional delta trees of the thesis, for comparison with `coscan-pdt` `[CS11 §2.8, §4.5]`.
//!
//! A layer names rows by the positions that the layer below produces. The read layer has the changes of long ago, the
//! write layer those of recent commits, and each transaction has a layer of its own. Nothing of this is in the product.
//!
//! The thesis describes what layers mean, and leaves their inside to the paper on positional delta trees that it cites
//! (Héman and others, SIGMOD 2010), which is not among our papers. What is known of it is kept: sums of deltas, entries
//! of 16 bytes apart from their values, a copy of the write layer for those who go on to read it. Where there was a
//! choice, the cheaper one was taken: a transaction finds what an earlier one did to its rows by a search, not by a walk
//! over all of it; deleted rows do not keep their sort keys; a conflict is found by row, as in `coscan-pdt`.

mod database;
mod layer;
mod merge;
mod node;
mod slab;
mod tree;

pub(crate) use database::{Layers, OwnLayer, Snapshot};
pub(crate) use merge::Sink;
