//! Simulated machines: a disk, processors, and the limits of the buffer manager.

use coscan_core::Config;

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The disk that pages are read from.
    pub disk: Disk,
    /// Processor cores. Busy workers share them equally; no worker uses more than one.
    pub cores: u32,
    /// The most bytes that a device reads before it turns to urgent requests; see [`Disk`].
    pub quantum_bytes: u64,
    /// Limits of the buffer manager. Its `pool_bytes` is not used, since the workload has the size of the pool.
    pub config: Config,
}

/// A simulated disk. Loads are served in the order in which they are decided, urgent ones first; pages arrive one by one.
///
/// Pages of a load that lie next to each other make one request. The head of a device stands where its last request
/// ended; a request that continues there needs no seek. A device reads in quanta: urgent requests are served after the
/// quantum in service, then the preempted request is resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disk {
    /// The papers' disk: every load takes the same time, whatever it reads. One is served at a time, in one quantum.
    Perfect {
        /// Nanoseconds of a load. Its pages arrive within that time, in proportion to their bytes.
        ns_per_chunk: u64,
    },
    /// One device with a head.
    SeekTransfer {
        /// Nanoseconds of a seek.
        seek_ns: u64,
        /// Bandwidth in bytes per second.
        bytes_per_second: u64,
    },
    /// Several devices with a head each. The data lies across them in stripes, and a request is served by all devices
    /// that hold part of it at once.
    Raid {
        /// The number of devices.
        devices: u32,
        /// Nanoseconds of a seek.
        seek_ns: u64,
        /// Bandwidth of each device in bytes per second.
        bytes_per_second: u64,
        /// Bytes of a stripe: consecutive bytes on one device.
        stripe_bytes: u64,
    },
    /// An object store: high latency, high bandwidth.
    ObjectStore {
        /// Nanoseconds before the first byte of a request.
        latency_ns: u64,
        /// The most bandwidth of one request, in bytes per second.
        bytes_per_second_per_request: u64,
        /// The bandwidth of all requests, in bytes per second. Requests share it equally.
        bytes_per_second: u64,
        /// The number of requests served at once. Others queue.
        requests_max: u32,
    },
}

impl Machine {
    /// The usual size of a quantum.
    pub const QUANTUM_BYTES: u64 = 1 << 20;

    /// A machine with this many cores and the usual limits, see [`Disk::loads_in_flight_max`]. Under policies that
    /// schedule workers, one worker is at work for each core.
    #[must_use]
    pub fn new(disk: Disk, cores: u32) -> Self {
        let config = Config {
            loads_in_flight_max: disk.loads_in_flight_max(),
            request_cost_bytes: disk.request_cost_bytes(),
            active_workers_max: cores as usize,
            ..Config::default()
        };
        Self { disk, cores, quantum_bytes: Self::QUANTUM_BYTES, config }
    }
}

impl Disk {
    /// The fixed cost of a request in bytes: latency times bandwidth, see [`Config::request_cost_bytes`]. If every load
    /// takes the same time, no number of bytes outweighs a request.
    #[must_use]
    pub fn request_cost_bytes(&self) -> u64 {
        let (ns, bytes_per_second) = match *self {
            Disk::Perfect { .. } => return u64::MAX,
            Disk::SeekTransfer { seek_ns, bytes_per_second } => (seek_ns, bytes_per_second),
            Disk::Raid { devices, seek_ns, bytes_per_second, .. } => {
                (seek_ns, bytes_per_second.saturating_mul(u64::from(devices)))
            }
            Disk::ObjectStore {
                latency_ns,
                bytes_per_second_per_request,
                bytes_per_second,
                ..
            } => (latency_ns, bytes_per_second_per_request.min(bytes_per_second)),
        };
        let bytes = u128::from(ns) * u128::from(bytes_per_second) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Loads that keep this disk busy: two for each device, so that one is ready when another ends. The papers' scans
    /// have the whole array for a chunk at a time [CS07 §5.1], so an array counts as one device. An object store gets
    /// twice as many loads as saturate its bandwidth, since each begins with a latency, but no more than the requests
    /// it serves at once.
    #[must_use]
    pub fn loads_in_flight_max(&self) -> usize {
        match self {
            Disk::Perfect { .. } | Disk::SeekTransfer { .. } | Disk::Raid { .. } => 2,
            Disk::ObjectStore {
                bytes_per_second,
                bytes_per_second_per_request,
                requests_max,
                ..
            } => {
                let passing =
                    bytes_per_second.div_ceil((*bytes_per_second_per_request).max(1)).max(1);
                usize::try_from(passing.saturating_mul(2))
                    .unwrap_or(usize::MAX)
                    .min(*requests_max as usize)
            }
        }
    }
}
