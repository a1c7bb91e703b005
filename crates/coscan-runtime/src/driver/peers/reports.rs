//! Reports on shared files, for observers. A file is looked at a few pages at a time, so the lock is not held for all.

use std::collections::BTreeSet;

use coscan_core::{Index, PageIndex};
use coscan_ring::{FileId, NodeId, Share};

use super::Peers;
use crate::driver::handle::Driver;
use crate::driver::state::State;
use crate::peers::{ExtentReport, SharedFileReport};

/// The number of extents and pages that are looked at while the lock is held once, counting the scans that read a page,
/// too.
const STEP_WORK: usize = 1024;

impl Driver {
    /// The share of each server in the shared files. A server that is not listed owns nothing.
    pub(crate) fn shares(&self) -> Vec<(NodeId, Share)> {
        let state = self.lock();
        state.peers.as_ref().map_or_else(Vec::new, |peers| peers.node.shares().collect())
    }

    /// The next shared file after one, or the first; `None` after the last.
    pub(crate) fn next_shared_file(
        &self,
        after: Option<FileId>,
    ) -> Option<(FileId, SharedFileReport)> {
        let mut after = after;
        loop {
            let mut survey = self.lock().begin_survey(after)?;
            let mut progress = Progress::Goes;
            while progress == Progress::Goes {
                progress = survey.step(&self.lock(), STEP_WORK);
                // Threads that wait for the lock get it now.
                std::thread::yield_now();
            }
            if progress == Progress::Ended {
                return Some((survey.file, survey.report()));
            }
            after = Some(survey.file);
        }
    }
}

impl State {
    fn begin_survey(&self, after: Option<FileId>) -> Option<FileSurvey> {
        let peers = self.watched_peers()?;
        let (file, shared) = peers.files.after(after)?;
        Some(FileSurvey {
            file,
            url: shared.name.url(),
            extents: Vec::new(),
            wanting: Vec::new(),
            next_page: PageIndex(0),
        })
    }

    /// The peers; `None` after a panic, since the knowledge of pages may be half changed.
    fn watched_peers(&self) -> Option<&Peers> {
        self.peers.as_deref().filter(|_| !self.is_broken())
    }
}

/// A report on a file that is being made. Changes meanwhile may be missed.
struct FileSurvey {
    file: FileId,
    url: String,
    extents: Vec<ExtentReport>,
    /// For each extent, the other servers whose scans need something of it.
    wanting: Vec<BTreeSet<NodeId>>,
    next_page: PageIndex,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Goes,
    Ended,
    /// The file is no longer shared.
    Gone,
}

impl FileSurvey {
    /// Looks at up to `work_max` extents and pages.
    fn step(&mut self, state: &State, work_max: usize) -> Progress {
        let peers = state.watched_peers();
        let shared = peers.and_then(|peers| Some((peers, peers.files.get(self.file)?)));
        let Some((peers, shared)) = shared else { return Progress::Gone };
        let mut work = 0;
        while work < work_max && self.add_extent(peers) {
            work += 1;
        }
        let is_more = |page: PageIndex| page.as_usize() < shared.page_count();
        while work < work_max && is_more(self.next_page) {
            let page = self.next_page;
            let (id, range) = (shared.page_id(page), shared.range(page));
            let extent = peers.node.extent_of(self.file, page);
            let report = &mut self.extents[extent];
            let bytes = range.end - range.start;
            let is_pooled = state.frames.contains_key(&id);
            report.pages += 1;
            report.bytes += bytes;
            report.pages_in_pool += u64::from(is_pooled);
            report.bytes_in_pool += if is_pooled { bytes } else { 0 };
            let is_own = report.owner == peers.node.id();
            let owner_has = if is_own { is_pooled } else { peers.node.owner_has(self.file, page) };
            report.pages_at_owner += u64::from(owner_has);
            work += 1;
            if !peers.interested.is_empty() {
                let readers = state.core.state().readers(id);
                work += readers.len();
                let interests = readers.iter().filter_map(|scan| peers.interested.get(&scan.id()));
                self.wanting[extent].extend(interests.map(|interest| interest.node));
            }
            self.next_page = PageIndex(page.0 + 1);
        }
        if work < work_max { Progress::Ended } else { Progress::Goes }
    }

    /// Adds the next extent, without its pages. Returns false after the last.
    fn add_extent(&mut self, peers: &Peers) -> bool {
        let extent = self.extents.len();
        let extents = peers.node.extents(self.file).filter(|extents| extent < extents.count());
        let Some(extents) = extents else { return false };
        let owners = peers.node.owners_of_extent(self.file, extent);
        self.extents.push(ExtentReport {
            rows: extents.rows(extent),
            owner: owners.owner,
            runner_up: owners.runner_up,
            pages: 0,
            bytes: 0,
            pages_in_pool: 0,
            bytes_in_pool: 0,
            pages_at_owner: 0,
            wanted_by: 0,
        });
        self.wanting.push(BTreeSet::new());
        true
    }

    fn report(self) -> SharedFileReport {
        let Self { url, mut extents, wanting, .. } = self;
        for (extent, wanting) in extents.iter_mut().zip(&wanting) {
            extent.wanted_by = wanting.len();
        }
        SharedFileReport { url: url.into(), extents }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::driver::peers::tests::cluster;
    use crate::driver::tests::table_of_chunks;

    const WORK_MAX: usize = 16;

    #[tokio::test(start_paused = true)]
    async fn no_step_looks_at_many_pages_and_together_they_look_at_all() {
        let (manager, cluster) = cluster();
        let table = manager.register(table_of_chunks(10).await);
        let pages = table.table().layout().page_count();
        assert!(pages > 2 * WORK_MAX, "{pages}");
        let [file] = &cluster.shared_files().collect::<Vec<_>>()[..] else { panic!("one file") };
        assert_eq!(file.extents.iter().map(|extent| extent.pages).sum::<u64>(), pages as u64);
        assert!(file.extents.is_sorted_by(|a, b| a.rows.end == b.rows.start));

        let driver = manager.operator_memory().driver;
        let mut survey = driver.lock().begin_survey(None).unwrap();
        let mut looked = 0;
        while survey.step(&driver.lock(), WORK_MAX) == Progress::Goes {
            assert!(survey.next_page.as_usize() - looked <= WORK_MAX);
            looked = survey.next_page.as_usize();
        }
        let mut survey = driver.lock().begin_survey(None).unwrap();
        assert!(survey.step(&driver.lock(), WORK_MAX) == Progress::Goes);
        cluster.leave();
        assert!(survey.step(&driver.lock(), WORK_MAX) == Progress::Gone);
        assert_eq!(cluster.shared_files().count(), 0);
    }
}
