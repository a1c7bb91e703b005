//! Work that takes too long for one hold of the lock goes in steps, which the pump makes between other work.

use coscan_core::{ChunkIndex, ScanId, Time};

use super::state::State;
use super::walk::{STEP_CHUNKS, Walk};
use crate::observe::events::EventKind;
use crate::tables::registry::STEP_SLICES;

/// The number of files that are released while the lock is held once.
const STEP_FILES: usize = 64;

impl State {
    /// Makes a step of the first walk. Returns false if there is none.
    pub(super) fn step(&mut self, now: Time) -> bool {
        let Some(walk) = self.walks.pop_front() else { return false };
        match self.walk(walk, now) {
            // No other walk relies on this one.
            Some(walk @ (Walk::LetGo | Walk::RenewOwners)) => self.walks.push_back(walk),
            // Later walks may rely on earlier ones: a table is released after its scans.
            Some(rest) => self.walks.push_front(rest),
            None => {}
        }
        true
    }

    /// Makes all steps of all walks, however long that takes.
    pub(super) fn make_all_steps(&mut self, now: Time) {
        loop {
            self.slices_left = STEP_SLICES;
            if !self.step(now) {
                return;
            }
        }
    }

    /// Makes the first step at once, and leaves the rest to the pump.
    pub(super) fn begin(&mut self, walk: Walk, now: Time) {
        if let Some(rest) = self.walk(walk, now) {
            self.leave_to_pump(rest);
        }
    }

    pub(super) fn leave_to_pump(&mut self, walk: Walk) {
        self.walks.push_back(walk);
        self.effects.rings = true;
    }

    /// Ends a scan: it takes nothing any more, and its needs are dropped.
    pub(super) fn end_scan(&mut self, scan: ScanId, now: Time) {
        let Some(running) = self.scans.get_mut(&scan).filter(|running| !running.has_ended) else {
            return;
        };
        running.has_ended = true;
        self.ended_scans += 1;
        self.announce_end(scan);
        for worker in self.workers.of(scan) {
            // Workers that wait are woken, and find that the scan is gone.
            self.effects.woken.extend(self.workers.take_waker(scan, worker));
            self.withdraw(now, scan, worker);
        }
        self.begin(Walk::EndScan(scan), now);
    }

    /// Begins a walk after those of scans that have ended, since a table is released after its scans.
    pub(super) fn begin_after_ended_scans(&mut self, walk: Walk, now: Time) {
        if self.ended_scans == 0 { self.begin(walk, now) } else { self.leave_to_pump(walk) }
    }

    /// Begins to remove what is no longer held, after something was released, or a scan or a load has ended.
    pub(super) fn remove_unused(&mut self, now: Time) {
        let is_at_it = self.walks.iter().any(|walk| matches!(walk, Walk::LetGo));
        if !is_at_it {
            self.begin(Walk::LetGo, now);
        }
    }

    /// Makes one step. Returns the rest of the walk, if there is any.
    fn walk(&mut self, walk: Walk, now: Time) -> Option<Walk> {
        match walk {
            Walk::DropNeeds(scan) => self.drop_needs(scan, now).then_some(walk),
            Walk::EndScan(scan) => {
                if self.drop_needs(scan, now) {
                    return Some(walk);
                }
                self.core.cancel_scan(now, scan);
                self.effects.ended.extend(self.scans.remove(&scan));
                self.ended_scans -= 1;
                self.ask_for_unneeded_no_more(now);
                self.taps.send(now, || EventKind::ScanEnded { scan });
                self.remove_unused(now);
                None
            }
            Walk::ReleaseTable { table, mut files } => {
                let rest = files.split_off(files.len().min(STEP_FILES));
                for file in files {
                    if let Some(released) = self.registry.release_file(table, file) {
                        self.unshare_file(file, now);
                        for key in self.decoded.unexpected_of(file) {
                            self.drop_slice(key);
                        }
                        self.effects.files.push(released);
                    }
                }
                if !rest.is_empty() {
                    return Some(Walk::ReleaseTable { table, files: rest });
                }
                self.registry.release_table(table);
                self.remove_unused(now);
                None
            }
            Walk::AnnounceAgain => self.announce_again().then_some(walk),
            Walk::RenewOwners => self.renew_owners(now).then_some(walk),
            Walk::LetGo => {
                let Self { registry, core, slices_left, .. } = self;
                registry.remove_unused(core, now, slices_left).then_some(walk)
            }
        }
    }

    /// Drops a step of the needs of a scan. Returns true if there may be more.
    pub(super) fn drop_needs(&mut self, scan: ScanId, now: Time) -> bool {
        let needed: Vec<ChunkIndex> = self.needed(scan).take(STEP_CHUNKS).collect();
        let is_step = needed.len() == STEP_CHUNKS;
        self.core.prune_scan(now, scan, needed);
        is_step
    }
}
