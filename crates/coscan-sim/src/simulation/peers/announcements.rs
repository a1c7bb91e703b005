//! The needs of other machines, and the advice to them.

use std::collections::BTreeSet;
use std::ops::Range;

use coscan_core::{GroupIndex, Order, PageIndex, ScanSpec, TableId};
use coscan_ring::{FileId, RemoteInterest};

use super::ForPeer;
use crate::simulation::Simulation;
use crate::violation::Broken;

impl Simulation<'_> {
    /// Tells machines that need pages that this machine has them, or is about to.
    pub(super) fn tell_interested(&mut self, file: FileId, pages: &[PageIndex]) {
        let peers = self.peers.as_mut().expect("a machine of a cluster");
        for &page in pages {
            let readers = self.manager.state().readers(self.numbers.id(file.0 as usize, page));
            let interests =
                readers.into_iter().filter_map(|scan| match peers.scans.get(&scan.id()) {
                    Some(ForPeer::Interest(interest)) => Some(interest.node),
                    _ => None,
                });
            let nodes: BTreeSet<_> = interests.collect();
            peers.node.page_kept(self.now, file, page, nodes);
        }
    }

    pub(in crate::simulation) fn tell_evicted(&mut self, table: usize, page: PageIndex) {
        if let Some(peers) = &mut self.peers {
            peers.node.page_evicted(self.now, FileId(table as u32), page);
        }
    }

    pub(super) fn want(
        &mut self,
        interest: RemoteInterest,
        file: FileId,
        columns: Vec<u32>,
        rows: &[Range<u64>],
    ) -> Result<(), Broken> {
        let table = TableId(file.0);
        let groups: Vec<_> = columns.into_iter().map(GroupIndex).collect();
        let chunks = self.workload.tables[file.0 as usize].layout.chunk_ranges(rows);
        // Machines here name all rows of a scan at once. If they repeat it, they had taken this one
        // for gone.
        self.end_scan_for(ForPeer::Interest(interest));
        let scan = self.manager.register_interest(self.now, table, &groups, &chunks);
        let scan = scan.expect("all machines have the same tables");
        let (order, pages) = (Order::Any, None);
        let computation = None;
        let spec =
            ScanSpec { table, groups, chunks, order, workers: 0, weight: 1, pages, computation };
        self.ledger.scan_started(scan, &spec, false)?;
        let peers = self.peers.as_mut().expect("a machine of a cluster");
        peers.add_scan(scan, ForPeer::Interest(interest));
        let state = self.manager.state();
        let registered = state.scan(scan).expect("it was registered above");
        for chunk in registered.needed().iter() {
            let pages = state.pages_of(registered, chunk).into_iter();
            for id in pages.filter(|&id| !state.is_cold(id)) {
                let page = self.numbers.page(id).page;
                peers.node.page_wanted(self.now, file, page, interest.node);
            }
        }
        Ok(())
    }

    pub(super) fn unwant(&mut self, interest: RemoteInterest, file: FileId, rows: Vec<Range<u64>>) {
        let layout = &self.workload.tables[file.0 as usize].layout;
        let chunks: Vec<_> = rows.into_iter().flat_map(|rows| layout.chunks_in(rows)).collect();
        let peers = self.peers.as_ref().expect("a machine of a cluster");
        if let Some(&scan) = peers.scan_of.get(&ForPeer::Interest(interest)) {
            self.manager.prune_scan(self.now, scan, chunks.iter().copied());
            self.ledger.pruned(scan, &chunks);
        }
    }
}
