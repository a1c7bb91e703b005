//! Escalation: loads for other scans become urgent when a tiny scan waits for their pages.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::ChunkIndex;
use crate::scan::{Order, Scan};
use crate::state::Load;

impl ActiveBufferManager {
    /// Makes loads urgent that a tiny scan waits for.
    pub(super) fn escalate_loads(&mut self) {
        if self.state.scan_index.waiting.is_empty()
            || self.state.loads.values().all(|load| load.urgent)
        {
            return;
        }
        let is_starving = |scan: &&Scan| scan.starving_since().is_some();
        let waiting: Vec<_> = self.tiny_scans().filter(is_starving).collect();
        if waiting.is_empty() {
            return;
        }
        let is_next = |scan: &Scan, chunk: ChunkIndex| {
            scan.needed().contains(chunk)
                && (scan.order() == Order::Any || scan.needed().first() == Some(chunk))
        };
        let is_awaited = |load: &Load| {
            waiting.iter().any(|scan| {
                let pages = load.unreported.iter();
                let mut chunks = pages.flat_map(|&page| self.state.chunks_read(scan, page));
                chunks.any(|chunk| is_next(scan, chunk))
            })
        };
        let loads = self.state.loads.iter().filter(|(_, load)| !load.urgent && is_awaited(load));
        let awaited: Vec<_> = loads.map(|(&id, _)| id).collect();
        for load in awaited {
            self.state.loads.get_mut(&load).expect("found above").urgent = true;
            self.actions.push_back(Action::Escalate { load });
        }
    }

    /// The running scans that pass others at the device.
    pub(super) fn tiny_scans(&self) -> impl Iterator<Item = &Scan> {
        let bounds = self.policy.priority_bounds(&self.state);
        self.state.tiny_scans(bounds)
    }
}
