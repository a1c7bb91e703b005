//! Events: pages arrive or fail, time passes.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{LoadId, PageId, PageIndex, ScanId, Time};
use crate::pool::Place;
use crate::state::Load;

impl ActiveBufferManager {
    /// A page of a load arrived.
    ///
    /// # Panics
    /// If the page is not part of the load, or was reported before.
    pub fn page_loaded(&mut self, now: Time, load: LoadId, page: PageIndex) {
        self.at(now);
        let id = self.reported(load, page);
        self.state.move_page(id, Place::Cached);
        self.policy.on_page_loaded(&self.state, id);
        self.end_finished_loads();
    }

    /// A page of a load could not be read. The scan that the load was for fails if it needs the page; others will ask
    /// for it themselves.
    ///
    /// # Panics
    /// If the page is not part of the load, or was reported before.
    pub fn page_failed(&mut self, now: Time, load: LoadId, page: PageIndex) {
        self.at(now);
        let id = self.reported(load, page);
        self.state.give_up_holds(id);
        self.state.move_page(id, Place::Cold);
        let scan = self.state.loads[&load].scan;
        if self.needs_page(scan, id) {
            self.drop_needs(scan);
            self.state.scans.get_mut(&scan).expect("a scan that needs a page runs").fail();
            self.actions.push_back(Action::Fail { scan, page: id });
        }
        self.end_finished_loads();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        self.at(now);
        self.held_back = None;
    }

    /// Takes a page off what a load has still to report.
    fn reported(&mut self, load: LoadId, page: PageIndex) -> PageId {
        let record = self.state.loads.get_mut(&load).expect("only a load under way is reported");
        let position = record.unreported.iter().position(|&unreported| unreported == page);
        record.unreported.remove(position.expect("a page of a load is reported once"));
        PageId { table: record.table, page }
    }

    /// Ends the loads that have reported all their pages and wait for no page of another load either: until then they
    /// hold their chunk together.
    fn end_finished_loads(&mut self) {
        let finished = |load: &Load| {
            let arrived = |&page: &PageIndex| {
                let place = self.state.page(PageId { table: load.table, page }).place;
                !matches!(place, Place::Reading(_))
            };
            load.unreported.is_empty() && load.held.iter().all(arrived)
        };
        let ended: Vec<_> =
            self.state.loads.iter().filter(|(_, load)| finished(load)).map(|(&id, _)| id).collect();
        for load in ended {
            self.state.end_load(load);
        }
    }

    fn needs_page(&self, scan: ScanId, id: PageId) -> bool {
        let Some(scan) = self.state.scan(scan) else { return false };
        let layout = self.state.table(id.table).layout();
        scan.reads(layout, id.page)
            && layout.chunks_of(id.page).iter().any(|&chunk| scan.needed.contains(chunk))
    }
}
