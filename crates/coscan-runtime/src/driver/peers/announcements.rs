//! The needs of scans, announced to the owners of files; and the needs of others, with the news that a page is here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use coscan_core::{ChunkIndex, GroupIndex, PageId, ScanId, Time};
use coscan_ring::{FileId, NodeId, RemoteInterest};

use crate::driver::state::State;
use crate::driver::walk::Walk;

/// The least chunks of a scan whose needs are announced. Smaller scans are over before it would help.
const NEED_CHUNKS_MIN: usize = 8;

/// Rows of files, by file.
type RowsByFile = BTreeMap<FileId, Vec<Range<u64>>>;

impl State {
    /// Tells the owners that a scan needs these chunks, if it needs many.
    pub(in crate::driver) fn announce(
        &mut self,
        scan: ScanId,
        chunks: impl IntoIterator<Item = ChunkIndex>,
    ) {
        let state = self.core.state();
        if self.peers.is_none()
            || state.scan(scan).is_none_or(|scan| scan.needed().len() < NEED_CHUNKS_MIN)
        {
            return;
        }
        let mut columns = BTreeMap::new();
        let rows = self.rows_of(scan, chunks, &mut columns);
        let Some(peers) = &mut self.peers else { return };
        for (file, rows) in rows {
            peers.node.need(u64::from(scan.0), file, &columns[&file], &rows);
        }
    }

    /// Announces that a scan does not need some chunks any more, or that the servers that were asked for them need not
    /// keep them for it.
    pub(in crate::driver) fn announce_unneeded(
        &mut self,
        scan: ScanId,
        chunks: impl IntoIterator<Item = ChunkIndex>,
    ) {
        let number = u64::from(scan.0);
        if self.peers.as_ref().is_none_or(|peers| !peers.node.has_told(number)) {
            return;
        }
        let rows = self.rows_of(scan, chunks, &mut BTreeMap::new());
        let Some(peers) = &mut self.peers else { return };
        for (file, rows) in rows {
            peers.node.remove_need(number, file, &rows);
        }
    }

    pub(in crate::driver) fn announce_end(&mut self, scan: ScanId) {
        if let Some(peers) = &mut self.peers {
            peers.node.end_need(u64::from(scan.0));
        }
    }

    /// Announces all needs again, because owners know of no scan: extents have other owners, or one of them has
    /// forgotten. A peer that connects again and again must not pile up walks, so a walk that is under way begins anew.
    pub(super) fn announce_all_again(&mut self) {
        let Some(peers) = &mut self.peers else { return };
        let has_walk = !peers.unannounced.is_empty();
        peers.unannounced.extend(self.scans.keys());
        if !has_walk && !peers.unannounced.is_empty() {
            self.leave_to_pump(Walk::AnnounceAgain);
        }
    }

    /// Announces the needs of one scan again. Returns false if that was the last.
    pub(in crate::driver) fn announce_again(&mut self) -> bool {
        let Some(peers) = &mut self.peers else { return false };
        let first = peers.unannounced.pop_first();
        let is_more = !peers.unannounced.is_empty();
        // The end of a scan was announced, though its needs are still being dropped.
        let runs = |scan: &ScanId| self.scans.get(scan).is_some_and(|running| !running.has_ended);
        if let Some(scan) = first.filter(runs) {
            self.announce_end(scan);
            let needed: Vec<_> = self.needed(scan).collect();
            self.announce(scan, needed);
        }
        is_more
    }

    /// The rows of shared files that are in these chunks of a scan, and the columns of each file that it reads.
    fn rows_of(
        &self,
        scan: ScanId,
        chunks: impl IntoIterator<Item = ChunkIndex>,
        columns: &mut BTreeMap<FileId, Vec<u32>>,
    ) -> RowsByFile {
        let mut by_file = RowsByFile::new();
        let (Some(peers), Some(running)) = (&self.peers, self.scans.get(&scan)) else {
            return by_file;
        };
        for chunk in chunks {
            for part in running.parts.of_chunk(chunk) {
                let (registered, rows) = part.place();
                let Some(file) = peers.files.by_registration(registered) else { continue };
                columns.entry(file).or_insert_with(|| part.file_columns());
                let of_file = by_file.entry(file).or_default();
                match of_file.last_mut().filter(|last| last.end == rows.start) {
                    Some(last) => last.end = rows.end,
                    None => of_file.push(rows),
                }
            }
        }
        by_file
    }

    /// Tells the servers that need pages that this server has them, or is about to.
    pub(super) fn tell_interested(&mut self, pages: &[PageId], now: Time) {
        let Some(peers) = &mut self.peers else { return };
        if peers.interests.is_empty() {
            return;
        }
        for &page in pages {
            let Some((file, index)) = peers.files.place_of(page) else { continue };
            let readers = self.core.state().readers(page).into_iter();
            let nodes = readers.filter_map(|scan| peers.interested.get(&scan.id()));
            let nodes: BTreeSet<NodeId> = nodes.map(|interest| interest.node).collect();
            peers.node.page_kept(now, file, index, nodes);
        }
    }

    /// Notes that a page is not here any more, or will not come.
    pub(in crate::driver) fn tell_evicted(&mut self, page: PageId, now: Time) {
        if let Some(peers) = &mut self.peers
            && let Some((file, index)) = peers.files.place_of(page)
        {
            peers.node.page_evicted(now, file, index);
        }
    }

    /// Registers that a scan of another server needs these rows.
    pub(super) fn want(
        &mut self,
        interest: RemoteInterest,
        file: FileId,
        columns: &[u32],
        rows: &[Range<u64>],
        now: Time,
    ) {
        let Some(peers) = &mut self.peers else { return };
        let Some(shared) = peers.files.get(file) else { return };
        let Some(served) = &shared.served else { return };
        let chunks = served.parts.columns_of(0).snapshot.to_core_runs(rows);
        let known = peers.interests.get(&(interest, file)).copied();
        let scan = match known {
            Some(scan) => self.core.extend_scan(now, scan, chunks.clone()).map(|()| scan),
            None => {
                let table = &served.parts.columns_of(0).snapshot.table;
                let count = table.schema().fields().len();
                let columns = columns.iter().map(|&column| column as usize);
                let existing = columns.filter(|&column| column < count);
                let groups: BTreeSet<GroupIndex> =
                    existing.map(|column| table.group_of_column(column)).collect();
                let groups = groups.into_iter().collect();
                self.core.register_interest(now, served.table, groups, chunks.clone())
            }
        };
        let Ok(scan) = scan else { return }; // It was a hint.
        peers.interests.insert((interest, file), scan);
        peers.interested.insert(scan, interest);
        // It is told at once of pages that are here already.
        let state = self.core.state();
        let Some(registered) = state.scan(scan) else { return };
        let chunks = chunks.into_iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex));
        let pages = chunks.flat_map(|chunk| state.pages_of(registered, chunk));
        for page in pages.filter(|&page| !state.is_cold(page)) {
            if let Some((file, index)) = peers.files.place_of(page) {
                peers.node.page_wanted(now, file, index, interest.node);
            }
        }
    }

    pub(super) fn unwant(
        &mut self,
        interest: RemoteInterest,
        file: FileId,
        rows: &[Range<u64>],
        now: Time,
    ) {
        let Some(peers) = &self.peers else { return };
        let Some(&scan) = peers.interests.get(&(interest, file)) else { return };
        let served = peers.files.get(file).and_then(|shared| shared.served.as_ref());
        if let Some(served) = served {
            let runs = served.parts.columns_of(0).snapshot.to_core_runs(rows);
            let chunks = runs.into_iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex));
            self.core.prune_scan(now, scan, chunks.collect());
        }
    }

    /// Removes the needs of a scan of another server that has ended.
    pub(super) fn forget_interest(&mut self, interest: RemoteInterest, now: Time) {
        let Some(peers) = &mut self.peers else { return };
        let of_interest = (interest, FileId(0))..=(interest, FileId(u32::MAX));
        let ended: Vec<_> = peers.interests.extract_if(of_interest, |_, _| true).collect();
        for (_, scan) in ended {
            peers.interested.remove(&scan);
            self.core.cancel_scan(now, scan);
        }
        self.remove_unused(now);
    }
}
