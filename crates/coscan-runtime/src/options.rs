//! The settings of a buffer manager.

use std::time::Duration;

use coscan_core::{Config, MemoryLimits, PolicyKind};

use crate::machine::{cores, usable_memory_bytes};

/// The settings of a [`crate::BufferManager`]. All have defaults that suit one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy, which decides what to read next, evict and hand out.
    pub policy: PolicyKind,
    /// The memory budget in bytes: stored pages, decoded columns, metadata of files and tables, and the operators of
    /// queries that draw on the same budget. Default: half of the machine's memory.
    pub memory_bytes: u64,
    /// The most bytes of stored pages. Default: half of `memory_bytes`.
    pub pool_bytes: u64,
    /// The bytes that the pool keeps, however much memory queries need. Default: an eighth of `pool_bytes`.
    pub pool_bytes_min: u64,
    /// The most bytes of decoded columns that are kept for other scans, and for later ones while nothing else needs the
    /// memory. Default: half of `memory_bytes`.
    pub decode_bytes: u64,
    /// The most loads in flight from each store. Default: 4.
    pub loads_in_flight_max: usize,
    /// The most workers at work at once under the policy `relevance`. The others wait until one of them has finished a
    /// chunk. Default: three for each core.
    pub active_workers_max: usize,
    /// The fixed cost of a request to the store in bytes: latency times bandwidth. A few rows are read page by page if
    /// that costs less than reading their chunks, which other scans can share. Default: 200 kB, for a local disk of 2
    /// GB/s with a latency of 100 µs. An object store with a latency of 30 ms and 100 MB/s for one reader: 3 MB.
    pub request_cost_bytes: u64,
    /// The most bytes of one request to a store. Urgent reads overtake smaller ones sooner. Larger ones cost less work,
    /// and less money where requests are billed. Default: 512 KiB; 8 MiB suits an object store.
    pub request_bytes_max: u64,
    /// The time by which a request may take longer than alone because others are at the device, or half as long again
    /// if that is more. An urgent read waits about this long. Default: 2 ms.
    pub queueing_delay_max: Duration,
    /// The time within which a store must answer a request before it is retried. Default: 30 s.
    pub read_timeout: Duration,
    /// The number of attempts of a read that fails with a transient error. A store that asks to slow down is asked for
    /// as long as these attempts may take. Default: 4.
    pub read_attempts: u32,
    /// The seed of the random part of pauses before retries. Default: different in each process, so that processes that
    /// a store refused at the same time do not return at the same time.
    pub jitter_seed: Option<u64>,
    /// The time for which a scan waits for memory that other queries hold before it fails. Default: 10 s.
    pub memory_timeout: Duration,
    /// The time after which pages that no running scan needs are evicted, so that an idle process returns its memory.
    /// It may take up to twice as long. Default: 10 minutes; `Duration::MAX` keeps them.
    pub idle_timeout: Duration,
    /// The most rows of a record batch. Default: 8192.
    pub batch_rows: usize,
}

impl Options {
    /// Settings for a budget of this many bytes, the parts in their usual proportion.
    #[must_use]
    pub fn with_memory_bytes(memory_bytes: u64) -> Self {
        Self {
            policy: PolicyKind::default(),
            memory_bytes,
            pool_bytes: memory_bytes / 2,
            pool_bytes_min: memory_bytes / 16,
            decode_bytes: memory_bytes / 2,
            loads_in_flight_max: 4,
            active_workers_max: 3 * cores(),
            request_cost_bytes: 200_000,
            request_bytes_max: 512 << 10,
            queueing_delay_max: Duration::from_millis(2),
            read_timeout: Duration::from_secs(30),
            read_attempts: 4,
            jitter_seed: None,
            memory_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(600),
            batch_rows: 8192,
        }
    }

    /// Settings for a pool of this many bytes of stored pages, with `decode_bytes` beside it.
    #[must_use]
    pub fn with_pool_bytes(pool_bytes: u64, decode_bytes: u64) -> Self {
        Self {
            pool_bytes,
            pool_bytes_min: pool_bytes / 8,
            decode_bytes,
            ..Self::with_memory_bytes(pool_bytes + decode_bytes)
        }
    }

    /// These settings with another policy.
    #[must_use]
    pub fn policy(self, policy: PolicyKind) -> Self {
        Self { policy, ..self }
    }

    /// The settings of core.
    pub(crate) fn core_config(&self) -> Config {
        Config {
            pool_bytes: self.pool_bytes,
            loads_in_flight_max: self.loads_in_flight_max,
            active_workers_max: self.active_workers_max,
            request_cost_bytes: self.request_cost_bytes,
            ..Config::default()
        }
    }

    /// The limits on memory for core. A request is overdue after half of `memory_timeout`.
    pub(crate) fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits {
            budget_bytes: self.memory_bytes,
            pool_ceiling_bytes: self.pool_bytes,
            pool_floor_bytes: self.pool_bytes_min,
            overtaking_ns: u64::try_from(self.memory_timeout.as_nanos() / 2).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let positive = [
            ("memory_bytes", self.memory_bytes),
            ("pool_bytes", self.pool_bytes),
            ("decode_bytes", self.decode_bytes),
            ("loads_in_flight_max", self.loads_in_flight_max as u64),
            ("active_workers_max", self.active_workers_max as u64),
            ("request_bytes_max", self.request_bytes_max),
            ("read_attempts", u64::from(self.read_attempts)),
            ("idle_timeout", u64::try_from(self.idle_timeout.as_nanos()).unwrap_or(u64::MAX)),
            ("batch_rows", self.batch_rows as u64),
        ];
        if let Some((setting, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(OptionsError::Zero { setting });
        }
        let parts_bytes =
            self.pool_bytes.max(self.pool_bytes_min).saturating_add(self.decode_bytes);
        if parts_bytes > self.memory_bytes {
            return Err(OptionsError::PartsExceedMemory {
                parts_bytes,
                memory_bytes: self.memory_bytes,
            });
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::with_memory_bytes(usable_memory_bytes().unwrap_or(4 << 30) / 2)
    }
}

/// The reason why settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A setting that must be positive is 0.
    #[error("`{setting}` is 0; it must be at least 1")]
    Zero {
        /// The setting.
        setting: &'static str,
    },
    /// The pool and the decoded columns together are larger than the budget.
    #[error(
        "pool_bytes and decode_bytes together are {parts_bytes}, more than memory_bytes, {memory_bytes}; \
         make them smaller or give coscan more memory"
    )]
    PartsExceedMemory {
        /// The bytes of both parts.
        parts_bytes: u64,
        /// The budget.
        memory_bytes: u64,
    },
    /// Reads need threads, but the system does not start one.
    #[error(
        "cannot start a thread to read on: {reason}; end other programs or raise the limit on threads"
    )]
    NoThreads {
        /// The error of the operating system.
        reason: String,
    },
    /// Decisions are recorded on tokio, but there is no runtime here.
    #[error(
        "a manager that is recorded is made within a tokio runtime; call it from async code or enter a runtime first"
    )]
    NoRuntime,
}
