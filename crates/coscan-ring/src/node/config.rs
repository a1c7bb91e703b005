//! The sharing between nodes, and the limits of a node.

/// The factor by which later signs of life come less often than the first.
const LATER_SIGNS: u64 = 5;

/// The extent of sharing between nodes. Each level includes those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sharing {
    /// Nothing: each node reads all it needs from the store.
    Off,
    /// Pages are read by their owner.
    Reads,
    /// Nodes also announce what their scans will need, and owners keep it.
    Needs,
    /// Owners also announce what they have, and nodes take that first.
    All,
}

/// The rules by which a node chooses whether to read from a store alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choosing {
    /// A rate counts once something was waited for in this many nanoseconds, and `measured_bytes` came.
    pub measured_ns: u64,
    /// See `measured_ns`.
    pub measured_bytes: u64,
    /// The node reads alone while the others give less than this percentage of what the store gives.
    pub others_min_percent: u64,
    /// Nanoseconds for which a choice lasts at least.
    pub lasts_ns: u64,
    /// Nanoseconds after which a node that reads alone asks the others again, to measure.
    pub trial_after_ns: u64,
}

impl Default for Choosing {
    fn default() -> Self {
        Self {
            measured_ns: 1_000_000_000,
            measured_bytes: 8 << 20,
            others_min_percent: 120,
            lasts_ns: 10_000_000_000,
            trial_after_ns: 60_000_000_000,
        }
    }
}

/// The limits of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The extent of sharing with the others.
    pub sharing: Sharing,
    /// The rules by which it may read from a store alone; `None`: it always asks the others.
    pub chooses: Option<Choosing>,
    /// Bytes that may be held for others outside of the pool.
    pub transit_bytes_max: u64,
    /// Nanoseconds for which news of its pages is collected before others are told.
    pub have_delay_ns: u64,
    /// Nanoseconds until an unanswered request gets its first sign of life. Later ones come after five times as long,
    /// which MUST be less than `silence_ns`.
    pub queued_ns: u64,
    /// Nanoseconds without a word after which an owner counts as gone for a request.
    pub silence_ns: u64,
    /// Nanoseconds after which an owner counts as gone for a request although it reports that it is working on it,
    /// since its store may hang where this node's does not.
    pub patience_ns: u64,
}

impl Config {
    /// Nanoseconds between two signs of life after the first.
    pub(super) fn later_ns(&self) -> u64 {
        self.queued_ns.saturating_mul(LATER_SIGNS)
    }

    pub(super) fn check(&self) {
        assert!(self.queued_ns > 0, "there is a pause between signs of life");
        assert!(self.later_ns() < self.silence_ns, "a busy owner is no silent one");
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sharing: Sharing::All,
            chooses: None,
            transit_bytes_max: 32 << 20,
            have_delay_ns: 5_000_000,
            queued_ns: 200_000_000,
            silence_ns: 1_500_000_000,
            patience_ns: 15_000_000_000,
        }
    }
}
