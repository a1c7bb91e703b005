//! The columns of a chunk for one worker: whole ones that scans share, or batch by batch for itself alone.
//!
//! The pages of the chunk stay in use only while columns are opened here. What is decoded batch by batch holds its
//! stored bytes on the decoding side of the budget instead, so that a query that does not go on (it may wait for another
//! scan) never keeps the pool from giving room.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow_array::ArrayRef;
use coscan_storage::table::ColumnDecoder;

use crate::decode_cache::{Decoding, Lookup, Slice, SliceKey};
use crate::driver::Driver;
use crate::error::ScanError;
use crate::lease::Lease;
use crate::memory::Reservation;
use crate::metrics::add_time;
use crate::scan::Scan;

/// How long a worker that would share waits for memory before it decodes for itself alone.
const PATIENCE_TO_SHARE: Duration = Duration::from_millis(50);

/// How often a worker that waits for memory looks whether the pool can give some.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The columns of a chunk, opened.
pub(crate) struct ChunkColumns {
    /// Distinct columns, and for each field of the batches which of them it is.
    columns: Vec<Column>,
    fields: Vec<usize>,
    /// Memory that the next batch of all columns that are decoded batch by batch may need.
    batch_bytes: u64,
    /// The stored bytes of those columns.
    _stored: Option<Reservation>,
}

enum Column {
    Whole { slice: Slice, next: usize },
    Batches(Box<ColumnDecoder>),
}

impl ChunkColumns {
    /// Takes the columns that a scan reads of a chunk, decoded or to be decoded.
    pub(crate) async fn open(scan: &Scan, mut lease: Lease) -> Result<Self, ScanError> {
        let mut distinct = lease.untaken.clone();
        distinct.sort_unstable();
        let fields = scan.columns().iter().map(|column| distinct.binary_search(column));
        let fields =
            fields.collect::<Result<_, _>>().expect("a lease is for the columns of its scan");
        let mut columns = Vec::with_capacity(distinct.len());
        for &column in &distinct {
            let slice = if scan.selection(lease.chunk).is_none() {
                share(scan, &lease, column).await?
            } else {
                None
            };
            lease.taken(column);
            columns.push(slice);
        }
        drop_unwanted(scan, &lease, &distinct);
        let alone = distinct
            .iter()
            .zip(&columns)
            .filter(|(_, slice)| slice.is_none())
            .map(|(&column, _)| column);
        let alone: Vec<_> = alone.collect();
        let _stored = reserve_stored(scan, &lease, &alone).await?;
        let batch_bytes = alone.iter().map(|&column| batch_bytes(scan, &lease, column)).sum();
        let mut opened = Vec::with_capacity(columns.len());
        for (column, slice) in distinct.into_iter().zip(columns) {
            opened.push(match slice {
                Some(slice) => Column::Whole { slice, next: 0 },
                None => {
                    scan.counters().slices_decoded.fetch_add(1, Ordering::Relaxed);
                    Column::Batches(Box::new(decoder(scan, &lease, column)?))
                }
            });
        }
        Ok(Self { columns: opened, fields, batch_bytes, _stored })
    }

    /// The arrays of the next batch, one a field; `None` if there is no memory for it now.
    pub(crate) fn next(&mut self, scan: &Scan) -> Result<Option<Vec<ArrayRef>>, ScanError> {
        let Some(reservation) = Reservation::try_new(scan.driver().memory(), self.batch_bytes)
        else {
            return Ok(None);
        };
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
                    reservation.charge(&array);
                    array
                }
            });
        }
        if self.batch_bytes > 0 {
            add_time(&scan.counters().decode_ns, started.elapsed());
        }
        Ok(Some(self.fields.iter().map(|&column| Arc::clone(&arrays[column])).collect()))
    }

    /// Memory that the next batch may need.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }
}

fn decoder(scan: &Scan, lease: &Lease, column: usize) -> Result<ColumnDecoder, ScanError> {
    let batch_rows = scan.driver().options().batch_rows;
    let selection = scan.selection(lease.chunk);
    Ok(scan.table().decode(lease.chunk, column, &|page| lease.page(page), selection, batch_rows)?)
}

/// A column decoded for all who want it, or `None` if nobody else does or memory is short.
async fn share(scan: &Scan, lease: &Lease, column: usize) -> Result<Option<Slice>, ScanError> {
    let (driver, key) = (scan.driver(), lease.key(column));
    loop {
        match driver.decoded().look_up(key) {
            Lookup::Ready(slice) => {
                scan.counters().slices_reused.fetch_add(1, Ordering::Relaxed);
                return Ok(Some(slice));
            }
            Lookup::Decoding(ended) => {
                let ended = ended.notified();
                // It may have ended before we listened.
                if matches!(driver.decoded().look_up(key), Lookup::Decoding(_)) {
                    ended.await;
                }
            }
            Lookup::Absent { others } => {
                let wanted = others + driver.interested([key])[0];
                if wanted == 0 {
                    return Ok(None);
                }
                let Some(decoding) = driver.decoded().begin(key) else { continue };
                let bytes = scan.table().decoded_bytes_estimate(lease.chunk, column);
                let Some(memory) = driver.reserve_to_share(bytes, wanted).await else {
                    return Ok(None);
                };
                return decode_whole(scan, lease, column, decoding, &memory).map(Some);
            }
        }
    }
}

fn decode_whole(
    scan: &Scan,
    lease: &Lease,
    column: usize,
    decoding: Decoding,
    memory: &Reservation,
) -> Result<Slice, ScanError> {
    let started = Instant::now();
    let slice = decoder(scan, lease, column)?.collect::<Result<Slice, _>>()?;
    slice.iter().for_each(|array| memory.charge(array));
    decoding.finish(Arc::clone(&slice));
    scan.driver().note_decoded(&[lease.key(column)], &[]);
    add_time(&scan.counters().decode_ns, started.elapsed());
    scan.counters().slices_decoded.fetch_add(1, Ordering::Relaxed);
    Ok(slice)
}

/// Drops those of a chunk's decoded columns that nobody else will take.
fn drop_unwanted(scan: &Scan, lease: &Lease, columns: &[usize]) {
    let keys: Vec<_> = columns.iter().map(|&column| lease.key(column)).collect();
    let wanted = scan.driver().interested(keys.iter().copied());
    let unwanted =
        keys.into_iter().zip(wanted).filter(|(_, wanted)| *wanted == 0).map(|(key, _)| key);
    let dropped: Vec<_> =
        unwanted.filter(|&key| scan.driver().decoded().remove_unexpected(key)).collect();
    if !dropped.is_empty() {
        scan.driver().note_decoded(&[], &dropped);
    }
}

/// Memory for the stored bytes of columns that are decoded batch by batch.
async fn reserve_stored(
    scan: &Scan,
    lease: &Lease,
    columns: &[usize],
) -> Result<Option<Reservation>, ScanError> {
    let table = scan.table();
    let mut pages: Vec<_> = columns
        .iter()
        .flat_map(|&column| table.layout().slice(lease.chunk, table.group_of_column(column)))
        .collect();
    pages.sort_unstable();
    pages.dedup();
    let bytes: u64 = pages.into_iter().map(|&page| table.layout().bytes_of(page)).sum();
    if bytes == 0 {
        return Ok(None);
    }
    scan.driver().reserve(bytes).await.map(Some)
}

/// Memory that a batch of a column may need, from what the whole column of the chunk may.
fn batch_bytes(scan: &Scan, lease: &Lease, column: usize) -> u64 {
    let rows = scan.table().layout().rows(lease.chunk);
    let rows = (rows.end - rows.start).max(1);
    let batch_rows = (scan.driver().options().batch_rows as u64).min(rows);
    scan.table()
        .decoded_bytes_estimate(lease.chunk, column)
        .saturating_mul(batch_rows)
        .div_ceil(rows)
}

impl Driver {
    /// Memory for a column that `wanted` other scans will take. Less wanted columns make room for it.
    async fn reserve_to_share(self: &Arc<Self>, bytes: u64, wanted: usize) -> Option<Reservation> {
        let deadline = tokio::time::Instant::now() + PATIENCE_TO_SHARE;
        loop {
            let freed = self.memory().freed.notified();
            if self.memory().usage().decoded_bytes.saturating_add(bytes)
                <= self.options().decode_bytes
                && let Some(reservation) = Reservation::try_new(self.memory(), bytes)
            {
                return Some(reservation);
            }
            if self.drop_least_wanted(wanted) {
                continue;
            }
            tokio::time::timeout_at(deadline, freed).await.ok()?;
        }
    }

    /// Drops the decoded column that fewest scans want, if that is no more than `wanted_max` and nobody waits for it.
    fn drop_least_wanted(self: &Arc<Self>, wanted_max: usize) -> bool {
        let ready: Vec<SliceKey> = self
            .decoded()
            .ready()
            .into_iter()
            .filter(|(_, expected)| *expected == 0)
            .map(|(key, _)| key)
            .collect();
        let wanted = self.interested(ready.iter().copied());
        let least = ready.into_iter().zip(wanted).min_by_key(|(_, wanted)| *wanted);
        let Some((key, _)) = least.filter(|(_, wanted)| *wanted <= wanted_max) else {
            return false;
        };
        let dropped = self.decoded().remove_unexpected(key);
        if dropped {
            self.note_decoded(&[], &[key]);
        }
        dropped
    }

    /// Takes memory for decoding, as soon as there is some; columns that nobody waits for make room for it.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if queries hold it for too long.
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, ScanError> {
        let deadline = tokio::time::Instant::now() + self.options().memory_timeout;
        loop {
            let freed = self.memory().freed.notified();
            if let Some(reservation) = Reservation::try_new(self.memory(), bytes) {
                return Ok(reservation);
            }
            if self.drop_least_wanted(usize::MAX) {
                continue;
            }
            let now = tokio::time::Instant::now();
            if now >= deadline {
                let usage = self.memory().usage();
                return Err(ScanError::Exhausted {
                    wanted_bytes: bytes,
                    budget_bytes: self.memory().budget_bytes(),
                    held_bytes: usage.decoded_bytes + usage.operator_bytes,
                });
            }
            // The pool may be able to give way later without anybody telling: look again soon.
            let _ = tokio::time::timeout_at(deadline.min(now + LOOK_AGAIN), freed).await;
        }
    }
}
