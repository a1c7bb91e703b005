//! The columns of a chunk for one worker: whole ones that scans share, or batch by batch for itself alone.
//!
//! The pages of the chunk stay in use only while columns are opened here, which waits for no query: if there is no memory
//! for it, the chunk goes back to its scan. What is decoded batch by batch holds its stored bytes on the decoding side of
//! the budget instead, so that a query that does not go on (it may wait for another scan) never keeps the pool from giving
//! room.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::ArrayRef;
use coscan_core::PriorityClass;
use coscan_storage::table::ColumnDecoder;

use crate::decode_cache::{Decoding, Lookup, Slice};
use crate::driver::LOOK_AGAIN;
use crate::error::ScanError;
use crate::lease::Lease;
use crate::metrics::add_time;
use crate::processors::TURN;
use crate::reservation::{Charges, Reservation};
use crate::scan::Scan;
use crate::waiting::Stage;

/// How long a worker of a long scan waits for memory to share the columns of a chunk before it decodes for itself alone.
const SHARING_TIMEOUT: Duration = Duration::from_millis(50);

/// What writers of Parquet make of a page at most, by default.
const PAGE_BYTES: u64 = 1 << 20;

/// Buffers are rounded up.
const PADDING_BYTES: u64 = 128;

/// What became of a chunk that a worker was handed.
pub(crate) enum Opening {
    Opened(ChunkColumns),
    /// It went back to its scan: to open it takes this much memory, which queries hold now.
    NeedsMemory {
        bytes: u64,
    },
}

/// The columns of a chunk, opened.
pub(crate) struct ChunkColumns {
    /// Distinct columns, and for each field of the batches which of them it is.
    columns: Vec<Column>,
    fields: Vec<usize>,
    /// Memory that the next batch of all columns that are decoded batch by batch may need.
    batch_bytes: u64,
    /// That memory, if it is there already.
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
    /// Takes the columns that a scan reads of a chunk, decoded or to be decoded. `memory` is what it has waited for.
    pub(crate) async fn open(
        scan: &Scan,
        mut lease: Lease,
        memory: Option<Reservation>,
    ) -> Result<Opening, ScanError> {
        let (distinct, fields) = distinct(scan.columns());
        // Nobody waits while holding memory that others may wait for: all would wait for ever.
        let timeout = match (&memory, scan.priority()) {
            (None, PriorityClass::Long) => SHARING_TIMEOUT,
            _ => Duration::ZERO,
        };
        let slices = take_shared(scan, &mut lease, &distinct, timeout).await?;
        let needs = Needs::of(scan, &lease, &distinct, &slices);
        let Some(mut stored) = reserve_all(scan, memory, needs.all_bytes()) else {
            let none = vec![None; distinct.len()];
            let bytes = Needs::of(scan, &lease, &distinct, &none).all_bytes();
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

    /// The arrays of the next batch, one a field; `None` if there is no memory for it now.
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

    /// Memory that the next batch may need.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// Gives it the memory for the next batch.
    pub(crate) fn provide(&mut self, batch: Reservation) {
        self.batch = Some(batch);
    }
}

/// The distinct ones of some columns, and for each column which of them it is.
pub(crate) fn distinct(columns: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut distinct = columns.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let fields = columns.iter().map(|column| distinct.binary_search(column));
    let fields = fields.collect::<Result<_, _>>().expect("every column is among them");
    (distinct, fields)
}

/// So much memory, part of which may be there already; `None` if there is no more.
fn reserve_all(scan: &Scan, memory: Option<Reservation>, bytes: u64) -> Option<Reservation> {
    let Some(mut memory) = memory else {
        return scan.driver().try_reserve(bytes, Stage::Opening);
    };
    let missing_bytes = bytes.saturating_sub(memory.left_bytes());
    memory.add(scan.driver().try_reserve(missing_bytes, Stage::Opening)?);
    Some(memory.split_off(bytes))
}

/// Memory that the columns of a chunk need that are decoded batch by batch.
struct Needs {
    stored_bytes: u64,
    batch_bytes: u64,
}

impl Needs {
    fn of(scan: &Scan, lease: &Lease, columns: &[usize], slices: &[Option<Slice>]) -> Self {
        let alone = columns.iter().zip(slices).filter(|(_, slice)| slice.is_none());
        let alone: Vec<_> = alone.map(|(&column, _)| column).collect();
        let batch_bytes = alone.iter().map(|&column| batch_bytes(scan, lease, column)).sum();
        Self { stored_bytes: stored_bytes(scan, lease, &alone), batch_bytes }
    }

    /// Both are taken at once: with the one but not the other nobody could go on.
    fn all_bytes(&self) -> u64 {
        self.stored_bytes.saturating_add(self.batch_bytes)
    }
}

/// The columns of a chunk that are decoded for all who want them.
async fn take_shared(
    scan: &Scan,
    lease: &mut Lease,
    columns: &[usize],
    timeout: Duration,
) -> Result<Vec<Option<Slice>>, ScanError> {
    let until = tokio::time::Instant::now() + timeout;
    let is_whole = scan.selection(lease.chunk).is_none();
    let mut slices = Vec::with_capacity(columns.len());
    let mut turn = Instant::now();
    for &column in columns {
        if turn.elapsed() > TURN {
            // Decoding takes a while: whoever waits for the processor comes between.
            tokio::task::yield_now().await;
            turn = Instant::now();
        }
        let shares = is_whole && lease.shares(column);
        slices.push(if shares { share(scan, lease, column, until).await? } else { None });
        lease.taken(column);
    }
    Ok(slices)
}

/// A column decoded for all who want it, or `None` if nobody else does or memory is short until then.
///
/// From the claim to the end of decoding it waits for nothing: a query that does not go on holds up nobody.
async fn share(
    scan: &Scan,
    lease: &Lease,
    column: usize,
    until: tokio::time::Instant,
) -> Result<Option<Slice>, ScanError> {
    let (driver, key) = (scan.driver(), lease.key(column));
    let mut counts_at = tokio::time::Instant::now();
    loop {
        let freed = driver.memory().freed.notified();
        // Before the look-up: a scan that is handed the chunk meanwhile then counts twice, not never.
        let interested = driver.interested([key])[0];
        let others = match driver.decoded().look_up(key) {
            Lookup::Ready(slice) => {
                scan.counters().count_reused();
                return Ok(Some(slice));
            }
            Lookup::Decoding(ended) => {
                ended.await;
                continue;
            }
            Lookup::Absent { others } => others,
        };
        let wanted = others + interested;
        if wanted == 0 {
            return Ok(None);
        }
        let bytes = whole_bytes(scan, lease, column);
        // To find out what others could give up takes a count of all that there is: not each time that some is freed.
        let now = tokio::time::Instant::now();
        let counts = now >= counts_at;
        if counts {
            counts_at = now + LOOK_AGAIN;
        }
        if let Some(memory) = driver.try_reserve_to_share(bytes, counts.then_some(wanted)) {
            if let Some(decoding) = driver.decoded().begin(key) {
                return decode_whole(scan, lease, column, decoding, memory).map(Some);
            }
        } else if now >= until {
            return Ok(None);
        } else {
            driver.wait(freed, until.min(counts_at)).await;
        }
    }
}

fn decode_whole(
    scan: &Scan,
    lease: &Lease,
    column: usize,
    decoding: Decoding,
    mut memory: Reservation,
) -> Result<Slice, ScanError> {
    let started = Instant::now();
    let slice = decoder(scan, lease, column)?.collect::<Result<Slice, _>>()?;
    let mut charges = Charges::default();
    slice.iter().for_each(|array| memory.charge(array, &mut charges));
    scan.driver().note_decoded(lease.key(column));
    decoding.finish(Arc::clone(&slice), charges.bytes());
    // Some may wait for memory to decode the same.
    scan.driver().memory().freed.notify_waiters();
    add_time(&scan.counters().decode_ns, started.elapsed());
    scan.counters().count_decoded();
    Ok(slice)
}

fn decoder(scan: &Scan, lease: &Lease, column: usize) -> Result<ColumnDecoder, ScanError> {
    let batch_rows = usize::try_from(batch_rows(scan, lease)).unwrap_or(usize::MAX);
    let selection = scan.selection(lease.chunk);
    Ok(scan.table().decode(lease.chunk, column, &|page| lease.page(page), selection, batch_rows)?)
}

/// Stored bytes of the rows wanted of columns.
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

/// The most rows of a batch: decoders allocate for as many, there or not.
fn batch_rows(scan: &Scan, lease: &Lease) -> u64 {
    let batch_rows = scan.driver().options().batch_rows as u64;
    batch_rows.min(scan.rows_wanted(lease.chunk)).max(1)
}

/// Memory that a column of the chunk may need, decoded as a whole.
fn whole_bytes(scan: &Scan, lease: &Lease, column: usize) -> u64 {
    let batch_rows = batch_rows(scan, lease);
    let rows = scan.rows_wanted(lease.chunk).div_ceil(batch_rows) * batch_rows;
    rows_bytes(scan, lease, column, rows)
}

/// Memory that a batch of a column may need.
fn batch_bytes(scan: &Scan, lease: &Lease, column: usize) -> u64 {
    let rows_bytes = rows_bytes(scan, lease, column, batch_rows(scan, lease));
    let is_fixed = scan.table().schema().field(column).data_type().is_primitive();
    // The first batch of strings keeps the page that they lie in, whole.
    let page_bytes = scan.table().decoded_bytes_estimate(lease.chunk, column).min(PAGE_BYTES);
    if is_fixed { rows_bytes } else { rows_bytes + page_bytes }
}

/// Memory for some rows of a column, from what all of the chunk may need.
fn rows_bytes(scan: &Scan, lease: &Lease, column: usize, rows: u64) -> u64 {
    let all = scan.table().layout().rows(lease.chunk);
    let all_rows = (all.end - all.start).max(1);
    let all_bytes = scan.table().decoded_bytes_estimate(lease.chunk, column);
    all_bytes.saturating_mul(rows).div_ceil(all_rows) + PADDING_BYTES
}
