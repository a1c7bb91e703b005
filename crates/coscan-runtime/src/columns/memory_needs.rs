//! Estimates of the memory that opening and decoding columns of a chunk takes, in bytes.

use crate::scan_handle::ScanHandle;
use crate::scan_parts::Part;

/// The largest page that writers of Parquet make by default.
const PAGE_BYTES: u64 = 1 << 20;

/// Buffers are rounded up.
const PADDING_BYTES: u64 = 128;

/// The needs of the columns of a part of a chunk that are decoded batch by batch.
pub(super) struct MemoryNeeds {
    pub(super) stored_bytes: u64,
    /// Of the next batch of all of them.
    pub(super) batch_bytes: u64,
}

impl MemoryNeeds {
    pub(super) fn of(scan: &ScanHandle, part: &Part<'_>, columns: &[usize]) -> Self {
        let batch_bytes = columns.iter().map(|&column| batch_bytes(scan, part, column)).sum();
        Self { stored_bytes: part.stored_bytes(columns), batch_bytes }
    }

    /// What opening the parts of a chunk takes: their pages and the first batch. All is taken at once: one without the
    /// other is of no use.
    pub(super) fn to_open(parts: &[Self]) -> u64 {
        let first = parts.first().map_or(0, |needs| needs.batch_bytes);
        parts.iter().fold(first, |bytes, needs| bytes.saturating_add(needs.stored_bytes))
    }
}

/// Of a column of a part, decoded whole.
pub(super) fn whole_bytes(scan: &ScanHandle, part: &Part<'_>, column: usize) -> u64 {
    let batch_rows = batch_rows(scan, part);
    let rows = part.rows().div_ceil(batch_rows) * batch_rows;
    part.decoded_bytes_of(column, rows) + PADDING_BYTES
}

/// The most rows of a batch. Decoders allocate for as many, however few come.
pub(super) fn batch_rows(scan: &ScanHandle, part: &Part<'_>) -> u64 {
    let batch_rows = scan.driver().options().batch_rows as u64;
    batch_rows.min(part.rows()).max(1)
}

/// Of a batch of a column.
fn batch_bytes(scan: &ScanHandle, part: &Part<'_>, column: usize) -> u64 {
    let rows_bytes = part.decoded_bytes_of(column, batch_rows(scan, part)) + PADDING_BYTES;
    // The first batch of strings keeps the whole page that they lie in.
    let page_bytes = part.decoded_bytes(column).min(PAGE_BYTES);
    if part.is_fixed(column) { rows_bytes } else { rows_bytes + page_bytes }
}
