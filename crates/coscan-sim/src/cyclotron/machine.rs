//! A node: its part of the ring, its buffers, its pickers and workers.

use std::collections::{BTreeMap, VecDeque};

use coscan_core::Time;
use coscan_ring::{Circulate, CirculateConfig, FragmentHeader, NodeId};

use super::memory::Application;
use super::query::{Query, Running};
use super::setup::Cyclotron;

/// A query that a picker has picked.
#[derive(Clone, Debug)]
pub(super) struct Picked {
    pub(super) since: Time,
    pub(super) running: Running,
}

/// The task of a worker, for the query of a picker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// The select on the fragment of a pin.
    Select { picker: usize, pin: usize },
    /// A join or the projection.
    Operator { picker: usize },
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) ring: Circulate<u32>,
    pub(super) application: Application,
    /// Pins that wait for a fragment, by picker and pin.
    pub(super) waiting: BTreeMap<u32, Vec<(usize, usize)>>,
    pub(super) pickers: Vec<Option<Picked>>,
    /// The number of pickers that pick.
    active_pickers: usize,
    pub(super) tasks: VecDeque<Task>,
    pub(super) busy_workers: usize,
    /// Reads, of which the first is under way.
    pub(super) disk: VecDeque<u32>,
    /// Fragments for the link to the successor.
    pub(super) outgoing: VecDeque<FragmentHeader<u32>>,
    pub(super) is_sending: bool,
    /// The time since which the link has had something to carry.
    pub(super) sending_since: Option<Time>,
    pub(super) sending_ns: u64,
    pub(super) sent: u64,
}

impl Machine {
    pub(super) fn new(id: usize, setup: &Cyclotron) -> Self {
        let transit_buffers = setup.buffers - setup.application_buffers_min;
        let config = CirculateConfig { transit_buffers, ..setup.protocol };
        Self {
            ring: Circulate::new(NodeId(id as u64), 0, config),
            application: Application::default(),
            waiting: BTreeMap::new(),
            pickers: vec![None; setup.queries.pickers],
            active_pickers: if setup.queries.adapts_pickers { 1 } else { setup.queries.pickers },
            tasks: VecDeque::new(),
            busy_workers: 0,
            disk: VecDeque::new(),
            outgoing: VecDeque::new(),
            is_sending: false,
            sending_since: None,
            sending_ns: 0,
            sent: 0,
        }
    }

    /// The number of fragments that may be pinned in addition to those that are. A fragment in transit is pinned in its
    /// buffer, which the application keeps when it has been sent on, so transit need not shrink first. [DC §5.2.4]
    pub(super) fn room(&self, setup: &Cyclotron) -> usize {
        let pinned_max = setup.buffers - setup.transit_buffers_min;
        pinned_max.saturating_sub(self.application.pinned())
    }

    /// Divides the buffers: transit gets what is not pinned, and the cache what neither needs.
    pub(super) fn balance(&mut self, now: Time, setup: &Cyclotron) {
        let (used, pinned) = (self.ring.status().transit_buffers, self.application.pinned());
        let transit = setup.buffers - pinned.max(setup.application_buffers_min);
        self.ring.set_transit_buffers(now, transit.max(used));
        let used = self.ring.status().transit_buffers;
        self.application.evict(setup.buffers.saturating_sub(used + pinned));
        self.ring.set_room(self.room(setup));
    }

    /// Changes the number of pickers by one, if they adapt. A node does so when a query has ended.
    pub(super) fn adapt_pickers(&mut self, setup: &Cyclotron) {
        let pins = setup.queries.columns_per_query * setup.queries.partitions;
        let has_memory =
            (self.active_pickers + 1) * pins + setup.transit_buffers_min <= setup.buffers;
        let waits = 2 * self.busy_workers < setup.workers;
        if !setup.queries.adapts_pickers {
        } else if !self.tasks.is_empty() {
            self.active_pickers = (self.active_pickers - 1).max(1);
        } else if waits && has_memory {
            self.active_pickers = (self.active_pickers + 1).min(self.pickers.len());
        }
    }

    /// A free picker, if another one may pick.
    pub(super) fn free_picker(&self) -> Option<usize> {
        let busy = self.pickers.iter().flatten().count();
        let free = self.pickers.iter().position(Option::is_none);
        free.filter(|_| busy < self.active_pickers)
    }

    /// Begins a query, whose first X requests are eligible.
    pub(super) fn begin(&mut self, now: Time, picker: usize, query: Query, setup: &Cyclotron) {
        let first = query.pins.len().min(setup.queries.eligible);
        self.pickers[picker] = Some(Picked { since: now, running: Running::new(query) });
        for pin in 0..first {
            self.request(now, picker, pin, setup);
        }
    }

    /// Makes a request eligible. Its pin executes when the fragment is here, at once if it is.
    fn request(&mut self, now: Time, picker: usize, pin: usize, setup: &Cyclotron) {
        let Some(picked) = &self.pickers[picker] else { return };
        let Some(&wanted) = picked.running.query.pins.get(pin) else { return };
        let fragment = wanted.fragment;
        let is_here = self.application.is_pinned(fragment)
            || self.application.is_cached(fragment) && self.room(setup) > 0;
        if is_here {
            self.execute_pin(now, (picker, pin), setup);
        } else {
            self.waiting.entry(fragment).or_default().push((picker, pin));
            self.ring.request(now, fragment, setup.owner(fragment));
        }
    }

    /// Executes a pin. With it, the X-th request after its own becomes eligible. [DC §5.4.4, Figure 5.8]
    fn execute_pin(&mut self, now: Time, (picker, pin): (usize, usize), setup: &Cyclotron) {
        let picked = self.pickers[picker].as_ref().expect("its query runs");
        self.application.pin(picked.running.query.pins[pin].fragment);
        self.tasks.push_back(Task::Select { picker, pin });
        self.request(now, picker, pin + setup.queries.eligible, setup);
    }

    /// Executes all pins that wait for a fragment that was taken from the ring.
    pub(super) fn taken(&mut self, now: Time, fragment: u32, setup: &Cyclotron) {
        for pin in self.waiting.remove(&fragment).unwrap_or_default() {
            self.execute_pin(now, pin, setup);
        }
    }

    /// Ends the task of a worker. Returns the time since which the query ran, if that was its last task.
    pub(super) fn done(&mut self, task: Task) -> Option<Time> {
        self.busy_workers -= 1;
        let (Task::Select { picker, .. } | Task::Operator { picker }) = task;
        let picked = self.pickers[picker].as_mut().expect("its query runs");
        let running = &mut picked.running;
        match task {
            Task::Select { pin, .. } => {
                running.selected(pin);
                let pin = running.query.pins[pin];
                if !pin.is_kept {
                    self.application.unpin(pin.fragment);
                }
            }
            Task::Operator { .. } => {
                for fragment in running.operated() {
                    self.application.unpin(fragment);
                }
            }
        }
        if running.start_operator() {
            self.tasks.push_front(Task::Operator { picker });
        }
        let since = picked.since;
        let is_over = picked.running.is_over();
        is_over.then(|| {
            self.pickers[picker] = None;
            since
        })
    }

    /// Whether queries here block each other for ever: everything that could be pinned is, and nothing runs that would
    /// unpin.
    pub(super) fn is_blocked(&self, setup: &Cyclotron) -> bool {
        self.pickers.iter().any(Option::is_some)
            && self.tasks.is_empty()
            && self.busy_workers == 0
            && self.application.pinned() + setup.transit_buffers_min >= setup.buffers
    }
}
