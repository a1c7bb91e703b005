//! The state machine: commands and events in, decisions out.
//!
//! Commands, events, deliveries and loads have a file each below this one; all that they do to the state goes through
//! the transitions of [`State`].

mod commands;
mod delivering;
mod events;
mod loading;
mod sparse;
mod tables;

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::audit::{Discrepancy, audit};
use crate::ids::{ChunkIndex, GroupIndex, PageId, ScanId, TableId, Time};
use crate::pages::Place;
use crate::policy::{EvictionRequest, Policy};
use crate::scan::{PriorityClass, Scan, ScanReport};
use crate::set::IndexSet;
use crate::state::State;

/// Limits that hold for every policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Bytes that the pool may hold, those being read among them.
    pub pool_bytes: u64,
    /// Loads under way at once from each device: enough to keep it busy, few enough that a scan that has just come is
    /// served next. As many that are urgent may come on top.
    pub loads_in_flight_max: usize,
    /// What one request costs beside moving its bytes, as the bytes that the device moves in that time: latency times
    /// bandwidth. An index selection reads single pages if that costs less than whole chunks [CS04 §4.2].
    #[serde(default)]
    pub request_bytes: u64,
    /// Nanoseconds after which a scan that waits for room is given some, although busy workers may free some soon. If
    /// even that is not enough, others are held back for as long again, so that what comes free adds up.
    pub space_timeout_ns: u64,
    /// Workers at work at once under a policy that schedules processors: as many as the cores can use. A worker that its
    /// query has paused is not at work, see [`ActiveBufferManager::pause_worker`].
    pub active_workers_max: usize,
    /// Nanoseconds after which who waits is served first under a policy that schedules processors. A worker with a chunk
    /// to go on with does so then, beyond the limit if need be, up to twice as many; one that has been at work on a
    /// chunk for as long does not count. A scan that waits for a read is read for, after those that have waited longer.
    pub wait_max_ns: u64,
    /// Nanoseconds that workers are held back before the caller is asked which ones are paused.
    pub pause_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pool_bytes: 1 << 30,
            loads_in_flight_max: 4,
            request_bytes: 256 << 10,
            space_timeout_ns: 500_000_000,
            active_workers_max: usize::MAX,
            wait_max_ns: 10_000_000_000,
            pause_ns: 20_000_000,
        }
    }
}

/// The Active Buffer Manager [CS07 §4] as a pure state machine.
///
/// It reads nothing, holds no data and has no clock. The caller passes commands and events with the time, then calls
/// [`poll_action`](Self::poll_action) until it returns `None`, doing what it says, and arms a timer for
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
/// let spec = ScanSpec { table, groups: vec![GroupIndex(0)], chunks, order: Order::Any, workers: 1, weight: 1, pages: None };
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
///         Action::Evict { .. } | Action::Escalate { .. } => {}
///         Action::Finish { scan, .. } => manager.cancel_scan(now, scan),
///         Action::Fail { .. } => unreachable!(),
///     }
/// }
/// assert_eq!(chunks, 2);
/// ```
///
/// # Determinism
/// The same calls with the same times give the same actions.
///
/// # Safety rules
/// Whatever the policy chooses:
/// - I1 every scan gets every chunk that it needs exactly once;
/// - I2 no page in use or being read is evicted;
/// - I3 the bytes held and being read never exceed the pool;
/// - I4 while a scan waits and no worker is busy, some load is under way or some action comes out;
/// - I5 no scan waits forever: a waiting scan is served before what comes after it, see [`Config::space_timeout_ns`];
/// - I6 a scan that asked for order gets order.
#[derive(Debug)]
pub struct ActiveBufferManager {
    config: Config,
    state: State,
    policy: Box<dyn Policy>,
    actions: VecDeque<Action>,
    /// Running scans by the bytes of the largest chunk that they were registered for: the pool keeps room for it.
    widest: BTreeSet<(u64, ScanId)>,
    /// When a scan that found no room will be given some.
    deadline: Option<Time>,
    /// When workers that could go on, but are held back, are looked at again.
    held_back: Option<Time>,
    /// Whether anything changed since no load could be chosen.
    changed: bool,
    next_table: u32,
    next_scan: u32,
    next_load: u32,
}

impl ActiveBufferManager {
    /// A manager without tables.
    ///
    /// # Panics
    /// If no load may be in flight: nothing could ever be read.
    #[must_use]
    pub fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        assert!(config.loads_in_flight_max > 0, "I4: at least one load may be in flight");
        Self {
            config,
            state: State::new(config.pool_bytes, config.wait_max_ns),
            policy,
            actions: VecDeque::new(),
            widest: BTreeSet::new(),
            deadline: None,
            held_back: None,
            changed: false,
            next_table: 0,
            next_scan: 0,
            next_load: 0,
        }
    }

    // Outputs.

    /// The next thing to do, `None` when there is nothing more until the next command or event.
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            self.answer_waiting();
        }
        if self.actions.is_empty() && self.changed {
            self.escalate_loads();
            self.changed = self.start_load();
        }
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.deadline.into_iter().chain(self.held_back).min()
    }

    // Getters.

    /// What is known now.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its limits, as they were when it was made.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }

    /// What a running scan has got so far.
    #[must_use]
    pub fn report(&self, scan: ScanId) -> Option<ScanReport> {
        self.state.scan(scan).map(Scan::report)
    }

    /// How long a running scan is beside others, as far as its policy tells short ones from long ones.
    #[must_use]
    pub fn class_of(&self, scan: ScanId) -> PriorityClass {
        let bounds = self.policy.priority_bounds(&self.state);
        let scan = self.state.scan(scan);
        scan.map_or(PriorityClass::Long, |scan| bounds.class_of(scan.size(), scan.chunks_in_all()))
    }

    /// Recounts all counts from scratch: for tests and simulators, since it walks over every page.
    ///
    /// # Errors
    /// If a count is not what it should be, which is a bug.
    pub fn audit(&self) -> Result<(), Discrepancy> {
        audit(&self.state)
    }

    /// Loads under way.
    #[must_use]
    pub fn loads_in_flight(&self) -> usize {
        self.state.loads.len()
    }

    // Inside.

    fn at(&mut self, now: Time) {
        self.state.now = self.state.now.max(now);
        self.changed = true;
    }

    /// Takes all that a scan needs off it. What its workers use stays until released.
    fn drop_needs(&mut self, scan: ScanId) {
        let needed: Vec<_> = self.state.scans[&scan].needed.iter().collect();
        self.state.unneed(scan, &needed);
    }

    fn choose_victims(&mut self, room: &EvictionRequest<'_>) -> Vec<PageId> {
        let mut changed = std::mem::take(&mut self.state.changed);
        changed.append(&mut self.state.pool.changed);
        changed.into_iter().for_each(|table| self.policy.on_table_changed(table));
        self.policy.choose_victims(&self.state, room)
    }

    fn evict(&mut self, victims: Vec<PageId>) {
        for page in victims {
            self.state.move_page(page, Place::Cold);
            self.policy.on_page_evicted(&self.state, page);
            self.actions.push_back(Action::Evict { page });
        }
    }
}

/// Bytes of the largest of these chunks of a table, counting these column groups.
fn largest_chunk_bytes(
    state: &State,
    table: TableId,
    chunks: impl Iterator<Item = ChunkIndex>,
    groups: &IndexSet<GroupIndex>,
) -> u64 {
    let table = state.table(table);
    let chunk_bytes = |chunk| {
        let pages = groups.iter().flat_map(|group| table.slice(chunk, group));
        pages.map(|&page| state.bytes_of(page)).sum()
    };
    chunks.map(chunk_bytes).max().unwrap_or(0)
}
