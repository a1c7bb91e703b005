//! Columns of a chunk decoded whole, once for all scans that need them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_storage::table::ColumnDecoder;

use super::memory_needs::{batch_rows, whole_bytes};
use crate::chunks::decode_cache::{Decoding, Lookup, Slice, SliceKey};
use crate::chunks::lease::{Lease, Revoked};
use crate::cpu::yield_policy::TIME_SLICE;
use crate::driver::Message;
use crate::error::ScanError;
use crate::memory::{Charges, Reservation};
use crate::observe::metrics::add_time;
use crate::scans::handle::ScanHandle;
use crate::scans::parts::Part;

/// The interval at which a worker looks what can be reclaimed to share a column. That takes a pass over all decoded
/// columns.
const RECLAIM_INTERVAL: Duration = Duration::from_millis(10);

/// The reason why a chunk could not be opened.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The chunk was taken back meanwhile.
    Revoked,
    Failed(ScanError),
}

impl From<Revoked> for Unopened {
    fn from(Revoked: Revoked) -> Self {
        Self::Revoked
    }
}

impl From<ScanError> for Unopened {
    fn from(error: ScanError) -> Self {
        Self::Failed(error)
    }
}

/// A column of a part of a chunk that may be decoded once for all scans that need it.
#[derive(Clone, Copy)]
struct Shareable<'a> {
    part: Part<'a>,
    column: usize,
    key: SliceKey,
}

/// Takes the columns of a part of a chunk that other scans need, too, decoded; `None` for the others, and where memory
/// stays short. `slice_started` is when other tasks last got the processor.
pub(super) async fn take_shared(
    scan: &ScanHandle,
    lease: &Lease,
    part: Part<'_>,
    until: tokio::time::Instant,
    slice_started: &mut Instant,
) -> Result<Vec<Option<Slice>>, Unopened> {
    let mut slices = Vec::with_capacity(part.columns().len());
    for &column in part.columns() {
        if slice_started.elapsed() > TIME_SLICE {
            // Decoding takes a while, so other tasks get the processor meanwhile.
            lease.wait(tokio::task::yield_now()).await?;
            *slice_started = Instant::now();
        }
        slices.push(match part.key(column) {
            Some(key) => {
                let slice = share(scan, lease, Shareable { part, column, key }, until).await?;
                lease.taken(key);
                slice
            }
            None => None,
        });
    }
    Ok(slices)
}

/// A column decoded for all scans that need it; `None` if no other does, or memory stays short.
///
/// From the claim to the end of decoding it waits for nothing, so a paused query holds up no other.
async fn share(
    scan: &ScanHandle,
    lease: &Lease,
    wanted: Shareable<'_>,
    until: tokio::time::Instant,
) -> Result<Option<Slice>, Unopened> {
    let (driver, key) = (scan.driver(), wanted.key);
    let mut reclaims_at = tokio::time::Instant::now();
    loop {
        let freed = driver.memory().freed.notified();
        // This precedes the look-up, so a scan that is handed the chunk in between counts twice,
        // instead of never.
        let interested = driver.interested([key])[0];
        let others = match driver.decoded().look_up(key) {
            Lookup::Ready(slice) => {
                scan.counters().count_reused();
                return Ok(Some(slice));
            }
            Lookup::Decoding(ended) => {
                lease.wait(ended).await?;
                continue;
            }
            Lookup::Absent { others } => others,
        };
        let needed_by = others + interested;
        if needed_by == 0 {
            return Ok(None);
        }
        let bytes = whole_bytes(scan, &wanted.part, wanted.column);
        // Finding what can be reclaimed takes a pass over all slices: too much for each time that memory is returned.
        let now = tokio::time::Instant::now();
        let reclaims = now >= reclaims_at;
        if reclaims {
            reclaims_at = now + RECLAIM_INTERVAL;
        }
        if let Some(memory) = driver.try_reserve_to_share(bytes, reclaims.then_some(needed_by)) {
            if let Some(decoding) = driver.decoded().begin(key) {
                let slice = decode_whole(scan, lease, wanted, decoding, memory)?;
                return Ok(Some(slice));
            }
        } else if now >= until || driver.is_closed() {
            return Ok(None);
        } else {
            lease.wait(driver.wait_for_memory(freed, until.min(reclaims_at))).await?;
        }
    }
}

fn decode_whole(
    scan: &ScanHandle,
    lease: &Lease,
    Shareable { part, column, key }: Shareable<'_>,
    decoding: Decoding,
    mut memory: Reservation,
) -> Result<Slice, ScanError> {
    let started = Instant::now();
    let slice = decoder(scan, lease, part, column)?.collect::<Result<Slice, _>>()?;
    let mut charges = Charges::default();
    slice.iter().for_each(|array| memory.charge(array, &mut charges));
    // Core is told before others find the slice, so that it knows of it before it is dropped.
    scan.driver().offer(Message::SliceDecoded(key));
    decoding.finish(Arc::clone(&slice), charges.bytes());
    // Workers that wait for memory to decode it now find it decoded.
    scan.driver().memory().freed.notify_waiters();
    add_time(&scan.counters().decode_ns, started.elapsed());
    scan.counters().count_decoded();
    Ok(slice)
}

pub(super) fn decoder(
    scan: &ScanHandle,
    lease: &Lease,
    part: Part<'_>,
    column: usize,
) -> Result<ColumnDecoder, ScanError> {
    Ok(part.decode(column, |page| lease.page(page), batch_rows(scan, &part))?)
}
