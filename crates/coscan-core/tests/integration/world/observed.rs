//! Observations of a world: the chunks and pages that were read, handed out and evicted.

use std::ops::Range;

use coscan_core::*;

use super::{World, worker};

impl World {
    /// The loads so far: their scan, table and chunk.
    pub(crate) fn loads(&self) -> impl Iterator<Item = (ScanId, TableId, u32)> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Load { scan, table, chunk, .. } => Some((*scan, *table, chunk.0)),
            _ => None,
        })
    }

    /// The chunks read, in order.
    pub(crate) fn chunks_read(&self) -> Vec<u32> {
        self.loads().map(|(.., chunk)| chunk).collect()
    }

    /// The pages read, in order, by their indexes in their tables.
    pub(crate) fn pages_read(&self) -> Vec<u32> {
        let lists = self.actions.iter().filter_map(|action| match action {
            Action::Load { pages, .. } => Some(pages),
            _ => None,
        });
        lists.flatten().map(|&page| self.page_of(page).1.0).collect()
    }

    /// The chunks handed out, in order, each with the scan that got it.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (ScanId, u32)> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Deliver { scan, chunk, .. } => Some((*scan, chunk.0)),
            _ => None,
        })
    }

    /// The chunks handed to a scan, in order.
    pub(crate) fn delivered_to(&self, scan: ScanId) -> Vec<u32> {
        self.deliveries().filter(|&(to, _)| to == scan).map(|(_, chunk)| chunk).collect()
    }

    /// The pages evicted, in order, by their indexes in their tables.
    pub(crate) fn evicted(&self) -> Vec<u32> {
        let pages = self.actions.iter().filter_map(|action| match action {
            Action::Evict { page } => Some(*page),
            _ => None,
        });
        pages.map(|page| self.page_of(page).1.0).collect()
    }

    /// The loads that were escalated, in order.
    pub(crate) fn escalated(&self) -> Vec<LoadId> {
        let loads = self.actions.iter().filter_map(|action| match action {
            Action::Escalate { load } => Some(*load),
            _ => None,
        });
        loads.collect()
    }

    /// Reads chunks into the pool with a scan that ends, and forgets the actions.
    pub(crate) fn warm(&mut self, table: TableId, groups: &[u32], rows: Range<u64>) {
        let scan = self.start(table, groups, rows, &[worker(0)]);
        self.drive();
        assert!(self.finished.contains(&scan));
        self.actions.clear();
        self.trace.clear();
    }
}
