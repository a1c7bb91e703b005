//! Estimates of the memory in bytes for opening and decoding columns of a chunk.

use crate::scans::handle::ScanHandle;
use crate::scans::parts::Part;

/// The largest page that writers of Parquet make by default.
const PAGE_BYTES: u64 = 1 << 20;

/// The bytes by which buffers are rounded up.
const PADDING_BYTES: u64 = 128;

/// The needs of the columns of a part of a chunk that are decoded batch by batch.
pub(super) struct MemoryNeeds {
    pub(super) stored_bytes: u64,
    /// The bytes of the next batch of all columns.
    batch_bytes: u64,
    /// The part of `batch_bytes` that is pages that a decoder keeps after the batch is gone.
    page_bytes: u64,
}

/// The needs of a batch of any part of a chunk.
///
/// Workers that have opened a chunk hold its stored pages while they wait for memory for a batch. The one that was
/// granted memory last must be able to continue to the end of its chunk with what it returns, or they would wait for
/// each other. So each asks for enough for a batch of any part, and for the pages that a decoder keeps in addition.
#[derive(Clone, Copy, Default)]
pub(super) struct BatchNeeds {
    batch_bytes: u64,
    kept_bytes: u64,
}

impl MemoryNeeds {
    pub(super) fn of(scan: &ScanHandle, part: &Part<'_>, columns: &[usize]) -> Self {
        let page_bytes = columns.iter().map(|&column| page_bytes(part, column)).sum();
        let rows_bytes = columns.iter().map(|&column| rows_bytes(scan, part, column));
        let batch_bytes = rows_bytes.sum::<u64>() + page_bytes;
        Self { stored_bytes: part.stored_bytes(columns), batch_bytes, page_bytes }
    }

    /// The memory for opening the parts of a chunk: their pages and the first batch. All is taken at once, since one is
    /// of no use without the other.
    pub(super) fn to_open(parts: &[Self]) -> u64 {
        let batch_bytes = BatchNeeds::of(parts).bytes(0);
        parts.iter().fold(batch_bytes, |bytes, needs| bytes.saturating_add(needs.stored_bytes))
    }
}

impl BatchNeeds {
    pub(super) fn of(parts: &[MemoryNeeds]) -> Self {
        let most = |bytes: fn(&MemoryNeeds) -> u64| parts.iter().map(bytes).max().unwrap_or(0);
        let batch_bytes = most(|needs| needs.batch_bytes);
        let kept_bytes = if parts.len() > 1 { most(|needs| needs.page_bytes) } else { 0 };
        Self { batch_bytes, kept_bytes }
    }

    /// Whether the memory that earlier batches left counts.
    pub(super) fn counts_kept(self) -> bool {
        self.kept_bytes > 0
    }

    /// The memory for the next batch, if `kept_bytes` of the batches before it are still referenced.
    pub(super) fn bytes(self, kept_bytes: u64) -> u64 {
        self.batch_bytes + self.kept_bytes.saturating_sub(kept_bytes)
    }
}

/// The memory for a column of a part, decoded whole.
pub(super) fn whole_bytes(scan: &ScanHandle, part: &Part<'_>, column: usize) -> u64 {
    let batch_rows = batch_rows(scan, part);
    let rows = part.rows().div_ceil(batch_rows) * batch_rows;
    part.decoded_bytes_of(column, rows) + PADDING_BYTES
}

/// The most rows of a batch. Decoders allocate for this number, however few come.
pub(super) fn batch_rows(scan: &ScanHandle, part: &Part<'_>) -> u64 {
    let batch_rows = scan.driver().options().batch_rows as u64;
    batch_rows.min(part.rows()).max(1)
}

/// The memory for the rows of a batch of a column.
fn rows_bytes(scan: &ScanHandle, part: &Part<'_>, column: usize) -> u64 {
    part.decoded_bytes_of(column, batch_rows(scan, part)) + PADDING_BYTES
}

/// The memory for the page that values of a column are in. The first batch of strings keeps the whole page.
fn page_bytes(part: &Part<'_>, column: usize) -> u64 {
    if part.is_fixed(column) { 0 } else { part.decoded_bytes(column).min(PAGE_BYTES) }
}
