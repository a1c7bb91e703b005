//! Files and tables that are no longer held are removed from core step by step, once they are not in use.

use std::collections::BTreeSet;
use std::ops::Range;

use coscan_core::log::RecordedManager;
use coscan_core::{ChunkIndex, PageId, TableId, Time};

use super::Registry;
use crate::tables::metadata_reservation::MetadataReservation;

/// A file or table that is no longer held, but still in core. `_memory` is returned when it is gone.
#[derive(Debug)]
pub(super) enum PendingRemoval {
    Chunks { table: TableId, chunks: Vec<ChunkIndex>, _memory: Vec<MetadataReservation> },
    Pages { pages: Range<PageId>, _memory: MetadataReservation },
    Table(TableId),
}

impl PendingRemoval {
    /// Removes as much from core as is left of a step. Returns true if something stays.
    fn step(&mut self, core: &mut RecordedManager, now: Time, slices_left: &mut usize) -> bool {
        match self {
            Self::Chunks { table, chunks, .. } => {
                let groups = core.state().table(*table).group_count().max(1);
                let count = (*slices_left / groups).max(1).min(chunks.len());
                let step = chunks.split_off(chunks.len() - count);
                let runs = step.iter().map(|&chunk| chunk..ChunkIndex(chunk.0 + 1)).collect();
                match core.retire_chunks(now, *table, runs) {
                    Ok(()) => *slices_left = slices_left.saturating_sub(count * groups),
                    Err(_) => chunks.extend(step), // One is in use.
                }
                !chunks.is_empty()
            }
            Self::Pages { pages, .. } => {
                let count = (*slices_left).min((pages.end.0 - pages.start.0) as usize);
                let end = PageId(pages.start.0 + u32::try_from(count).unwrap_or(u32::MAX));
                if core.remove_pages(now, pages.start..end).is_ok() {
                    *slices_left -= count;
                    pages.start = end;
                }
                pages.start < pages.end
            }
            Self::Table(table) => core.remove_table(now, *table).is_err(),
        }
    }
}

impl Registry {
    /// Removes from core what has no holders and is not in use, at most this many slices and pages. To be called when a
    /// load has ended. Returns true if some is left that may be removed next.
    pub(crate) fn remove_unused(
        &mut self,
        core: &mut RecordedManager,
        now: Time,
        slices_left: &mut usize,
    ) -> bool {
        let before = (self.leaving.len(), *slices_left);
        let mut held_up = BTreeSet::new();
        self.leaving.retain_mut(|leaving| {
            if let PendingRemoval::Table(table) = leaving
                && held_up.contains(table)
            {
                return true; // After its chunks.
            }
            let stays = *slices_left == 0 || leaving.step(core, now, slices_left);
            if let PendingRemoval::Chunks { table, .. } = leaving
                && stays
            {
                held_up.insert(*table);
            }
            stays
        });
        let has_gone = (self.leaving.len(), *slices_left) != before;
        !self.leaving.is_empty() && (has_gone || *slices_left == 0)
    }
}
