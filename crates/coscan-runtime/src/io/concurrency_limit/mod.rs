//! An adaptive limit on the bytes requested of a device at once.
//!
//! A device answers requests in order of arrival, so requests that urgent ones may overtake have to wait here. No more
//! is sent than keeps the device busy; the rest is queued, and an urgent request goes ahead of the queue.
//!
//! The limit is learned from latencies. While requests take little longer than requests of their size do alone, the
//! device serves them in parallel (as an object store does, or a disk with room in its queue), and the limit grows.
//! When they take longer they queue at the device, and the limit shrinks. A request that fails or is not answered
//! halves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coscan_storage::stores::Device;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::sync::destructor::InDestructor;

/// Bytes per permit of the semaphore.
const UNIT_BYTES: u64 = 1024;

/// The least size that a request counts as, since devices limit requests, too.
const REQUEST_BYTES_MIN: u64 = 64 << 10;

/// The number of size classes whose latencies are learned together: up to [`REQUEST_BYTES_MIN`], and each time twice as
/// much; the last one has all larger sizes.
const SIZE_CLASSES: usize = 16;

/// The number of requests of the largest size that are always admitted: the one that the device serves, and the next.
const REQUESTS_MIN: u64 = 2;

/// The part of its latency alone by which a request may take longer. One request queued at the device keeps it busy, so
/// this need not be much.
const STRETCH_MAX: f64 = 0.5;

/// The most urgent requests at a device beyond its window. They are small, so their latency counts, but they need a
/// bound.
const URGENT_MAX: usize = 64;

/// The most limits that are kept, in use or not.
const LIMITS_MAX: usize = 64;

/// The weight of a new latency in the moving average of latencies alone.
const WEIGHT: f64 = 0.125;

/// The limits of all devices.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    limits: Mutex<BTreeMap<Device, Arc<ConcurrencyLimit>>>,
    floor: u32,
    wait: Duration,
}

impl ConcurrencyLimits {
    /// The limits for requests of at most `request_cost_bytes`. Latencies up to `wait` above those alone do not shrink
    /// a limit.
    pub(crate) fn new(request_cost_bytes: u64, wait: Duration) -> Self {
        let floor =
            units(request_cost_bytes).saturating_mul(u32::try_from(REQUESTS_MIN).unwrap_or(1));
        Self { limits: Mutex::default(), floor, wait }
    }

    /// The limit of a device.
    pub(crate) fn of(&self, device: &Device) -> Arc<ConcurrencyLimit> {
        let mut limits = lock(&self.limits);
        if let Some(limit) = limits.get(device) {
            return Arc::clone(limit);
        }
        if limits.len() >= LIMITS_MAX {
            limits.retain(|_, limit| Arc::strong_count(limit) > 1);
        }
        let limit = Arc::new(ConcurrencyLimit::new(self.floor, self.wait));
        limits.insert(device.clone(), Arc::clone(&limit));
        limit
    }
}

/// The limit of one device.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    /// The units that may still be sent, first come, first served.
    permits: Arc<Semaphore>,
    /// The urgent requests that may still overtake them.
    urgent: Arc<Semaphore>,
    floor: u32,
    wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The units that may be at the device.
    window: u32,
    /// The units that are at the device, those of urgent requests among them.
    sent: u32,
    /// The units to be taken from the window as soon as they return.
    owed: u32,
    /// When a failure last halved the window.
    halved: Option<Instant>,
    /// The average latency in seconds of each class of sizes while no more than the floor is at the device.
    alone: [Option<f64>; SIZE_CLASSES],
}

impl State {
    /// Learns from the latency of a request. Returns the latency of a request of its size alone, if it is known.
    fn learn(&mut self, size_class: usize, took: f64, is_alone: bool) -> Option<f64> {
        let known = &mut self.alone[size_class];
        if is_alone {
            let alone = known.get_or_insert(took);
            *alone += (took - *alone) * WEIGHT;
        }
        *known
    }
}

impl ConcurrencyLimit {
    fn new(floor: u32, wait: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(floor as usize));
        let alone = [None; SIZE_CLASSES];
        let state = Mutex::new(State { window: floor, sent: 0, owed: 0, halved: None, alone });
        Self { permits, urgent: Arc::new(Semaphore::new(URGENT_MAX)), floor, wait, state }
    }

    /// Waits until a request of this size may be sent. When it is or becomes urgent, this is as soon as fewer than
    /// [`URGENT_MAX`] urgent requests are at the device.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        bytes: u64,
        urgent: impl Future<Output = ()>,
    ) -> Admission {
        let units = units(bytes);
        let ordinary = Arc::clone(&self.permits).acquire_many_owned(units.min(self.floor));
        let overtaking = async {
            urgent.await;
            Arc::clone(&self.urgent).acquire_owned().await
        };
        let (permit, _urgent) = tokio::select! {
            biased;
            urgent = overtaking => (None, urgent.ok()),
            permit = ordinary => (Some(permit.expect("the semaphore is never closed")), None),
        };
        let mut state = lock(&self.state);
        state.sent = state.sent.saturating_add(units);
        let (is_alone, size_class) = (state.sent <= self.floor, size_class(bytes));
        let (limit, sent) = (Arc::clone(self), Instant::now());
        Admission { limit, units, permit, _urgent, size_class, is_alone, sent }
    }
}

/// A request at the device, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: Arc<ConcurrencyLimit>,
    units: u32,
    /// The permit; `None` if the request was urgent.
    permit: Option<OwnedSemaphorePermit>,
    _urgent: Option<OwnedSemaphorePermit>,
    size_class: usize,
    /// Whether little else was at the device when it was sent.
    is_alone: bool,
    sent: Instant,
}

impl Admission {
    /// Notes that the request was answered. The limit learns from its latency.
    pub(crate) fn answered(mut self) {
        let took = self.sent.elapsed().as_secs_f64();
        let mut state = lock(&self.limit.state);
        let alone = state.learn(self.size_class, took, self.is_alone);
        let (Some(alone), Some(permit)) = (alone, &mut self.permit) else { return };
        let target = alone + (alone * STRETCH_MAX).max(self.limit.wait.as_secs_f64());
        let error = ((target - took) / target).max(-1.0);
        // The change is at most the units of the request: within its time the window at most
        // doubles or halves.
        let part = if error > 0.0 { (2.0 * error).min(1.0) } else { error / 2.0 };
        let change = (part.abs() * f64::from(self.units)) as u32;
        let is_full = self.limit.permits.available_permits() == 0 && state.owed == 0;
        if error > 0.0 && is_full {
            state.window = state.window.saturating_add(change);
            self.limit.permits.add_permits(change as usize);
        } else if error < 0.0 {
            let change = change.min(state.window - self.limit.floor);
            if let Some(taken) = permit.split(change as usize) {
                taken.forget();
                state.window -= change;
            }
        }
    }
}

impl Admission {
    /// Notes that the request failed, or was not answered in time: half as much is sent from now on. Of requests that
    /// were at the device together, one counts.
    pub(crate) fn failed(self) {
        let mut state = lock(&self.limit.state);
        if state.halved.is_some_and(|halved| self.sent <= halved) {
            return;
        }
        state.halved = Some(Instant::now());
        let change = (state.window / 2).min(state.window - self.limit.floor);
        state.window -= change;
        let taken = self.limit.permits.forget_permits(change as usize);
        state.owed += change - u32::try_from(taken).unwrap_or(change);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let mut state = lock(&self.limit.state);
        state.sent = state.sent.saturating_sub(self.units);
        let owed = state.owed.min(
            self.permit
                .as_ref()
                .map_or(0, |permit| u32::try_from(permit.num_permits()).unwrap_or(u32::MAX)),
        );
        if let Some(taken) = self.permit.as_mut().and_then(|permit| permit.split(owed as usize)) {
            taken.forget();
            state.owed -= owed;
        }
    }
}

/// The permits that a request needs, rounded up.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.max(REQUEST_BYTES_MIN).div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

fn size_class(bytes: u64) -> usize {
    let times = bytes.div_ceil(REQUEST_BYTES_MIN).max(1);
    (times.next_power_of_two().ilog2() as usize).min(SIZE_CLASSES - 1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
