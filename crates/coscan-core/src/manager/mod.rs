//! The state machine: commands and events in, decisions out.
//!
//! Commands, events, deliveries, loads, memory and the wait for space have a file each below this one. They change the state
//! through the transitions of [`State`] only.

mod commands;
mod config;
mod delivering;
mod escalating;
mod events;
mod loading;
mod memory;
mod registering;
mod space;
mod sparse;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

pub use config::Config;

use crate::action::Action;
use crate::audit::{Discrepancy, audit};
use crate::ids::{PageId, ScanId, SliceId, Time};
use crate::memory::Arbitrator;
use crate::pages::Residency;
use crate::policy::{EvictionRequest, Policy};
use crate::scan::{PriorityClass, Scan, ScanCounts};
use crate::state::State;

/// The Active Buffer Manager [CS07 §4] as a pure state machine.
///
/// It reads nothing, holds no data and has no clock. The caller passes commands and events with the time, then carries
/// out each [`poll_action`](Self::poll_action) until it returns `None`, and arms a timer for
/// [`poll_timeout`](Self::poll_timeout).
///
/// # Example
/// A scan of two chunks of one column, with a "disk" that answers at once:
/// ```
/// use coscan_core::*;
///
/// let mut layout = Layout::builder(1);
/// for _ in 0..2 {
///     let page = layout.add_page(GroupIndex(0), 100);
///     layout.add_chunk(10, vec![vec![page]]);
/// }
/// let mut manager = ActiveBufferManager::new(Config { pool_bytes: 100, ..Config::default() }, PolicyKind::Relevance.build());
/// let (table, _) = manager.register_layout(&layout.build(), DeviceId(0));
/// let chunks = vec![ChunkIndex(0)..ChunkIndex(2)];
/// let spec = ScanSpec { table, groups: vec![GroupIndex(0)], chunks, order: Order::Any, workers: 1, weight: 1, pages: None, computation: None };
/// let now = Time(0);
/// let scan = manager.start_scan(now, &spec).unwrap();
/// manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
/// let mut chunks = 0;
/// while let Some(action) = manager.poll_action() {
///     match action {
///         Action::Load { load, pages, .. } => pages.iter().for_each(|&page| manager.page_loaded(now, load, page)),
///         Action::Deliver { scan, worker, .. } => {
///             chunks += 1;
///             manager.release_chunk(now, scan, worker);
///             manager.request_chunk(now, scan, worker).unwrap();
///         }
///         Action::Evict { .. } | Action::Escalate { .. } | Action::Unneeded { .. } => {}
///         Action::GrantMemory { .. } | Action::NoSpace { .. } => unreachable!(),
///         Action::Finish { scan, .. } => manager.cancel_scan(now, scan),
///         Action::Fail { .. } => unreachable!(),
///     }
/// }
/// assert_eq!(chunks, 2);
/// ```
///
/// # Determinism
/// Equal calls with equal times give equal actions.
///
/// # Safety rules
/// Whatever the policy chooses:
/// - I1 every scan gets every chunk that it needs exactly once;
/// - I2 no page in use or being read is evicted;
/// - I3 the bytes held and being read never exceed the pool;
/// - I4 while a scan waits and no worker is busy, some load is in flight or some action comes out;
/// - I5 no scan waits forever: waiting raises its priority, see [`Config::space_timeout_ns`] and
///   [`Config::wait_max_ns`];
/// - I6 a scan that asked for order gets order;
/// - I7 the pool and the memory handed out beside it never exceed the budget.
#[derive(Debug)]
pub struct ActiveBufferManager {
    config: Config,
    state: State,
    policy: Box<dyn Policy>,
    actions: VecDeque<Action>,
    /// Memory beside the pool, once its limits are set.
    memory: Option<Arbitrator>,
    /// Running scans by the bytes of the largest chunk that they were registered for: the pool can always hold it.
    largest_chunks: BTreeSet<(u64, ScanId)>,
    /// The next phase of a scan that waits for space, see [`space`].
    space_deadline: Option<Time>,
    /// Whether the last decision found no space for a load.
    lacks_space: bool,
    /// When ready workers that are held back from processors are reconsidered; `None` if there are none.
    recheck_held_back: Option<Time>,
    /// The largest number of bytes of victims and the number of bytes looked for, in the decision that is being made:
    /// for loads of scans that do not wait, and of those that do.
    victim_bytes_max: [Option<(u64, u64)>; 2],
    /// Whether anything changed since no load could be chosen.
    changed: bool,
    next_table: u32,
    next_scan: u32,
    next_load: u64,
}

impl ActiveBufferManager {
    /// A manager without tables.
    ///
    /// # Panics
    /// If `config` allows no load in flight: nothing could ever be read.
    #[must_use]
    pub fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        assert!(config.loads_in_flight_max > 0, "I4: at least one load may be in flight");
        Self {
            config,
            state: State::new(config.pool_bytes, config.wait_max_ns),
            policy,
            actions: VecDeque::new(),
            memory: None,
            largest_chunks: BTreeSet::new(),
            space_deadline: None,
            lacks_space: false,
            recheck_held_back: None,
            victim_bytes_max: [None; 2],
            changed: false,
            next_table: 0,
            next_scan: 0,
            next_load: 0,
        }
    }

    // Outputs.

    /// The next action; `None` if there is none until the next command or event.
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            self.answer_waiting();
        }
        // Evictions follow deliveries: what a worker waits for is not evicted for others.
        if self.actions.is_empty() {
            self.meet_requests();
        }
        if self.actions.is_empty() && self.changed {
            self.escalate_loads();
            self.changed = self.start_load();
        }
        self.actions.pop_front().or_else(|| {
            let SliceId { table, chunk, group } = self.state.unneeded_slices.pop_first()?;
            Some(Action::Unneeded { table, chunk, group })
        })
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless a command or event comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.space_deadline.into_iter().chain(self.recheck_held_back).min()
    }

    // Getters.

    /// The state as of the last command or event.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The limits that it was created with.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }

    /// Whether the policy decides which of the ready workers go first, and how many are at work.
    #[must_use]
    pub fn schedules_workers(&self) -> bool {
        self.policy.schedules_workers()
    }

    /// The progress of a running scan.
    #[must_use]
    pub fn report(&self, scan: ScanId) -> Option<ScanCounts> {
        self.state.scan(scan).map(Scan::report)
    }

    /// The priority class of a running scan; [`PriorityClass::Long`] if its policy has no others.
    #[must_use]
    pub fn priority_of(&self, scan: ScanId) -> PriorityClass {
        let bounds = self.policy.priority_bounds(&self.state);
        let scan = self.state.scan(scan);
        scan.map_or(PriorityClass::Long, |scan| {
            bounds.priority_of(scan.size(), scan.chunks_in_all())
        })
    }

    /// Recomputes all counts and indexes from scratch, page by page: for tests and simulators.
    ///
    /// # Errors
    /// If one differs from the one kept, which is a bug.
    pub fn audit(&self) -> Result<(), Discrepancy> {
        audit(&self.state)?;
        self.memory.as_ref().map_or(Ok(()), |memory| memory.audit(self.state.pool_bytes()))
    }

    /// Whether a load waits for space in the pool. Workers that are not about to use their chunks should return them.
    #[must_use]
    pub fn lacks_space(&self) -> bool {
        self.lacks_space
    }

    /// Loads in flight.
    #[must_use]
    pub fn loads_in_flight(&self) -> usize {
        self.state.loads.len()
    }

    // Internals.

    fn at(&mut self, now: Time) {
        self.pass_time(now);
        self.changed = true;
    }

    /// Advances the time, which alone lets no load start.
    fn pass_time(&mut self, now: Time) {
        self.state.now = self.state.now.max(now);
    }

    fn choose_victims(&mut self, request: &EvictionRequest<'_>) -> Vec<PageId> {
        self.report_changed_tables();
        self.policy.choose_victims(&self.state, request)
    }

    /// Tells the policy what has changed since victims were last looked for.
    fn report_changed_tables(&mut self) {
        let mut changed = std::mem::take(&mut self.state.changed);
        changed.append(&mut self.state.pool.changed);
        changed.into_iter().for_each(|table| self.policy.on_table_changed(table));
    }

    fn evict(&mut self, victims: Vec<PageId>) {
        for page in victims {
            self.state.move_page(page, Residency::Cold);
            self.policy.on_page_evicted(&self.state, page);
            self.actions.push_back(Action::Evict { page });
        }
    }
}
