//! The slices of core that are decoded, and the columns by which they are.

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, GroupIndex, TableId};

use crate::chunks::decode_cache::SliceKey;

/// A slice of core: a column group of a chunk of a table.
pub(super) type CoreSlice = (TableId, ChunkIndex, GroupIndex);

/// The slices of core that core was told are decoded, with their columns. A column group may hold several columns, and
/// several tables may list a file.
#[derive(Debug, Default)]
pub(super) struct DecodedSlices {
    columns: BTreeMap<CoreSlice, Vec<SliceKey>>,
    slices: BTreeMap<SliceKey, Vec<CoreSlice>>,
}

impl DecodedSlices {
    /// Adds a column of a slice. Returns true if it is new.
    pub(super) fn add(&mut self, key: SliceKey, slice: CoreSlice) -> bool {
        let slices = self.slices.entry(key).or_default();
        let is_new = !slices.contains(&slice);
        if is_new {
            slices.push(slice);
            self.columns.entry(slice).or_default().push(key);
        }
        is_new
    }

    pub(super) fn remove(&mut self, key: SliceKey) -> Vec<CoreSlice> {
        let slices = self.slices.remove(&key).unwrap_or_default();
        for slice in &slices {
            let columns = self.columns.get_mut(slice).expect("added with its slice");
            columns.retain(|&column| column != key);
            if columns.is_empty() {
                self.columns.remove(slice);
            }
        }
        slices
    }

    pub(super) fn columns_of(&self, slice: CoreSlice) -> Vec<SliceKey> {
        self.columns.get(&slice).cloned().unwrap_or_default()
    }
}
