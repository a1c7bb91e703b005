//! Bytes of the budget, by holder.

/// Holders of memory outside of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Decoded,
    Operators,
    Metadata,
}

/// Bytes held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    /// Decoded columns.
    pub(crate) decoded_bytes: u64,
    /// Operators of queries.
    pub(crate) operator_bytes: u64,
    /// Footers and page indexes of open files, and Bloom filters.
    pub(crate) metadata_bytes: u64,
}

impl MemoryUse {
    /// Everything but the pool.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.decoded_bytes + self.operator_bytes + self.metadata_bytes
    }

    pub(super) fn of_mut(&mut self, holder: Holder) -> &mut u64 {
        match holder {
            Holder::Decoded => &mut self.decoded_bytes,
            Holder::Operators => &mut self.operator_bytes,
            Holder::Metadata => &mut self.metadata_bytes,
        }
    }
}
