//! A run: the buffer manager, driven as the runtime drives it, in virtual time.
//!
//! Commands and events go in with the time, actions are carried out until there is none, timers are honoured. The next
//! event is the earliest of: a planned event, the arrival of a page, the end of work, the manager's timer; of several at
//! the same time the first in this list.

mod actions;
mod loads;
mod memory;
mod queries;
mod record;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::{
    ActiveBufferManager, ChunkIndex, Config, DeviceId, Index, LoadId, PageIndex, Policy, ScanId,
    Time, WorkerIndex,
};

use crate::disk::Reader;
use crate::faults::{FaultInjector, Faults};
use crate::ledger::Ledger;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::sharing::ProcessorSharing;
use crate::violation::{Broken, Rule, Violation, ensure};
use crate::workload::{PageNumbers, Workload};
use loads::LoadRun;
use memory::MemoryRun;
pub use memory::MemoryWorkload;
use queries::QueryRun;
use record::Record;

/// Consecutive timeouts without an action, above which a run is a violation.
const IDLE_TIMEOUTS_MAX: u32 = 1_000;

/// The faults and checks of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The faults; `None` for a run without any.
    pub faults: Option<Faults>,
    /// Whether the outcome has a timeline.
    pub timeline: bool,
    /// The number of events after which all records of the manager are recounted, as they are at the end; 0 for only
    /// then. Each single action is checked in any case.
    pub audit_every: u64,
    /// Events that happen within so many nanoseconds are one batch: only after the last one are actions carried out. 0:
    /// each event is followed by its actions. So is a page that cannot be read, whatever the batch.
    pub batch_ns: u64,
    /// The longest wait of a worker in nanoseconds; the run fails beyond. By default a bound that only endless waits
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

/// A planned event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Start { query: usize },
    Cancel { query: usize },
    Prune { query: usize },
    Release { query: usize, worker: WorkerIndex, chunk: ChunkIndex },
    Page { load: LoadId, page: PageIndex },
    CancelLoad { load: LoadId },
    Pool { bytes: u64 },
    Operator { operator: u32 },
}

/// The source of the next event, in order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Source {
    Agenda,
    Disk,
    Processors,
    Timer,
}

struct Simulation<'a> {
    workload: &'a Workload,
    options: Options,
    manager: ActiveBufferManager,
    disk: Reader,
    /// Workers at work: the query and the worker.
    processors: ProcessorSharing<(usize, WorkerIndex)>,
    fault_injector: Option<FaultInjector>,
    ledger: Ledger,
    numbers: PageNumbers,
    now: Time,
    /// Planned events, by time and order of planning.
    agenda: BTreeMap<(Time, u64), Event>,
    planned: u64,
    queries: Vec<QueryRun<'a>>,
    queries_left: usize,
    /// The number of them in streams that do not run only while others do.
    awaited_left: usize,
    /// The query of each running scan.
    scans: BTreeMap<ScanId, usize>,
    loads: BTreeMap<LoadId, LoadRun>,
    memory: Option<MemoryRun>,
    steps: u64,
    /// When the first event of the batch happened whose actions are still to be carried out.
    batch_began: Option<Time>,
    idle_timeouts: u32,
    record: Record,
}

impl<'a> Simulation<'a> {
    fn new(
        workload: &'a Workload,
        machine: &Machine,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Self {
        let config = Config { pool_bytes: workload.pool_bytes, ..machine.config };
        let mut manager = ActiveBufferManager::new(config, policy);
        let layouts: Vec<_> =
            workload.tables.iter().map(|table| Arc::clone(&table.layout)).collect();
        for (index, layout) in layouts.iter().enumerate() {
            let (table, _) = manager.register_layout(layout, DeviceId(0));
            assert_eq!(table.as_usize(), index, "tables are numbered as they come");
        }
        let queries = queries::all(workload);
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
            ledger: Ledger::new(layouts, config.pool_bytes, loads_max, wait_ns_max),
            now: Time::default(),
            agenda: BTreeMap::new(),
            planned: 0,
            queries_left: queries.len(),
            awaited_left: queries.iter().filter(|query| !query.while_others_run).count(),
            queries,
            scans: BTreeMap::new(),
            loads: BTreeMap::new(),
            memory: None,
            steps: 0,
            batch_began: None,
            idle_timeouts: 0,
            record: Record::new(machine.cores, options.timeline),
        };
        if let Some(usage) = options.memory {
            simulation.set_up_memory(usage);
        }
        simulation.plan_beginnings();
        simulation
    }

    fn plan_beginnings(&mut self) {
        let firsts = (0..self.queries.len()).filter(|&query| self.queries[query].index == 0);
        for query in firsts.collect::<Vec<_>>() {
            let run = &self.queries[query];
            let start = self.workload.streams[run.stream].start;
            let at = after(start, run.query.think_ns);
            self.plan(at, Event::Start { query });
        }
        for &(at, bytes) in &self.workload.pool_changes {
            self.plan(at, Event::Pool { bytes });
        }
    }

    /// Processes events until every query has ended.
    fn go(&mut self) -> Result<(), Broken> {
        while self.queries_left > 0 {
            let (at, source) = self.next().ok_or_else(|| self.all_stands_still())?;
            self.count_memory_time(at);
            self.now = self.now.max(at);
            self.steps += 1;
            self.happen(source)?;
            if self.batch_goes_on() {
                continue;
            }
            self.settle()?;
            if self.options.audit_every > 0 && self.steps.is_multiple_of(self.options.audit_every) {
                self.ledger.audit(&self.manager)?;
            }
        }
        self.settle()?;
        self.ledger.audit(&self.manager)
    }

    /// Whether another event happens before actions are carried out.
    fn batch_goes_on(&mut self) -> bool {
        let end = after(*self.batch_began.get_or_insert(self.now), self.options.batch_ns);
        let follows = |(at, source): (Time, Source)| at <= end && source != Source::Timer;
        let goes_on =
            self.options.batch_ns > 0 && self.queries_left > 0 && self.next().is_some_and(follows);
        if !goes_on {
            self.batch_began = None;
        }
        goes_on
    }

    fn next(&self) -> Option<(Time, Source)> {
        let planned = self.agenda.first_key_value().map(|(&(at, _), _)| at);
        let sources = [
            (planned, Source::Agenda),
            (self.disk.next_at(), Source::Disk),
            (self.processors.next_at(), Source::Processors),
            (self.manager.poll_timeout(), Source::Timer),
        ];
        sources.into_iter().filter_map(|(at, source)| Some((at?, source))).min()
    }

    fn happen(&mut self, source: Source) -> Result<(), Broken> {
        if source != Source::Timer {
            self.idle_timeouts = 0;
        }
        match source {
            Source::Agenda => {
                let (_, event) = self.agenda.pop_first().expect("the next event is planned");
                self.happen_as_planned(event)
            }
            Source::Disk => match self.disk.pop(self.now) {
                Some(arrival) => self.arrive(arrival.load, arrival.page),
                None => Ok(()),
            },
            Source::Processors => match self.processors.pop(self.now) {
                Some((query, worker)) => self.work_ended(query, worker),
                None => Ok(()),
            },
            Source::Timer => {
                self.idle_timeouts += 1;
                ensure(self.idle_timeouts <= IDLE_TIMEOUTS_MAX, Rule::NoStarving, || {
                    format!("{IDLE_TIMEOUTS_MAX} timers in a row led to nothing")
                })?;
                self.manager.handle_timeout(self.now);
                Ok(())
            }
        }
    }

    fn happen_as_planned(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Start { query } => self.start_query(query),
            Event::Cancel { query } => {
                self.cancel_query(query);
                Ok(())
            }
            Event::Prune { query } => {
                self.prune_query(query);
                Ok(())
            }
            Event::Release { query, worker, chunk } => {
                self.release_early(query, worker, chunk);
                Ok(())
            }
            Event::Page { load, page } => self.report(load, page),
            Event::CancelLoad { load } => self.cancel_load(load),
            Event::Pool { bytes } => self.change_pool(bytes),
            Event::Operator { operator } => self.operator_step(operator),
        }
    }

    fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), event);
    }

    fn plan_after(&mut self, ns: u64, event: Event) {
        self.plan(after(self.now, ns), event);
    }

    fn all_stands_still(&self) -> Broken {
        let what = format!("{} queries have not ended, and nothing will happen", self.queries_left);
        Broken { rule: Rule::Progress, what }
    }

    fn violation(&self, broken: Broken) -> Violation {
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

fn after(time: Time, ns: u64) -> Time {
    Time(time.0.saturating_add(ns))
}
