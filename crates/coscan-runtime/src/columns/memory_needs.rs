//! Estimates of the memory that opening and decoding columns of a chunk takes, in bytes.

use crate::lease::Lease;
use crate::scan::Scan;

/// The largest page that writers of Parquet make by default.
const PAGE_BYTES: u64 = 1 << 20;

/// Buffers are rounded up.
const PADDING_BYTES: u64 = 128;

/// The needs of the columns of a chunk that are decoded batch by batch.
pub(super) struct MemoryNeeds {
    stored_bytes: u64,
    /// Of the next batch of all of them.
    pub(super) batch_bytes: u64,
}

impl MemoryNeeds {
    pub(super) fn of(scan: &Scan, lease: &Lease, columns: &[usize]) -> Self {
        let batch_bytes = columns.iter().map(|&column| batch_bytes(scan, lease, column)).sum();
        Self { stored_bytes: stored_bytes(scan, lease, columns), batch_bytes }
    }

    /// Both are taken at once: one without the other is of no use.
    pub(super) fn all_bytes(&self) -> u64 {
        self.stored_bytes.saturating_add(self.batch_bytes)
    }
}

/// Of a column of the chunk, decoded whole.
pub(super) fn whole_bytes(scan: &Scan, lease: &Lease, column: usize) -> u64 {
    let batch_rows = batch_rows(scan, lease);
    let rows = scan.rows_needed(lease.chunk).div_ceil(batch_rows) * batch_rows;
    rows_bytes(scan, lease, column, rows)
}

/// The most rows of a batch. Decoders allocate for as many, however few come.
pub(super) fn batch_rows(scan: &Scan, lease: &Lease) -> u64 {
    let batch_rows = scan.driver().options().batch_rows as u64;
    batch_rows.min(scan.rows_needed(lease.chunk)).max(1)
}

/// Stored pages of the rows needed of columns.
fn stored_bytes(scan: &Scan, lease: &Lease, columns: &[usize]) -> u64 {
    let table = scan.table();
    let slice = |&column: &usize| {
        let group = table.group_of_column(column);
        match scan.selection(lease.chunk) {
            Some(rows) => table.pages_of_rows(lease.chunk, group, rows),
            None => table.layout().slice(lease.chunk, group).to_vec(),
        }
    };
    let mut pages: Vec<_> = columns.iter().flat_map(slice).collect();
    pages.sort_unstable();
    pages.dedup();
    pages.into_iter().map(|page| table.layout().bytes_of(page)).sum()
}

/// Of a batch of a column.
fn batch_bytes(scan: &Scan, lease: &Lease, column: usize) -> u64 {
    let rows_bytes = rows_bytes(scan, lease, column, batch_rows(scan, lease));
    let is_fixed = scan.table().schema().field(column).data_type().is_primitive();
    // The first batch of strings keeps the whole page that they lie in.
    let page_bytes = scan.table().decoded_bytes_estimate(lease.chunk, column).min(PAGE_BYTES);
    if is_fixed { rows_bytes } else { rows_bytes + page_bytes }
}

/// Of some rows of a column, in proportion to all of the chunk.
fn rows_bytes(scan: &Scan, lease: &Lease, column: usize, rows: u64) -> u64 {
    let all = scan.table().layout().rows(lease.chunk);
    let all_rows = (all.end - all.start).max(1);
    let all_bytes = scan.table().decoded_bytes_estimate(lease.chunk, column);
    all_bytes.saturating_mul(rows).div_ceil(all_rows) + PADDING_BYTES
}
