//! Memory for decoding and metadata: found at once, reclaimed from others, or waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_core::{MemoryStage, MissingMemory, ScanId};
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::handle::Driver;
use crate::error::ScanError;
use crate::memory::{Answer, Reservation};
use crate::tables::metadata_reservation::MetadataReservation;

/// The wait of a worker after which memory is short.
const SHORTAGE_AFTER: Duration = Duration::from_millis(10);

impl Driver {
    /// Takes memory for a column that other scans will take, too. If there is too little, decoded columns that at most
    /// `scans_max` scans need are dropped for it.
    pub(crate) fn try_reserve_to_share(
        self: &Arc<Self>,
        bytes: u64,
        scans_max: Option<usize>,
    ) -> Option<Reservation> {
        if self.waiting_requests.is_closed_to(MemoryStage::Opening, self.now()) {
            return None;
        }
        self.displace_idle(bytes);
        loop {
            let needed_bytes = self.memory.usage().decoded_bytes.saturating_add(bytes);
            let missing = match needed_bytes.saturating_sub(self.options.decode_bytes) {
                0 => match Reservation::try_new(&self.memory, bytes) {
                    Ok(reservation) => return Some(reservation),
                    Err(missing) if self.drop_idle(missing.bytes) => continue,
                    Err(missing) if self.reclaim_metadata(missing) => continue,
                    Err(missing) => missing,
                },
                bytes if bytes <= self.decoded.idle_bytes() && self.drop_idle(bytes) => continue,
                bytes => MissingMemory { bytes },
            };
            if !scans_max.is_some_and(|scans_max| self.reclaim_slices(missing, scans_max)) {
                return None;
            }
        }
    }

    /// Takes memory for decoding, if there is or can be enough, and no request has waited for too long to be overtaken.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        bytes: u64,
        stage: MemoryStage,
    ) -> Option<Reservation> {
        // A request for zero bytes overtakes all.
        let may_overtake = bytes == 0 || !self.waiting_requests.is_closed_to(stage, self.now());
        if may_overtake { self.find_memory(bytes) } else { None }
    }

    fn find_memory(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.displace_idle(bytes);
        self.reclaiming(|| Reservation::try_new(&self.memory, bytes))
    }

    /// Waits for memory for a scan to decode, until there is enough.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if queries hold it for too long, or it is more than there can ever be.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        scan: ScanId,
        bytes: u64,
        stage: MemoryStage,
    ) -> Result<Reservation, ScanError> {
        if let Some(reservation) = self.try_reserve(bytes, stage) {
            return Ok(reservation);
        }
        let mut times_taken_back = 0;
        loop {
            let request = self.request_memory(stage, scan, bytes, times_taken_back)?;
            match request.answered().await {
                Answer::Granted(memory) => return Ok(memory),
                Answer::TakenBack => times_taken_back += 1,
                Answer::TimedOut => return Err(self.exhausted(bytes)),
                Answer::Closed => return Err(self.why_closed()),
            }
        }
    }

    /// Whether a worker has waited for memory for longer than a moment.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.waiting_requests.has_waited(SHORTAGE_AFTER, self.now())
    }

    /// Waits until [`Self::is_memory_short`].
    pub(crate) async fn memory_shortage(&self) {
        let now = || self.now();
        self.waiting_requests.until_waited(SHORTAGE_AFTER, now, self.runtime()).await;
    }

    /// Whether the pump is gone, which serves waiting requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn why_closed(&self) -> ScanError {
        self.lock().check().err().unwrap_or(ScanError::ShutDown)
    }

    /// Waits until memory is returned, at most until `end`. `freed` was made before memory was looked for.
    pub(crate) async fn wait_for_memory(&self, freed: Notified<'_>, end: Instant) {
        // The bell is not rung here: the pump would look for memory, wake this worker, and so on.
        self.memory.credit().mark_wanted();
        let freed = {
            let _runtime = self.runtime().enter();
            tokio::time::timeout_at(end, freed)
        };
        // In either case the caller looks again.
        let _ = freed.await;
    }

    /// Takes memory for metadata that a query cannot do without.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if queries hold it.
    pub(crate) fn reserve_metadata(
        self: &Arc<Self>,
        bytes: u64,
    ) -> Result<MetadataReservation, ScanError> {
        self.displace_idle(bytes);
        self.reclaiming(|| MetadataReservation::try_new(&self.memory, bytes))
            .ok_or_else(|| self.exhausted(bytes))
    }

    /// Tries to take memory, reclaiming what is missing as long as that is possible.
    fn reclaiming<R>(
        self: &Arc<Self>,
        try_take: impl Fn() -> Result<R, MissingMemory>,
    ) -> Option<R> {
        loop {
            let missing = match try_take() {
                Ok(taken) => return Some(taken),
                Err(missing) => missing,
            };
            if !self.reclaim(missing) {
                return None;
            }
        }
    }

    pub(crate) fn exhausted(&self, needed_bytes: u64) -> ScanError {
        ScanError::Exhausted {
            needed_bytes,
            budget_bytes: self.memory.budget_bytes(),
            held_bytes: self.memory.usage().total_bytes(),
        }
    }
}
