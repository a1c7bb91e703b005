//! Violations of the safety rules.

use std::fmt;

use coscan_core::Time;

/// A rule that was broken, and when.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{rule}: {what} (policy {policy}{}, step {step}, {} ns)",
    seed.map_or(String::new(), |seed| format!(", fault seed {seed}")),
    at.0
)]
pub struct Violation {
    /// The name of the policy.
    pub policy: String,
    /// The seed of the faults, if there were any.
    pub seed: Option<u64>,
    /// The number of events so far.
    pub step: u64,
    /// The time.
    pub at: Time,
    /// The rule.
    pub rule: Rule,
    /// The expected and the actual behaviour.
    pub what: String,
}

/// A rule. I1 to I7 are the safety rules of [`coscan_core::ActiveBufferManager`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Every scan gets every chunk that it needs exactly once.
    EachChunkOnce,
    /// No page in use or being read is evicted, and a chunk is handed out when its pages are in the pool.
    PagesInUseStay,
    /// The bytes held and being read never exceed the pool.
    PoolLimit,
    /// While a scan waits and no worker is busy, some load is in flight.
    Progress,
    /// No scan waits for ever.
    NoStarving,
    /// A scan that asked for order gets order.
    Order,
    /// The manager's own records agree with its inputs and actions.
    Records,
    /// Memory beside the pool: no more is in use than there is, and no user is refused what could be had.
    Memory,
    /// Actions fit the state: only waiting workers are answered, only cold pages are read, within the limits.
    Protocol,
    /// An assertion of the manager.
    Assertion,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::EachChunkOnce => "I1 (each chunk once)",
            Rule::PagesInUseStay => "I2 (pages in use stay)",
            Rule::PoolLimit => "I3 (pool limit)",
            Rule::Progress => "I4 (progress)",
            Rule::NoStarving => "I5 (no starving)",
            Rule::Order => "I6 (order)",
            Rule::Records => "the manager's records",
            Rule::Memory => "I7 (memory)",
            Rule::Protocol => "the protocol",
            Rule::Assertion => "an assertion",
        })
    }
}

/// A broken rule, without its time and run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

/// Fails with the text of `what` unless `holds`.
pub(crate) fn ensure(holds: bool, rule: Rule, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { rule, what: what() }) }
}
