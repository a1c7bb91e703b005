//! The columns of the parts of a chunk for one worker: decoded whole and shared with other scans, or decoded batch by
//! batch for the worker alone.
//!
//! The pages of the chunk are in use only while columns are opened, which waits for no query: if memory is short, the
//! chunk returns to its scan. Columns decoded batch by batch then charge their stored bytes to decoding, so that a
//! paused query (it may wait for another scan) never keeps the pool from shrinking.

mod memory_needs;
mod sharing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use coscan_core::{MemoryStage, PriorityClass};
use coscan_storage::table::{ChunkChanges, ColumnDecoder};

use crate::chunks::decode_cache::{Slice, UnsharedUse};
use crate::chunks::lease::Lease;
use crate::driver::Message;
use crate::error::ScanError;
use crate::memory::{Charges, Reservation};
use crate::observe::metrics::add_time;
use crate::scans::handle::ScanHandle;
use memory_needs::{BatchNeeds, MemoryNeeds};
use sharing::{Unopened, decoder, take_shared};

/// The time for which a worker of a long scan waits for memory to share the columns of a chunk, before it decodes for
/// itself.
const SHARING_TIMEOUT: Duration = Duration::from_millis(50);

/// The outcome of opening a chunk.
pub(crate) enum Opening {
    /// The parts of the chunk, in order.
    Opened(VecDeque<PartColumns>),
    /// The chunk has returned to its scan. Opening it takes this much memory, which queries hold now.
    NeedsMemory { bytes: u64 },
    /// The chunk was taken back, because others lacked space while the worker waited. The worker keeps its memory.
    Revoked { memory: Option<Reservation> },
}

/// The columns of a part of a chunk, opened.
pub(crate) struct PartColumns {
    /// The position of its table among those of the scan.
    table: usize,
    /// The distinct columns.
    columns: Vec<Column>,
    rows_left: u64,
    /// The changes of the rows left; `None` if there are none in the part.
    changes: Option<ChunkChanges>,
    /// The most rows of a batch.
    rows_max: u64,
    /// Memory for a batch of the columns that are decoded batch by batch.
    batch_needs: BatchNeeds,
    /// The memory for the next batch, if it is reserved already.
    batch: Option<Reservation>,
    charges: Charges,
    /// The stored bytes of those columns.
    _stored: Reservation,
}

/// One array per field, and their number of rows.
pub(crate) type Rows = (Vec<ArrayRef>, u64);

enum Column {
    Whole {
        slice: Slice,
        next: usize,
    },
    /// `unshared_use` is `None` for columns that cannot be shared.
    Batches {
        decoder: Box<ColumnDecoder>,
        unshared_use: Option<UnsharedUse>,
    },
}

/// Opens the columns that a scan reads of a chunk, in all its parts. `memory` is the memory that the worker has waited
/// for. If it `may_wait`, it may wait for memory to share columns.
pub(crate) async fn open(
    scan: &ScanHandle,
    lease: Lease,
    memory: Option<Reservation>,
    may_wait: bool,
) -> Result<Opening, ScanError> {
    // A worker that holds memory must not wait for more: it would wait for ever for others that do
    // the same.
    let timeout = match (&memory, scan.priority()) {
        (None, PriorityClass::Long) if may_wait => SHARING_TIMEOUT,
        _ => Duration::ZERO,
    };
    let until = tokio::time::Instant::now() + timeout;
    let mut slice_started = Instant::now();
    let mut parts = Vec::new();
    for part in scan.parts().of_chunk(lease.chunk()) {
        match take_shared(scan, &lease, part, until, &mut slice_started).await {
            Ok(slices) => parts.push((part, slices)),
            Err(Unopened::Revoked) => return Ok(Opening::Revoked { memory }),
            Err(Unopened::Failed(error)) => return Err(error),
        }
    }
    let needs: Vec<_> = parts
        .iter()
        .map(|(part, slices)| {
            let unshared = part.columns().iter().zip(slices).filter(|(_, slice)| slice.is_none());
            let unshared: Vec<_> = unshared.map(|(&column, _)| column).collect();
            MemoryNeeds::of(scan, part, &unshared)
        })
        .collect();
    let Some(mut stored) = reserve_all(scan, memory, MemoryNeeds::to_open(&needs)) else {
        // By the time that there is enough memory, no column may be shared.
        let needs: Vec<_> =
            parts.iter().map(|(part, _)| MemoryNeeds::of(scan, part, part.columns())).collect();
        return Ok(Opening::NeedsMemory { bytes: MemoryNeeds::to_open(&needs) });
    };
    let batch_needs = BatchNeeds::of(&needs);
    let mut batch = Some(stored.split_off(batch_needs.bytes(0)));
    let mut opened = VecDeque::with_capacity(parts.len());
    for ((part, slices), needs) in parts.into_iter().zip(needs) {
        let mut columns = Vec::with_capacity(slices.len());
        for (&column, slice) in part.columns().iter().zip(slices) {
            columns.push(match slice {
                Some(slice) => Column::Whole { slice, next: 0 },
                None => {
                    scan.counters().count_decoded();
                    let key = part.key(column);
                    let unshared_use = key.map(|key| scan.driver().decoded().use_alone(key));
                    let decoder = Box::new(decoder(scan, &lease, part, column)?);
                    Column::Batches { decoder, unshared_use }
                }
            });
        }
        let decodes = columns.iter().any(|column| matches!(column, Column::Batches { .. }));
        opened.push_back(PartColumns {
            table: part.table,
            columns,
            rows_left: part.rows(),
            changes: part.changes(),
            rows_max: scan.driver().options().batch_rows as u64,
            batch_needs: if decodes { batch_needs } else { BatchNeeds::default() },
            batch: batch.take(),
            charges: Charges::default(),
            _stored: stored.split_off(needs.stored_bytes),
        });
    }
    lease.opened();
    Ok(Opening::Opened(opened))
}

impl PartColumns {
    /// The position of its table among those of the scan.
    pub(crate) fn table(&self) -> usize {
        self.table
    }

    /// Whether all rows were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows_left == 0
    }

    /// The arrays of the next batch, one per field, and its number of rows, which is 0 if all are deleted. `None` if there
    /// is no memory for it now.
    pub(crate) fn next(&mut self, scan: &ScanHandle) -> Result<Option<Rows>, ScanError> {
        let reserve = |bytes| scan.driver().try_reserve(bytes, MemoryStage::Working);
        let mut batch = self.batch.take().or_else(|| reserve(self.batch_bytes()));
        if batch.is_none() && self.batch_needs.counts_kept() && self.stop_collecting() {
            batch = reserve(self.batch_bytes());
        }
        let Some(mut reservation) = batch else { return Ok(None) };
        let (started, decodes) = (Instant::now(), reservation.left_bytes() > 0);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            arrays.push(match column {
                Column::Whole { slice, next } => {
                    *next += 1;
                    Arc::clone(&slice[*next - 1])
                }
                Column::Batches { decoder, unshared_use } => {
                    let array =
                        decoder.next().expect("a decoder gives all rows asked for, or an error")?;
                    reservation.charge(&array, &mut self.charges);
                    if let Some(unshared_use) = unshared_use {
                        unshared_use.add(&array);
                    }
                    array
                }
            });
        }
        if decodes {
            add_time(&scan.counters().decode_ns, started.elapsed());
        }
        let read = scan.parts().columns_of(self.table);
        let rows_max = self.rows_left.min(self.rows_max);
        let mut rows = arrays.first().map_or(rows_max, |array| array.len() as u64);
        let left = self.rows_left.checked_sub(rows);
        self.rows_left = left.expect("a decoder gives only the rows asked for");
        if decodes {
            self.collect(scan);
        }
        if let Some(changes) = &mut self.changes {
            (arrays, rows) = changes.merge(&read.columns, arrays, rows).map_err(not_merged)?;
        }
        let fields = read.fields.iter();
        Ok(Some((fields.map(|&column| Arc::clone(&arrays[column])).collect(), rows)))
    }

    /// Keeps what was decoded for later scans as long as there is room, and passes it on at the end.
    fn collect(&mut self, scan: &ScanHandle) {
        let unshared_uses = self.columns.iter_mut().filter_map(|column| match column {
            Column::Batches { unshared_use, .. } => Some(unshared_use),
            Column::Whole { .. } => None,
        });
        for unshared_use in unshared_uses {
            if let Some(collecting) = unshared_use
                && collecting.due().is_some_and(|due| !scan.driver().may_collect(due))
            {
                collecting.stop();
            }
            if self.rows_left == 0
                && let Some(unshared_use) = unshared_use.take()
            {
                // Core is told before others find the slice, so that it knows of it before it is dropped.
                unshared_use.end(|key| scan.driver().offer(Message::SliceDecoded(key)));
            }
        }
    }

    /// Gives up what was collected for later scans. Returns whether there was any.
    fn stop_collecting(&mut self) -> bool {
        let mut has_stopped = false;
        for column in &mut self.columns {
            if let Column::Batches { unshared_use: Some(collecting), .. } = column {
                has_stopped |= collecting.due().is_some();
                collecting.stop();
            }
        }
        has_stopped
    }

    /// The memory for the next batch, in bytes.
    pub(crate) fn batch_bytes(&self) -> u64 {
        // Collected arrays are still referenced, so what decoders keep cannot be told apart from them: nothing is subtracted.
        let counts = self.batch_needs.counts_kept() && !self.collects();
        self.batch_needs.bytes(if counts { self.charges.bytes() } else { 0 })
    }

    /// Whether something is collected for later scans.
    fn collects(&self) -> bool {
        self.columns.iter().any(|column| match column {
            Column::Batches { unshared_use: Some(collecting), .. } => collecting.due().is_some(),
            Column::Batches { .. } | Column::Whole { .. } => false,
        })
    }

    /// Provides the memory for the next batch.
    pub(crate) fn provide(&mut self, batch: Reservation) {
        self.batch = Some(batch);
    }
}

fn not_merged(error: ArrowError) -> ScanError {
    ScanError::ChangesNotMerged { reason: error.to_string() }
}

/// A reservation of `bytes`, part of which may be reserved already; `None` if the rest is not available.
fn reserve_all(scan: &ScanHandle, memory: Option<Reservation>, bytes: u64) -> Option<Reservation> {
    let Some(mut memory) = memory else {
        return scan.driver().try_reserve(bytes, MemoryStage::Opening);
    };
    let missing_bytes = bytes.saturating_sub(memory.left_bytes());
    memory.add(scan.driver().try_reserve(missing_bytes, MemoryStage::Opening)?);
    Some(memory.split_off(bytes))
}
