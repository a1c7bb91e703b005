//! The columns of a chunk for one worker: decoded whole and shared with other scans, or decoded batch by batch for
//! itself.
//!
//! The pages of the chunk are in use only while columns are opened, which waits for no query: if memory is short, the
//! chunk returns to its scan. Columns decoded batch by batch then charge their stored bytes to decoding, so that a paused
//! query (it may wait for another scan) never keeps the pool from shrinking.

mod memory_needs;
mod sharing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::ArrayRef;
use coscan_core::PriorityClass;
use coscan_storage::table::ColumnDecoder;

use crate::batch::distinct;
use crate::decode_cache::Slice;
use crate::error::ScanError;
use crate::lease::Lease;
use crate::memory::{Charges, Reservation, Stage};
use crate::metrics::add_time;
use crate::scan::Scan;
use memory_needs::MemoryNeeds;
use sharing::{decoder, take_shared};

/// The time for which a worker of a long scan waits for memory to share the columns of a chunk, before it decodes for
/// itself.
const SHARING_TIMEOUT: Duration = Duration::from_millis(50);

/// The outcome of opening a chunk.
pub(crate) enum Opening {
    Opened(ChunkColumns),
    /// The chunk has returned to its scan: opening it takes this much memory, which queries hold now.
    NeedsMemory {
        bytes: u64,
    },
}

/// The columns of a chunk, opened.
pub(crate) struct ChunkColumns {
    /// Distinct columns, and for each field of the batches which of them it is.
    columns: Vec<Column>,
    fields: Vec<usize>,
    /// Memory for the next batch of the columns that are decoded batch by batch.
    batch_bytes: u64,
    /// That memory, if it is reserved already.
    batch: Option<Reservation>,
    charges: Charges,
    /// The stored bytes of those columns.
    _stored: Reservation,
}

enum Column {
    Whole { slice: Slice, next: usize },
    Batches(Box<ColumnDecoder>),
}

impl ChunkColumns {
    /// Opens the columns that a scan reads of a chunk. `memory` is what the worker has waited for.
    pub(crate) async fn open(
        scan: &Scan,
        mut lease: Lease,
        memory: Option<Reservation>,
    ) -> Result<Opening, ScanError> {
        let (distinct, fields) = distinct(scan.columns());
        // A worker that holds memory must not wait for more: with others that do the same it would wait for ever.
        let timeout = match (&memory, scan.priority()) {
            (None, PriorityClass::Long) => SHARING_TIMEOUT,
            _ => Duration::ZERO,
        };
        let slices = take_shared(scan, &mut lease, &distinct, timeout).await?;
        let unshared = distinct.iter().zip(&slices).filter(|(_, slice)| slice.is_none());
        let unshared: Vec<_> = unshared.map(|(&column, _)| column).collect();
        let needs = MemoryNeeds::of(scan, &lease, &unshared);
        let Some(mut stored) = reserve_all(scan, memory, needs.all_bytes()) else {
            // By then none may be shared.
            let bytes = MemoryNeeds::of(scan, &lease, &distinct).all_bytes();
            return Ok(Opening::NeedsMemory { bytes });
        };
        let batch = Some(stored.split_off(needs.batch_bytes));
        let mut columns = Vec::with_capacity(distinct.len());
        for (column, slice) in distinct.into_iter().zip(slices) {
            columns.push(match slice {
                Some(slice) => Column::Whole { slice, next: 0 },
                None => {
                    scan.counters().count_decoded();
                    Column::Batches(Box::new(decoder(scan, &lease, column)?))
                }
            });
        }
        lease.opened();
        let (batch_bytes, charges) = (needs.batch_bytes, Charges::default());
        let opened = Self { columns, fields, batch_bytes, batch, charges, _stored: stored };
        Ok(Opening::Opened(opened))
    }

    /// The arrays of the next batch, one per field; `None` if there is no memory for it now.
    pub(crate) fn next(&mut self, scan: &Scan) -> Result<Option<Vec<ArrayRef>>, ScanError> {
        let batch = self
            .batch
            .take()
            .or_else(|| scan.driver().try_reserve(self.batch_bytes, Stage::Working));
        let Some(mut reservation) = batch else { return Ok(None) };
        let started = Instant::now();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            arrays.push(match column {
                Column::Whole { slice, next } => {
                    *next += 1;
                    Arc::clone(&slice[*next - 1])
                }
                Column::Batches(decoder) => {
                    let array =
                        decoder.next().expect("a decoder gives all rows asked for, or an error")?;
                    reservation.charge(&array, &mut self.charges);
                    array
                }
            });
        }
        if self.batch_bytes > 0 {
            add_time(&scan.counters().decode_ns, started.elapsed());
        }
        Ok(Some(self.fields.iter().map(|&column| Arc::clone(&arrays[column])).collect()))
    }

    /// Memory for the next batch.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// Provides the memory for the next batch.
    pub(crate) fn provide(&mut self, batch: Reservation) {
        self.batch = Some(batch);
    }
}

/// A reservation of `bytes`, part of which may be reserved already; `None` if the rest is not available.
fn reserve_all(scan: &Scan, memory: Option<Reservation>, bytes: u64) -> Option<Reservation> {
    let Some(mut memory) = memory else {
        return scan.driver().try_reserve(bytes, Stage::Opening);
    };
    let missing_bytes = bytes.saturating_sub(memory.left_bytes());
    memory.add(scan.driver().try_reserve(missing_bytes, Stage::Opening)?);
    Some(memory.split_off(bytes))
}
