//! The needs of scans of this node, which the owners are told.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Node;
use super::config::Sharing;
use crate::extents::Extents;
use crate::ids::{FileId, NodeId};
use crate::message::Message;

impl Node {
    /// Announces that a scan of this node will need these rows of these columns of a file. `scan` is a number of the
    /// caller's choice. Rows that are named later are added.
    pub fn need(&mut self, scan: u64, file: FileId, columns: &[u32], rows: &[Range<u64>]) {
        if self.config.sharing < Sharing::Needs {
            return;
        }
        for (owner, rows) in self.by_owner(file, rows) {
            self.told.entry(scan).or_default().insert(owner);
            self.send(owner, Message::Need { scan, file, columns: columns.to_vec(), rows });
        }
    }

    /// Whether others were told the needs of a scan.
    #[must_use]
    pub fn has_told(&self, scan: u64) -> bool {
        self.told.contains_key(&scan)
    }

    /// Announces that a scan does not need these rows any more.
    pub fn remove_need(&mut self, scan: u64, file: FileId, rows: &[Range<u64>]) {
        if !self.told.contains_key(&scan) {
            return;
        }
        for (owner, rows) in self.by_owner(file, rows) {
            if self.told[&scan].contains(&owner) {
                self.send(owner, Message::Unneed { scan, file, rows });
            }
        }
    }

    /// Announces that a scan has ended.
    pub fn end_need(&mut self, scan: u64) {
        for owner in self.told.remove(&scan).into_iter().flatten() {
            self.send(owner, Message::End { scan });
        }
    }

    /// Ends the needs told to a node that is no member any more. If it is there nevertheless, it need not keep anything
    /// for this one.
    pub(super) fn end_needs_of(&mut self, gone: NodeId) {
        let told = self.told.iter_mut();
        let scans = told.filter_map(|(&scan, told)| told.remove(&gone).then_some(scan));
        for scan in scans.collect::<Vec<_>>() {
            self.send(gone, Message::End { scan });
        }
    }

    /// These rows by the other nodes that own their extents.
    fn by_owner(&self, id: FileId, rows: &[Range<u64>]) -> BTreeMap<NodeId, Vec<Range<u64>>> {
        let file = self.file(id);
        let mut by_owner: BTreeMap<NodeId, Vec<Range<u64>>> = BTreeMap::new();
        if self.reads_alone(file.store) {
            return by_owner;
        }
        for range in known_rows(&file.extents, rows) {
            for extent in file.extents.of_row(range.start)..=file.extents.of_row(range.end - 1) {
                let owner = self.owners_in(id, extent).owner;
                if owner == self.id {
                    continue;
                }
                let of_extent = file.extents.rows(extent);
                let part = range.start.max(of_extent.start)..range.end.min(of_extent.end);
                let parts = by_owner.entry(owner).or_default();
                match parts.last_mut().filter(|last| last.end == part.start) {
                    Some(last) => last.end = part.end,
                    None => parts.push(part),
                }
            }
        }
        by_owner
    }
}

/// The parts of these ranges that are in the file.
pub(super) fn known_rows(
    extents: &Extents,
    rows: &[Range<u64>],
) -> impl Iterator<Item = Range<u64>> {
    let row_count = extents.row_count();
    let known = rows.iter().map(move |range| range.start..range.end.min(row_count));
    known.filter(|range| !range.is_empty())
}
