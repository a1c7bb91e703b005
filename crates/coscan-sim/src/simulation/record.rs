//! The record of a run.

use coscan_core::{ChunkIndex, Time};

use super::Simulation;
use crate::outcome::{EventKind, Outcome, Step};

/// The totals, and the timeline if it is requested.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) requests: u64,
    pub(super) pages_read: u64,
    pub(super) bytes_read: u64,
    pub(super) decisions: u64,
    /// The query and the chunk of each delivery.
    pub(super) deliveries: Vec<(usize, ChunkIndex)>,
    cores: u32,
    timeline: Option<Vec<Step>>,
}

impl Record {
    pub(super) fn new(cores: u32, timeline: bool) -> Self {
        let timeline = timeline.then(Vec::new);
        Self {
            requests: 0,
            pages_read: 0,
            bytes_read: 0,
            decisions: 0,
            deliveries: Vec::new(),
            cores,
            timeline,
        }
    }

    /// Adds an event to the timeline, if there is one.
    pub(super) fn step(&mut self, at: Time, what: impl FnOnce() -> EventKind) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push(Step { at, what: what() });
        }
    }
}

impl Simulation<'_> {
    /// The outcome of the run, after its end.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let queries: Vec<_> = self.queries.iter().map(|query| query.outcome()).collect();
        Outcome {
            policy: self.manager.policy_name().to_owned(),
            stream_starts: self.workload.streams.iter().map(|stream| stream.start).collect(),
            total_ns: queries.iter().map(|query| query.ended.0).max().unwrap_or(0),
            queries,
            requests: self.record.requests,
            disk_requests: self.disk.requests,
            pages_read: self.record.pages_read,
            bytes_read: self.record.bytes_read,
            processor_busy_ns: self.processors.units_done(),
            disk_busy_ns: self.disk.busy_ns,
            decisions: self.record.decisions,
            cores: self.record.cores,
            memory: self.memory.as_ref().map(|memory| memory.outcome).unwrap_or_default(),
            deliveries: std::mem::take(&mut self.record.deliveries),
            timeline: self.record.timeline.take().unwrap_or_default(),
        }
    }
}
