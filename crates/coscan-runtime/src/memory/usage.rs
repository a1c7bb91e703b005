//! Bytes of the budget, by user.

/// Users of memory beside the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUser {
    Decoded,
    Operators,
    Metadata,
}

impl MemoryUser {
    pub(crate) const ALL: [Self; 3] = [Self::Decoded, Self::Operators, Self::Metadata];
}

/// Bytes held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    /// Decoded columns.
    pub(crate) decoded_bytes: u64,
    /// Operators of queries.
    pub(crate) operator_bytes: u64,
    /// Footers, page indexes and Bloom filters of open files, and the metadata of registered tables.
    pub(crate) metadata_bytes: u64,
}

impl MemoryUse {
    /// The bytes of all users but the pool.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.decoded_bytes + self.operator_bytes + self.metadata_bytes
    }
}
