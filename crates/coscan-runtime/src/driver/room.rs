//! Memory to decode, made by dropping what is less wanted, or waited for.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::Driver;
use crate::error::ScanError;
use crate::reservation::Reservation;

/// How often a worker that waits for memory looks whether the pool can give some.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Driver {
    /// Memory for a column that `wanted` other scans will take. Less wanted columns make room for it.
    pub(crate) fn try_reserve_to_share(&self, bytes: u64, wanted: usize) -> Option<Reservation> {
        loop {
            let decoded_bytes = self.memory.usage().decoded_bytes;
            if decoded_bytes.saturating_add(bytes) <= self.options.decode_bytes
                && let Some(reservation) = Reservation::try_new(&self.memory, bytes)
            {
                return Some(reservation);
            }
            if !self.drop_least_wanted(wanted) {
                return None;
            }
        }
    }

    /// Memory for decoding, if there is some; columns that nobody waits for make room for it.
    pub(crate) fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        loop {
            if let Some(reservation) = Reservation::try_new(&self.memory, bytes) {
                return Some(reservation);
            }
            if !self.drop_least_wanted(usize::MAX) {
                return None;
            }
        }
    }

    /// Memory for decoding, as soon as there is some.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if queries hold it for too long.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<Reservation, ScanError> {
        let deadline = Instant::now() + self.options.memory_timeout;
        loop {
            let freed = self.memory.freed.notified();
            if let Some(reservation) = self.try_reserve(bytes) {
                return Ok(reservation);
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(self.exhausted(bytes));
            }
            // The pool may be able to give way later without anybody telling: look again soon.
            self.wait(freed, deadline.min(now + LOOK_AGAIN)).await;
        }
    }

    /// Waits until memory is freed or it is `end`; false if it is. `freed` was made before memory was looked for.
    pub(crate) async fn wait(&self, freed: Notified<'_>, end: Instant) -> bool {
        let freed = {
            let _runtime = self.runtime().enter();
            tokio::time::timeout_at(end, freed)
        };
        freed.await.is_ok()
    }

    pub(super) fn exhausted(&self, wanted_bytes: u64) -> ScanError {
        let usage = self.memory.usage();
        ScanError::Exhausted {
            wanted_bytes,
            budget_bytes: self.memory.budget_bytes(),
            held_bytes: usage.decoded_bytes + usage.operator_bytes,
        }
    }
}
