//! What was decided under the lock, to be carried out after it is released, by whoever decided.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use coscan_core::LoadId;

use super::handle::Driver;
use super::running_scan::RunningScan;
use crate::decode_cache::Slice;
use crate::load::{self, Load, Source, Urgency};
use crate::metrics::ScanCounters;
use crate::scan_parts::{ScanParts, TablePage};

/// Under the lock nothing is started, woken or dropped: wakers and destructors are others' code.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) loads: Vec<DecidedLoad>,
    /// Loads in flight that are urgent from now on.
    pub(super) escalated: Vec<Urgency>,
    /// Workers whose answer is there.
    pub(super) woken: Vec<Waker>,
    /// Wakers that were replaced.
    pub(super) replaced: Vec<Waker>,
    /// Pages that were evicted.
    pub(super) evicted: Vec<Bytes>,
    /// Decoded columns that nobody needs.
    pub(super) unneeded: Vec<Slice>,
    /// Scans that have ended.
    pub(super) ended: Vec<RunningScan>,
    /// The pump has something to do.
    pub(super) rings: bool,
}

/// A load that core has decided.
#[derive(Debug)]
pub(super) struct DecidedLoad {
    pub(super) id: LoadId,
    pub(super) pages: Vec<TablePage>,
    pub(super) parts: Arc<ScanParts>,
    pub(super) urgency: Urgency,
    pub(super) counters: Arc<ScanCounters>,
}

impl Driver {
    /// Carries out what this thread has decided. Threads may do so in another order than they decided in.
    pub(super) fn carry_out(self: &Arc<Self>, effects: Effects) {
        let Effects { loads, escalated, woken, replaced, evicted, unneeded, ended, rings } =
            effects;
        for load in loads {
            self.runtime().spawn(load::run(self.load(load)));
        }
        escalated.iter().for_each(Urgency::escalate);
        woken.into_iter().for_each(Waker::wake);
        if rings {
            self.bell().ring();
        }
        drop((replaced, evicted, unneeded, ended));
    }

    fn load(self: &Arc<Self>, decided: DecidedLoad) -> Load {
        let DecidedLoad { id, pages, parts, urgency, counters } = decided;
        Load {
            owner: Arc::clone(self) as _,
            id,
            unreported: pages.into_iter().collect(),
            source: Arc::new(Source { requests: Arc::clone(self.requests()), parts, urgency }),
            counters,
        }
    }
}
