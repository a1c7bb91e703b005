//! Several machines that read the same tables of one store and share what they read: see `coscan-ring`.
//!
//! Each machine has a buffer manager, processors and a link to the store of its own; a [`Network`] joins them. The next event
//! is the earliest of all machines, of the network and of the [incidents](Incident).

mod incidents;
mod network;
mod outcome;

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{PolicyKind, Time};
use coscan_ring::{Config, Message, Node, NodeId, Served};

use crate::machine::Machine;
use crate::simulation::{Options, SharedFiles, Simulation};
use crate::violation::{Broken, Rule, Violation, ensure};
use crate::workload::Workload;
use incidents::Happening;
pub use incidents::Incident;
use network::{Event, Links};
pub use network::{Network, Racks};
pub use outcome::ClusterOutcome;

/// Machines that are alike, and the network between them.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The number of machines.
    pub nodes: usize,
    /// The machine that each of them is.
    pub machine: Machine,
    /// The network.
    pub network: Network,
    /// The extent of sharing, and the limits of a node.
    pub config: Config,
    /// The way in which they share files.
    pub files: SharedFiles,
    /// The incidents, with their times. Machines whose first incident is a start do not exist before.
    pub incidents: Vec<(Time, Incident)>,
    /// Nanoseconds until the last machine notices which others it hears. Each takes a time of its own.
    pub notice_ns: u64,
}

/// Runs a workload on a cluster. Streams are dealt to the machines in turn; each machine has a pool of
/// [`Workload::pool_bytes`]. The queries of a machine that crashes end with it.
///
/// # Errors
/// If a manager breaks one of its rules: a bug in the manager, not in the workload.
///
/// # Panics
/// As [`run`](crate::run); if there is no machine, or an incident names one that does not exist.
pub fn run_cluster(
    workload: &Workload,
    cluster: &Cluster,
    policy: PolicyKind,
    options: Options,
) -> Result<ClusterOutcome, Box<Violation>> {
    assert!(cluster.nodes > 0, "a cluster has machines");
    let workloads = dealt(workload, cluster.nodes);
    let mut run = Run {
        now: Time::default(),
        cluster,
        workloads: &workloads,
        policy,
        options,
        machines: (0..cluster.nodes).map(|_| None).collect(),
        starts: vec![0; cluster.nodes],
        crashed: Vec::new(),
        links: Links::new(cluster.network, cluster.nodes),
        happenings: incidents::planned(&cluster.incidents),
        noticed: 0,
        cut_off: BTreeSet::new(),
        is_cut_one_way: false,
        members: vec![BTreeSet::new(); cluster.nodes],
        due: BTreeSet::new(),
        due_of: vec![None; cluster.nodes],
        peer_bytes: 0,
        messages: BTreeMap::new(),
    };
    run.go().map_err(|(machine, broken)| Box::new(run.violation(machine, broken)))?;
    Ok(run.outcome())
}

/// The streams of a workload dealt to machines.
fn dealt(workload: &Workload, nodes: usize) -> Vec<Workload> {
    let of_node = |node| {
        let streams = workload.streams.iter().skip(node).step_by(nodes).cloned();
        Workload { streams: streams.collect(), ..workload.clone() }
    };
    (0..nodes).map(of_node).collect()
}

/// A machine that has broken a rule.
type Failure = (usize, Broken);

/// The most events after the end of the last query, until nothing is left to do for others.
const LAST_STEPS_MAX: usize = 100_000;

struct Run<'a> {
    now: Time,
    cluster: &'a Cluster,
    workloads: &'a [Workload],
    policy: PolicyKind,
    options: Options,
    /// The running machines.
    machines: Vec<Option<Simulation<'a>>>,
    /// The number of times that each has started.
    starts: Vec<u32>,
    crashed: Vec<Simulation<'a>>,
    links: Links,
    /// The events of the machines, by time and order.
    happenings: BTreeMap<(Time, usize), Happening>,
    /// The number of times that a machine was to notice others.
    noticed: usize,
    /// Machines that do not reach the others.
    cut_off: BTreeSet<usize>,
    /// Whether the others reach the machines that are cut off.
    is_cut_one_way: bool,
    /// The machines that each one takes for alive.
    members: Vec<BTreeSet<usize>>,
    /// The machines with something to do, by time.
    due: BTreeSet<(Time, usize)>,
    due_of: Vec<Option<Time>>,
    peer_bytes: u64,
    messages: BTreeMap<&'static str, u64>,
}

impl<'a> Run<'a> {
    fn go(&mut self) -> Result<(), Failure> {
        for machine in incidents::first_there(self.cluster) {
            self.start(Time::default(), machine)?;
        }
        self.notice_all(Time::default())?;
        while let Some(unfinished) = self.unfinished() {
            if !self.step()? {
                let stopped = self.machines[unfinished].as_ref().expect("it runs");
                return Err((unfinished, stopped.all_stands_still()));
            }
        }
        self.finish()
    }

    /// Processes the next event, if there is one.
    fn step(&mut self) -> Result<bool, Failure> {
        let of_all = self.happenings.first_key_value().map(|(&(at, _), _)| at);
        let of_network = self.links.next_at();
        let of_machines = self.due.first().copied();
        let next = [of_all, of_network, of_machines.map(|(at, _)| at)];
        let Some(next) = next.into_iter().flatten().min() else { return Ok(false) };
        self.now = self.now.max(next);
        if of_all == Some(next) {
            let ((at, _), happening) = self.happenings.pop_first().expect("it is due");
            self.happen(at, happening)?;
        } else if of_network == Some(next) {
            let (at, event) = self.links.pop().expect("it is due");
            self.carried(at, event)?;
        } else if let Some((at, machine)) = of_machines {
            self.on(at, machine, Simulation::step)?;
        }
        Ok(true)
    }

    /// Finishes the run after all queries have ended. Once all machines know of all others, and everything in flight
    /// has come, nothing is left.
    fn finish(&mut self) -> Result<(), Failure> {
        self.happenings.clear();
        self.happen(self.now, Happening::Incident(Incident::Heal))?;
        for _ in 0..LAST_STEPS_MAX {
            let serves = |it: &Simulation<'_>| it.left_for_peers().is_some();
            let is_over = self.happenings.is_empty() && self.links.next_at().is_none();
            if is_over && !self.machines.iter().flatten().any(serves) || !self.step()? {
                break;
            }
        }
        let machines = self.machines.iter_mut().enumerate();
        for (index, machine) in machines.filter_map(|(index, it)| Some((index, it.as_mut()?))) {
            machine.finish().map_err(|broken| (index, broken))?;
            let left = machine.left_for_peers().unwrap_or_default();
            let nothing = ensure(left.is_empty(), Rule::Records, || format!("left: {left}"));
            nothing.map_err(|broken| (index, broken))?;
        }
        Ok(())
    }

    /// A machine that has not run all its queries, now or in time to come.
    fn unfinished(&self) -> Option<usize> {
        let starts = self.happenings.values().find_map(Happening::starts);
        let left = |machine: &Option<Simulation<'_>>| {
            machine.as_ref().is_some_and(|machine| machine.queries_left() > 0)
        };
        starts.or_else(|| self.machines.iter().position(left))
    }

    fn start(&mut self, now: Time, machine: usize) -> Result<(), Failure> {
        let Cluster { machine: alike, config, .. } = self.cluster;
        let node = Node::new(NodeId(machine as u64), u64::from(self.starts[machine]), *config);
        self.starts[machine] += 1;
        let workload = &self.workloads[machine];
        let simulation = Simulation::new(workload, alike, self.policy.build(), self.options);
        self.machines[machine] = Some(simulation.with_node(now, node, self.cluster.files));
        self.members[machine] = [machine].into();
        self.on(now, machine, |_| Ok(()))
    }

    /// Changes a machine, if it runs, and passes on the messages that it has sent.
    fn on(
        &mut self,
        now: Time,
        machine: usize,
        what: impl FnOnce(&mut Simulation<'a>) -> Result<(), Broken>,
    ) -> Result<(), Failure> {
        let Some(simulation) = &mut self.machines[machine] else { return Ok(()) };
        what(simulation).map_err(|broken| (machine, broken))?;
        let (held, most) = (simulation.transit_bytes(), self.cluster.config.transit_bytes_max);
        let limit = ensure(held <= most, Rule::Memory, || {
            format!("{held} bytes are held for others outside of the pool, {most} may be")
        });
        limit.map_err(|broken| (machine, broken))?;
        while let Some((to, message)) =
            self.machines[machine].as_mut().and_then(Simulation::poll_message)
        {
            self.send(now, machine, to, message)?;
        }
        let next = self.machines[machine].as_ref().and_then(Simulation::next_at);
        if self.due_of[machine] != next {
            self.due_of[machine].map(|at| self.due.remove(&(at, machine)));
            self.due.extend(next.map(|at| (at, machine)));
            self.due_of[machine] = next;
        }
        Ok(())
    }

    fn send(
        &mut self,
        now: Time,
        machine: usize,
        to: NodeId,
        message: Message,
    ) -> Result<(), Failure> {
        let from = NodeId(machine as u64);
        let is_reached = self.reaches(machine, to.0 as usize);
        match message {
            Message::Pages { get, file, pages } => {
                let layout = &self.workloads[machine].tables[file.0 as usize].layout;
                let served = Served { node: to, get };
                for page in pages {
                    if is_reached {
                        let bytes = layout.bytes_of(page);
                        self.peer_bytes += bytes;
                        self.links.send_page(now, (from, served), (file, page), bytes);
                    } else {
                        self.lost(now, machine, served, page)?;
                    }
                }
            }
            message if is_reached => {
                *self.messages.entry(name(&message)).or_default() += 1;
                self.links.send(now, from, to, message);
            }
            _ => {}
        }
        Ok(())
    }

    fn carried(&mut self, at: Time, event: Event) -> Result<(), Failure> {
        match event {
            Event::Taken { from, served, page, .. } => {
                self.on(at, from.0 as usize, |machine| machine.taken(at, served, page))
            }
            Event::Delivered { from, to, message } => {
                self.on(at, to.0 as usize, |machine| machine.receive(at, from, message))
            }
        }
    }

    fn violation(&self, machine: usize, broken: Broken) -> Violation {
        self.machines[machine].as_ref().expect("only those that run break rules").violation(broken)
    }
}

fn name(message: &Message) -> &'static str {
    match message {
        Message::Need { .. } => "need",
        Message::Unneed { .. } => "remove_need",
        Message::End { .. } => "end",
        Message::Get { .. } => "get",
        Message::Cancel { .. } => "cancel",
        Message::Pages { .. } => "pages",
        Message::Queued { .. } => "queued",
        Message::NoRoom { .. } => "no room",
        Message::Failed { .. } => "failed",
        Message::Have { .. } => "have",
        Message::Evicted { .. } => "evicted",
    }
}
