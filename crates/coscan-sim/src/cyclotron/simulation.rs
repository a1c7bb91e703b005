//! The nodes in virtual time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coscan_core::Time;
use coscan_ring::{CirculateAction, CirculateMessage, FragmentHeader, NodeId, RingPosition};

use super::machine::{Machine, Task};
use super::outcome::{CyclotronOutcome, CyclotronQuery};
use super::query::Query;
use super::setup::Cyclotron;
use crate::random::Random;

/// Runs the queries of a ring. Everything random follows from the seed.
///
/// # Panics
/// If a node breaks a rule of the protocol, or the ring stands still. These are bugs, not outcomes.
#[must_use]
pub fn run_cyclotron(setup: &Cyclotron, seed: u64) -> CyclotronOutcome {
    let mut random = Random::new(seed);
    let queries = (0..setup.queries.count).map(|_| Query::random(&setup.queries, &mut random));
    let mut run = Run {
        setup,
        now: Time(0),
        agenda: BTreeMap::new(),
        next_event: 0,
        timers: BTreeSet::new(),
        timer_of: vec![None; setup.nodes()],
        machines: (0..setup.nodes()).map(|id| Machine::new(id, setup)).collect(),
        queries: queries.collect(),
        outcome: CyclotronOutcome {
            queries: Vec::new(),
            total_ns: 0,
            blocked: None,
            bytes_per_second: Vec::new(),
            hops: 0,
            taken: 0,
            reads: 0,
            messages: 0,
            threshold_max: 0.0,
        },
    };
    run.go();
    run.outcome()
}

/// An event at a node.
#[derive(Clone, Debug)]
enum Event {
    Message {
        to: usize,
        message: CirculateMessage<u32>,
    },
    /// The link has taken a fragment, which is at the successor after the latency.
    Sent {
        from: usize,
        fragment: FragmentHeader<u32>,
    },
    Read {
        node: usize,
    },
    Done {
        node: usize,
        task: Task,
    },
}

struct Run<'a> {
    setup: &'a Cyclotron,
    now: Time,
    agenda: BTreeMap<(Time, u64), Event>,
    next_event: u64,
    /// The times when nodes are to be called, by time and node.
    timers: BTreeSet<(Time, usize)>,
    timer_of: Vec<Option<Time>>,
    machines: Vec<Machine>,
    /// The queries that are not picked yet.
    queries: VecDeque<Query>,
    outcome: CyclotronOutcome,
}

impl Run<'_> {
    fn go(&mut self) {
        let nodes = self.machines.len();
        let place = |node: usize| (RingPosition(node as u128), NodeId(node as u64));
        for node in 0..nodes {
            self.machines[node].ring.set_ring(self.now, (0..nodes).map(place));
            self.machines[node].balance(self.now, self.setup);
        }
        for _ in 0..self.setup.queries.pickers {
            (0..nodes).for_each(|node| _ = self.pick(node));
        }
        (0..nodes).for_each(|node| self.settle(node));
        while self.outcome.queries.len() < self.setup.queries.count
            && self.outcome.blocked.is_none()
        {
            self.step();
        }
    }

    fn step(&mut self) {
        let event = self.agenda.first_key_value().map(|(&(at, _), _)| at);
        let timer = self.timers.first().copied();
        if let Some((at, node)) = timer.filter(|&(at, _)| event.is_none_or(|event| at < event)) {
            self.now = at;
            self.machines[node].ring.handle_timeout(at);
            return self.settle(node);
        }
        let ((at, _), event) = self.agenda.pop_first().expect("a ring never stands still");
        self.now = at;
        match event {
            Event::Message { to, message } => {
                self.machines[to].ring.handle(at, message);
                self.settle(to);
            }
            Event::Sent { from, fragment } => self.sent(from, fragment),
            Event::Read { node } => {
                let fragment = self.machines[node].disk.pop_front().expect("it was read");
                self.start_disk(node);
                self.outcome.reads += 1;
                self.machines[node].ring.read(at, fragment);
                self.settle(node);
            }
            Event::Done { node, task } => {
                if let Some(since) = self.machines[node].done(task) {
                    self.finish(node, since);
                    self.machines[node].adapt_pickers(self.setup);
                    while self.pick(node) {}
                }
                self.settle(node);
            }
        }
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        let at = Time(self.now.0 + after_ns);
        self.agenda.insert((at, self.next_event), event);
        self.next_event += 1;
    }

    /// Lets a free picker take the oldest query. Returns whether one did.
    fn pick(&mut self, node: usize) -> bool {
        let Some(picker) = self.machines[node].free_picker() else { return false };
        let Some(query) = self.queries.pop_front() else { return false };
        self.machines[node].begin(self.now, picker, query, self.setup);
        true
    }

    fn finish(&mut self, node: usize, since: Time) {
        let response_ns = self.now.since(since);
        self.outcome.queries.push(CyclotronQuery { node, start: since, response_ns });
        self.outcome.total_ns = self.now.0;
    }

    /// Carries out the actions of a node, and what it has room for now.
    fn settle(&mut self, node: usize) {
        loop {
            while let Some(action) = self.machines[node].ring.poll_action() {
                self.act(node, action);
            }
            self.machines[node].balance(self.now, self.setup);
            match self.machines[node].ring.poll_action() {
                Some(action) => self.act(node, action),
                None => break,
            }
        }
        self.start_tasks(node);
        self.start_link(node);
        self.start_link((node + self.machines.len() - 1) % self.machines.len());
        let machine = &self.machines[node];
        if machine.is_blocked(self.setup) {
            self.outcome.blocked = Some(node);
        }
        let threshold = machine.ring.status().threshold;
        self.outcome.threshold_max = self.outcome.threshold_max.max(threshold);
        self.set_timer(node);
    }

    fn set_timer(&mut self, node: usize) {
        let due = self.machines[node].ring.poll_timeout();
        if self.timer_of[node] != due {
            self.timer_of[node].map(|at| self.timers.remove(&(at, node)));
            self.timers.extend(due.map(|at| (at, node)));
            self.timer_of[node] = due;
        }
    }

    fn act(&mut self, node: usize, action: CirculateAction<u32>) {
        let machine = &mut self.machines[node];
        match action {
            CirculateAction::Send { message: CirculateMessage::Fragment(fragment), .. } => {
                machine.outgoing.push_back(fragment);
            }
            CirculateAction::Send { to, message } => {
                self.outcome.messages += 1;
                let message = Event::Message { to: to.0 as usize, message };
                self.schedule(self.setup.latency_ns, message);
            }
            CirculateAction::Read(fragment) => {
                machine.disk.push_back(fragment);
                if machine.disk.len() == 1 {
                    self.start_disk(node);
                }
            }
            CirculateAction::Take(fragment) => {
                self.outcome.taken += 1;
                machine.taken(self.now, fragment, self.setup);
            }
            CirculateAction::Release(fragment) => {
                machine.outgoing.retain(|outgoing| outgoing.fragment != fragment);
            }
            CirculateAction::GiveUp(fragment, why) => {
                panic!("all members are alive, yet {fragment} was given up: {why:?}");
            }
        }
    }

    fn start_disk(&mut self, node: usize) {
        if !self.machines[node].disk.is_empty() {
            self.schedule(self.setup.read_ns(), Event::Read { node });
        }
    }

    fn start_tasks(&mut self, node: usize) {
        let queries = &self.setup.queries;
        while self.machines[node].busy_workers < self.setup.workers {
            let machine = &mut self.machines[node];
            let Some(task) = machine.tasks.pop_front() else { return };
            machine.busy_workers += 1;
            let ns = match task {
                Task::Select { .. } => queries.select_ns,
                Task::Operator { .. } => queries.operator_ns,
            };
            self.schedule(ns, Event::Done { node, task });
        }
    }

    /// Starts the link, which carries one fragment at a time, and only if the successor has a buffer for it.
    fn start_link(&mut self, node: usize) {
        let successor = (node + 1) % self.machines.len();
        let machine = &mut self.machines[node];
        if machine.is_sending || machine.outgoing.is_empty() {
            return;
        }
        machine.sending_since.get_or_insert(self.now);
        if self.machines[successor].ring.reserve() {
            self.machines[successor].balance(self.now, self.setup);
            let machine = &mut self.machines[node];
            let fragment = machine.outgoing.pop_front().expect("there is one");
            machine.is_sending = true;
            self.schedule(self.setup.link_ns(node), Event::Sent { from: node, fragment });
        }
    }

    fn sent(&mut self, from: usize, fragment: FragmentHeader<u32>) {
        let to = (from + 1) % self.machines.len();
        let machine = &mut self.machines[from];
        machine.is_sending = false;
        machine.sent += 1;
        if machine.outgoing.is_empty() {
            let since = machine.sending_since.take().expect("it was sending");
            machine.sending_ns += self.now.since(since);
        }
        self.outcome.hops += 1;
        machine.ring.sent(self.now, NodeId(to as u64), fragment.fragment);
        let message = CirculateMessage::Fragment(fragment);
        self.schedule(self.setup.latency_ns, Event::Message { to, message });
        self.settle(from);
    }

    fn outcome(mut self) -> CyclotronOutcome {
        let bytes = self.setup.queries.fragment_bytes as f64;
        let rate = |machine: &Machine| {
            let open = machine.sending_since.map_or(0, |since| self.now.since(since));
            machine.sent as f64 * bytes / ((machine.sending_ns + open) as f64 / 1e9)
        };
        self.outcome.bytes_per_second = self.machines.iter().map(rate).collect();
        self.outcome
    }
}
