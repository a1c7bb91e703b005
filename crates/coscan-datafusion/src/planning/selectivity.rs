//! The thresholds by which SQL plans decide whether a scan is selective, with reasons, and those by which copies of a
//! table are compared.
//!
//! A scan usually reads whole chunks, since others need them too. One that needs little of its chunks reads less, and
//! what it reads is hardly ever shared. Each way to read less has its own test, in the unit in which it saves:
//!
//! | what is known | unit | test | what is read |
//! |---|---|---|---|
//! | a limit and no filter | rows, then bytes | [`is_worth_first_pages`] | the first pages of each column (`first_pages`) |
//! | the page index of the needed chunks | bytes | [`is_worth_direct_scan`] | data pages, by the engine's own scan (`unshared`) |
//! | statistics and Bloom filters of zones | rows | [`is_sparse`] | rows of the zones that remain (`pruning`) |
//!
//! A scan of some rows of its chunks then decides between pages and whole chunks. `coscan-runtime` (`scan.rs`) compares
//! stored bytes: the pages must have at most a quarter of the bytes of the chunks. `coscan-core` (`manager/sparse.rs`)
//! compares bytes and requests: many small requests cost more than one long one [CS04 §4.2].

use coscan_runtime::ScanBytes;

/// Planning looks at zones and page indexes of at most this many chunks, so that it stays short. A scan that needs more
/// chunks is not selective.
const CHUNKS_MAX: usize = 16;

/// A sparse scan needs at most one row in this many of its chunks. If more rows are needed, whole chunks are read,
/// which other scans share.
const SPARSE_DIVISOR: u64 = 4;

/// The engine's own scan reads at most one byte in this many of a shared scan.
const DIRECT_DIVISOR: u64 = 4;

/// The default maximum bytes of a scan that is left to the engine. They are read past the pool, since sharing so few
/// bytes gains nothing.
pub(crate) const DIRECT_BYTES_MAX: u64 = 4 << 20;

/// A limit takes at most one row in this many of the chunks that hold the first rows.
const FIRST_ROWS_DIVISOR: u64 = 8;

/// Chunks with fewer bytes are read whole, and shared, in about the time of their first pages.
const FIRST_CHUNKS_BYTES_MIN: u64 = 1 << 20;

/// Bytes that are in the pool, or read for other scans anyway, are decoded and filtered like all others. Decoding this
/// many bytes costs about as much as reading one.
const SHARED_DIVISOR: u64 = 8;

/// A replica must save at least one byte in this many. If copies differ less, the table itself is read, since scans of
/// one copy share.
const REPLICA_DIVISOR: u64 = 8;

/// A copy whose order saves a sort may cost one byte more for this many bytes.
const ORDER_DIVISOR: u64 = 4;

/// Whether a scan of this many chunks may be selective, so that its zones and page indexes are examined.
pub(crate) fn may_be_selective(chunks: usize) -> bool {
    (1..=CHUNKS_MAX).contains(&chunks)
}

/// Whether only the selected rows are read of chunks that have `chunk_rows` rows in all.
pub(crate) fn is_sparse(selected_rows: u64, chunk_rows: u64) -> bool {
    selected_rows.saturating_mul(SPARSE_DIVISOR) <= chunk_rows
}

/// Whether the engine's own scan reads so much less than a shared one that sharing does not pay.
pub(crate) fn is_worth_direct_scan(
    direct_bytes: u64,
    shared_bytes: u64,
    direct_bytes_max: u64,
) -> bool {
    direct_bytes <= direct_bytes_max && direct_bytes.saturating_mul(DIRECT_DIVISOR) <= shared_bytes
}

/// Whether a limit of `rows` is better served by the first pages of each column than by the chunks that hold its rows,
/// which have `chunk_rows` rows and `chunk_bytes` stored bytes.
pub(crate) fn is_worth_first_pages(
    rows: u64,
    chunk_rows: u64,
    chunk_bytes: impl FnOnce() -> u64,
) -> bool {
    rows.saturating_mul(FIRST_ROWS_DIVISOR) <= chunk_rows && chunk_bytes() >= FIRST_CHUNKS_BYTES_MIN
}

/// The cost of a scan, in bytes to be read.
pub(crate) fn scan_cost(bytes: ScanBytes) -> u64 {
    bytes.unshared + bytes.shared / SHARED_DIVISOR
}

/// Whether a scan of these costs is better served by a replica than by the table itself.
pub(crate) fn is_worth_replica(replica_cost: u64, table_cost: u64) -> bool {
    replica_cost < table_cost && replica_cost <= table_cost - table_cost / REPLICA_DIVISOR
}

/// Whether a copy other than the chosen one may be read for its order.
pub(crate) fn is_worth_order(cost: u64, chosen_cost: u64) -> bool {
    cost <= chosen_cost.saturating_add(chosen_cost / ORDER_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_of_no_chunk_or_of_many_is_not_selective() {
        assert_eq!([0, 1, 16, 17].map(may_be_selective), [false, true, true, false]);
    }

    #[test]
    fn a_replica_saves_an_eighth_and_an_order_is_worth_a_quarter() {
        assert!(is_worth_replica(70, 80) && !is_worth_replica(71, 80));
        assert!(is_worth_replica(0, 1) && !is_worth_replica(0, 0) && !is_worth_replica(1, 1));
        assert!(is_worth_order(100, 80) && !is_worth_order(101, 80) && is_worth_order(0, 0));
        assert!(is_worth_order(u64::MAX, u64::MAX));
        assert_eq!(scan_cost(ScanBytes { unshared: 5, shared: 16 }), 7);
    }

    #[test]
    fn thresholds_are_parts_of_what_the_chunks_have() {
        assert!(is_sparse(25, 100) && !is_sparse(26, 100));
        assert!(!is_sparse(u64::MAX, u64::MAX - 1));
        assert!(is_worth_direct_scan(25, 100, 25));
        assert!(!is_worth_direct_scan(26, 100, 26) && !is_worth_direct_scan(25, 100, 24));
        let bytes = || FIRST_CHUNKS_BYTES_MIN;
        assert!(is_worth_first_pages(10, 80, bytes) && !is_worth_first_pages(10, 79, bytes));
        assert!(!is_worth_first_pages(10, 80, || FIRST_CHUNKS_BYTES_MIN - 1));
    }
}
