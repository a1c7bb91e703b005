//! The limits of a manager.

use serde::{Deserialize, Serialize};

/// The limits of a manager, whatever its policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Bytes that the pool may hold, including those being read.
    pub pool_bytes: u64,
    /// Loads in flight from each device: enough to keep it busy, few enough that a new scan is served soon. The same
    /// number of urgent loads may be added.
    pub loads_in_flight_max: usize,
    /// The fixed cost of a request in bytes: latency times bandwidth of the device. An index selection reads single
    /// pages if that costs less than whole chunks [CS04 §4.2].
    #[serde(default)]
    pub request_cost_bytes: u64,
    /// Nanoseconds for which a scan waits for busy workers to free space. After that, space is reserved for it: what
    /// comes free is kept until it is enough.
    pub space_timeout_ns: u64,
    /// Workers at work at once under a policy that schedules processors: the number that the cores can use. Paused
    /// workers do not count, see [`ActiveBufferManager::pause_worker`](super::ActiveBufferManager::pause_worker).
    pub active_workers_max: usize,
    /// Nanoseconds of waiting after which a scan is overdue under a policy that schedules processors. An overdue worker
    /// with a ready chunk is handed it before all others, beyond [`Self::active_workers_max`] up to twice that number,
    /// not counting workers that have been busy with one chunk for as long. An overdue scan is read for first; of
    /// several, the one that has waited longest.
    pub wait_max_ns: u64,
    /// Nanoseconds after which held-back workers are reconsidered, since some of those at work may be paused by then.
    pub recheck_interval_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pool_bytes: 1 << 30,
            loads_in_flight_max: 4,
            request_cost_bytes: 256 << 10,
            space_timeout_ns: 500_000_000,
            active_workers_max: usize::MAX,
            wait_max_ns: 10_000_000_000,
            recheck_interval_ns: 20_000_000,
        }
    }
}
