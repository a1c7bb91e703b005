//! Memory to decode, made by dropping what is less wanted, or waited for.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::Driver;
use crate::error::ScanError;
use crate::memory::Missing;
use crate::reservation::Reservation;
use crate::waiting::Stage;

/// How often those who wait for memory look whether the pool can give some: nobody tells when it can.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Driver {
    /// Memory for a column that others will take, too. Columns that no more than `wanted_max` scans want make room for it.
    pub(crate) fn try_reserve_to_share(
        &self,
        bytes: u64,
        wanted_max: Option<usize>,
    ) -> Option<Reservation> {
        if self.memory.line.is_closed_to(Stage::Opening) {
            return None;
        }
        loop {
            let wanted_bytes = self.memory.usage().decoded_bytes.saturating_add(bytes);
            let missing = match wanted_bytes.saturating_sub(self.options.decode_bytes) {
                0 => match Reservation::try_new(&self.memory, bytes) {
                    Ok(reservation) => return Some(reservation),
                    Err(missing) if self.drop_unused_metadata(missing) => continue,
                    Err(missing) => missing,
                },
                bytes => Missing { bytes },
            };
            if !wanted_max.is_some_and(|wanted_max| self.make_room(missing, wanted_max)) {
                return None;
            }
        }
    }

    /// Memory for decoding, if there is some and nobody has waited for it for too long; columns that nobody waits for
    /// make room for it.
    pub(crate) fn try_reserve(&self, bytes: u64, stage: Stage) -> Option<Reservation> {
        // Whoever needs nothing passes everybody.
        let may_pass = bytes == 0 || !self.memory.line.is_closed_to(stage);
        if may_pass { self.find_memory(bytes) } else { None }
    }

    fn find_memory(&self, bytes: u64) -> Option<Reservation> {
        loop {
            let missing = match Reservation::try_new(&self.memory, bytes) {
                Ok(reservation) => return Some(reservation),
                Err(missing) => missing,
            };
            if !self.make_room_of_all(missing) {
                return None;
            }
        }
    }

    /// Memory for decoding, as soon as there is some.
    ///
    /// # Errors
    /// [`ScanError::Exhausted`] if queries hold it for too long, or it is more than there can ever be.
    pub(crate) async fn reserve(&self, bytes: u64, stage: Stage) -> Result<Reservation, ScanError> {
        if let Some(reservation) = self.try_reserve(bytes, stage) {
            return Ok(reservation);
        }
        if bytes > self.memory.most_bytes() {
            // Whoever waits in vain lets nobody pass.
            return Err(self.exhausted(bytes));
        }
        let mut place = self.memory.line.enter(stage, bytes);
        self.watch_line();
        // What was given back before it had its place went to nobody.
        self.serve_line();
        let granted = {
            let _runtime = self.runtime().enter();
            tokio::time::timeout(self.options.memory_timeout, &mut place.granted)
        };
        let granted = granted.await;
        drop(place);
        match granted {
            Ok(Ok(reservation)) => Ok(reservation),
            _ => {
                // Those who could not pass may go on.
                self.serve_line();
                Err(self.exhausted(bytes))
            }
        }
    }

    /// Gives memory to those who wait for it, as far as there is some.
    pub(crate) fn serve_line(&self) {
        self.memory.line.serve(|bytes| self.find_memory(bytes));
    }

    /// Looks at the line at intervals as long as somebody waits.
    fn watch_line(&self) {
        if !self.memory.line.begin_watch() {
            return;
        }
        let driver = self.this.clone();
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(LOOK_AGAIN).await;
                let Some(driver) = driver.upgrade() else { return };
                driver.serve_line();
                if driver.memory.line.end_watch() {
                    return;
                }
            }
        });
    }

    /// Waits until memory is freed or it is `end`. `freed` was made before memory was looked for.
    pub(crate) async fn wait(&self, freed: Notified<'_>, end: Instant) {
        let freed = {
            let _runtime = self.runtime().enter();
            tokio::time::timeout_at(end, freed)
        };
        // Either way the caller looks again.
        let _ = freed.await;
    }

    pub(crate) fn exhausted(&self, wanted_bytes: u64) -> ScanError {
        let usage = self.memory.usage();
        ScanError::Exhausted {
            wanted_bytes,
            budget_bytes: self.memory.budget_bytes(),
            held_bytes: usage.decoded_bytes + usage.operator_bytes + usage.footer_bytes,
        }
    }
}
