//! A run: the buffer manager, driven as the runtime drives it, in virtual time.
//!
//! Commands and events go in with the time, actions are carried out until there is none, and timers are honoured. The
//! next event is the earliest of these: a planned event, the arrival of a page, the end of work, the manager's timer.
//! Of several at the same time it is the first in this list.

mod actions;
mod agenda;
pub(crate) mod id_map;
mod loads;
mod memory;
mod peers;
mod queries;
mod query_run;
mod record;
mod results;
mod versions;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::{ActiveBufferManager, Config, LoadId, Policy, ScanId, Time, WorkerIndex};
use coscan_ring::Node;

use crate::disk::Reader;
use crate::faults::{FaultInjector, Faults};
use crate::ledger::Ledger;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::processor_sharing::ProcessorSharing;
use crate::violation::{Broken, Rule, Violation};
use crate::workload::{PageNumbers, Workload};
use agenda::Event;
use id_map::IdMap;
use loads::LoadRun;
use memory::MemoryRun;
pub use memory::MemoryWorkload;
use peers::Peers;
pub use peers::SharedFiles;
use query_run::QueryRun;
use record::Record;
use results::Results;
use versions::{PendingRemoval, Versions};

/// The number of events after which the waits of all workers are checked, since timers may continue for ever.
const WAITS_CHECKED_EVERY: u64 = 64;

/// The faults and checks of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The faults; `None` for a run without any.
    pub faults: Option<Faults>,
    /// Whether the outcome has a timeline.
    pub timeline: bool,
    /// The number of events after which all records of the manager are recounted, as they are at the end; 0 for only
    /// then. Each single action is always checked.
    pub audit_every: u64,
    /// The nanoseconds within which events are one batch: actions are carried out only after the last one. If 0, each
    /// event is followed by its actions. A page that cannot be read is always followed by its actions.
    pub batch_ns: u64,
    /// The longest wait of a worker in nanoseconds. The run fails beyond. By default a bound that only endless waits
    /// reach.
    pub wait_ns_max: Option<u64>,
    /// Memory beside the pool; `None` for a run without any.
    pub memory: Option<MemoryWorkload>,
}

/// Runs a workload on a machine under a policy.
///
/// # Errors
/// If the manager breaks one of its rules: a bug in the manager, not in the workload.
///
/// # Panics
/// If the workload names a table or column group that it does not have, or a query has no worker; if the machine can
/// never read or work; if the manager fails one of its own assertions.
pub fn run(
    workload: &Workload,
    machine: &Machine,
    policy: Box<dyn Policy>,
    options: Options,
) -> Result<Outcome, Box<Violation>> {
    let mut simulation = Simulation::new(workload, machine, policy, options);
    match simulation.go() {
        Ok(()) => Ok(simulation.outcome()),
        Err(broken) => Err(Box::new(simulation.violation(broken))),
    }
}

pub(crate) struct Simulation<'a> {
    workload: &'a Workload,
    options: Options,
    manager: ActiveBufferManager,
    disk: Reader,
    /// Workers at work: the query and the worker.
    processors: ProcessorSharing<(usize, WorkerIndex)>,
    fault_injector: Option<FaultInjector>,
    ledger: Ledger,
    numbers: PageNumbers,
    names: IdMap,
    /// The versions of each table.
    tables: Vec<Versions>,
    leaving: PendingRemoval,
    now: Time,
    /// Planned events, by time and order of planning.
    agenda: BTreeMap<(Time, u64), Event>,
    planned: u64,
    queries: Vec<QueryRun<'a>>,
    queries_left: usize,
    /// The number of queries left in streams that do not run only while others do.
    awaited_left: usize,
    /// The query of each running scan.
    scans: BTreeMap<ScanId, usize>,
    results: Results,
    loads: BTreeMap<LoadId, LoadRun>,
    memory: Option<MemoryRun>,
    /// The other machines, if it is one of a cluster.
    peers: Option<Peers>,
    steps: u64,
    /// The time of the first event of the batch whose actions are still to be carried out.
    batch_began: Option<Time>,
    idle_timeouts: u32,
    record: Record,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        machine: &Machine,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Self {
        let config = Config { pool_bytes: workload.pool_bytes, ..machine.config };
        let manager = ActiveBufferManager::new(config, policy);
        let layouts: Vec<_> =
            workload.tables.iter().map(|table| Arc::clone(&table.layout)).collect();
        let queries = query_run::all(workload);
        let wait_ns_max =
            options.wait_ns_max.unwrap_or_else(|| wait::wait_ns_max(workload, machine, options));
        let loads_max = config.loads_in_flight_max;
        let mut simulation = Self {
            workload,
            options,
            manager,
            disk: Reader::new(machine.disk, machine.quantum_bytes, layouts.clone()),
            processors: ProcessorSharing::cores(machine.cores),
            fault_injector: options.faults.map(FaultInjector::new),
            numbers: PageNumbers::of(&layouts),
            names: IdMap::default(),
            tables: Vec::new(),
            leaving: PendingRemoval::default(),
            ledger: Ledger::new(layouts, config.pool_bytes, loads_max, wait_ns_max),
            now: Time::default(),
            agenda: BTreeMap::new(),
            planned: 0,
            queries_left: queries.len(),
            awaited_left: queries.iter().filter(|query| !query.while_others_run).count(),
            queries,
            scans: BTreeMap::new(),
            results: Results::new(),
            loads: BTreeMap::new(),
            memory: None,
            peers: None,
            steps: 0,
            batch_began: None,
            idle_timeouts: 0,
            record: Record::new(machine.cores, options.timeline),
        };
        simulation.add_tables();
        if let Some(usage) = options.memory {
            simulation.set_up_memory(usage);
        }
        simulation.plan_beginnings();
        simulation
    }

    /// The simulation as one of several machines, which starts now.
    ///
    /// # Panics
    /// If a table changes: machines of a cluster have the same files all the time.
    pub(crate) fn with_node(mut self, now: Time, node: Node, files: SharedFiles) -> Self {
        let changes = self.workload.queries().any(|query| query.change.is_some());
        assert!(
            !changes && self.workload.table_changes.is_empty(),
            "no table of a cluster changes"
        );
        self.now = now;
        self.peers = Some(Peers::new(node, &self.workload.tables, files));
        self.settle_peers().expect("no page is in the pool yet");
        self
    }

    /// Processes events until every query has ended.
    fn go(&mut self) -> Result<(), Broken> {
        while self.queries_left > 0 {
            self.step()?;
        }
        self.finish()
    }

    /// Settles and audits a run at its end.
    pub(crate) fn finish(&mut self) -> Result<(), Broken> {
        self.settle()?;
        self.ledger.audit(&self.manager, &self.names)
    }

    /// Processes the next event.
    pub(crate) fn step(&mut self) -> Result<(), Broken> {
        let (at, source) = self.next().ok_or_else(|| self.all_stands_still())?;
        self.count_memory_time(at);
        self.now = self.now.max(at);
        self.steps += 1;
        self.happen(source)?;
        if self.batch_goes_on() {
            return Ok(());
        }
        self.settle()?;
        if self.steps.is_multiple_of(WAITS_CHECKED_EVERY) {
            self.ledger.check_waits(self.now)?;
        }
        if self.options.audit_every > 0 && self.steps.is_multiple_of(self.options.audit_every) {
            self.ledger.audit(&self.manager, &self.names)?;
        }
        Ok(())
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.next().map(|(at, _)| at.max(self.now))
    }

    /// The number of queries that have not ended.
    pub(crate) fn queries_left(&self) -> usize {
        self.queries_left
    }

    pub(crate) fn all_stands_still(&self) -> Broken {
        let what = format!("{} queries have not ended, and nothing will happen", self.queries_left);
        Broken { rule: Rule::Progress, what }
    }

    pub(crate) fn violation(&self, broken: Broken) -> Violation {
        Violation {
            policy: self.manager.policy_name().to_owned(),
            seed: self.options.faults.map(|faults| faults.seed),
            step: self.steps,
            at: self.now,
            rule: broken.rule,
            what: broken.what,
        }
    }
}
