//! Events: pages arrive or fail, timeouts expire.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{LoadId, PageId, Time};
use crate::pages::Residency;
use crate::scan::Scan;
use crate::state::Load;

impl ActiveBufferManager {
    /// A page of a load arrived.
    ///
    /// # Panics
    /// If the page is not part of the load, or was reported before.
    pub fn page_loaded(&mut self, now: Time, load: LoadId, page: PageId) {
        self.at(now);
        self.reported(load, page);
        self.state.move_page(page, Residency::Cached);
        self.policy.on_page_loaded(&self.state, page);
        self.end_finished_loads();
    }

    /// A page of a load could not be read, even after retries. All scans that need it fail at once, except interests:
    /// reading it again for each scan would only delay the errors. The needs of each scan remain until the caller
    /// [prunes](Self::prune_scan) or cancels it.
    ///
    /// # Panics
    /// If the page is not part of the load, or was reported before.
    pub fn page_failed(&mut self, now: Time, load: LoadId, page: PageId) {
        self.at(now);
        self.reported(load, page);
        self.state.give_up_holds(page);
        self.state.move_page(page, Residency::Cold);
        let running =
            self.state.readers(page).into_iter().filter(|scan| !scan.failed && !scan.is_interest());
        let mut scans: Vec<_> = running.map(Scan::id).collect();
        scans.sort_unstable();
        for scan in scans {
            self.state.change_scan(scan, Scan::fail).expect("a scan that needs a page runs");
            self.actions.push_back(Action::Fail { scan, page });
        }
        self.end_finished_loads();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) is reached.
    pub fn handle_timeout(&mut self, now: Time) {
        self.at(now);
        self.recheck_held_back = None;
    }

    /// Removes a page from those that a load has still to report.
    fn reported(&mut self, load: LoadId, page: PageId) {
        let record = self.state.loads.get_mut(&load).expect("only a load in flight is reported");
        let position = record.unreported.iter().position(|&unreported| unreported == page);
        record.unreported.remove(position.expect("a page of a load is reported once"));
        record.from_peers.retain(|&from_peer| from_peer != page);
    }

    /// Ends the loads that have reported all their pages and hold no page that another load still reads. Until then
    /// they keep their chunk whole.
    fn end_finished_loads(&mut self) {
        let finished = |load: &Load| {
            let arrived = |&page: &PageId| self.state.page(page).residency != Residency::Reading;
            load.unreported.is_empty() && load.held.iter().all(arrived)
        };
        let ended: Vec<_> =
            self.state.loads.iter().filter(|(_, load)| finished(load)).map(|(&id, _)| id).collect();
        for load in ended {
            self.state.end_load(load);
        }
    }
}
