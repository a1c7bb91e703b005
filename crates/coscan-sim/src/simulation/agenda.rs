//! The agenda: planned events, and those of the disk, the processors, other machines and the manager's timer.

use coscan_core::{ChunkIndex, LoadId, PageIndex, Time, WorkerIndex};

use super::Simulation;
use crate::violation::{Broken, Rule, ensure};

/// The most consecutive timeouts without an action. Above that a run is a violation.
const IDLE_TIMEOUTS_MAX: u32 = 1_000;

/// A planned event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Start { query: usize },
    Cancel { query: usize },
    Prune { query: usize },
    Release { query: usize, worker: WorkerIndex, chunk: ChunkIndex },
    Page { load: LoadId, page: PageIndex },
    CancelLoad { load: LoadId },
    Pool { bytes: u64 },
    Change { change: usize },
    Operator { operator: u32 },
}

/// The source of the next event, in order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    Agenda,
    Disk,
    Processors,
    Peers,
    Timer,
}

impl Simulation<'_> {
    pub(super) fn plan_beginnings(&mut self) {
        for (change, &(at, _)) in self.workload.table_changes.iter().enumerate() {
            self.plan(at, Event::Change { change });
        }
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

    /// Whether another event happens before actions are carried out.
    pub(super) fn batch_goes_on(&mut self) -> bool {
        let end = after(*self.batch_began.get_or_insert(self.now), self.options.batch_ns);
        let follows = |(at, source): (Time, Source)| at <= end && source != Source::Timer;
        let goes_on =
            self.options.batch_ns > 0 && self.queries_left > 0 && self.next().is_some_and(follows);
        if !goes_on {
            self.batch_began = None;
        }
        goes_on
    }

    pub(super) fn next(&self) -> Option<(Time, Source)> {
        let planned = self.agenda.first_key_value().map(|(&(at, _), _)| at);
        let sources = [
            (planned, Source::Agenda),
            (self.disk.next_at(), Source::Disk),
            (self.processors.next_at(), Source::Processors),
            (self.peers.as_ref().and_then(|peers| peers.node.poll_timeout()), Source::Peers),
            (self.manager.poll_timeout(), Source::Timer),
        ];
        sources.into_iter().filter_map(|(at, source)| Some((at?, source))).min()
    }

    pub(super) fn happen(&mut self, source: Source) -> Result<(), Broken> {
        if source != Source::Timer {
            self.idle_timeouts = 0;
        }
        match source {
            Source::Agenda => {
                let (_, event) = self.agenda.pop_first().expect("the next event is planned");
                self.happen_as_planned(event)
            }
            Source::Disk => match self.disk.pop(self.now) {
                Some(arrival) => {
                    self.count_read(arrival.load, arrival.page);
                    self.arrive(arrival.load, arrival.page)
                }
                None => Ok(()),
            },
            Source::Processors => match self.processors.pop(self.now) {
                Some((query, worker)) => self.work_ended(query, worker),
                None => Ok(()),
            },
            Source::Peers => {
                if let Some(peers) = &mut self.peers {
                    peers.node.handle_timeout(self.now);
                }
                Ok(())
            }
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

    pub(super) fn happen_as_planned(&mut self, event: Event) -> Result<(), Broken> {
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
            Event::Change { change } => {
                let workload = self.workload;
                self.change_table(&workload.table_changes[change].1);
                Ok(())
            }
            Event::Operator { operator } => self.operator_step(operator),
        }
    }

    pub(super) fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), event);
    }

    pub(super) fn plan_after(&mut self, ns: u64, event: Event) {
        self.plan(after(self.now, ns), event);
    }
}

pub(super) fn after(time: Time, ns: u64) -> Time {
    Time(time.0.saturating_add(ns))
}
