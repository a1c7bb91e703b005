//! Who owns what, found out anew in steps: after members have changed, or the node has chosen to read alone.

use std::collections::BTreeSet;
use std::ops::Range;

use coscan_core::PageIndex;

use super::action::Action;
use super::{File, Node};
use crate::ids::{FileId, NodeId, StoreId};
use crate::ownership::{Owners, owners_of};

/// The owners of an extent, once they were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    owners: Option<Owners>,
    /// Among which members.
    view: u64,
}

impl Known {
    /// The owner when it was last looked at.
    pub(super) fn owner(&self) -> Option<NodeId> {
        self.owners.map(|owners| owners.owner)
    }
}

impl Node {
    /// Finds out for so many more pages from where they are read now; false if all are done. After
    /// [`Action::Renew`], to be called until then. What is not done yet is asked of the right owner all the same: only the buffer
    /// manager's idea of its cost is out of date.
    pub fn renew(&mut self, mut pages_max: u32) -> bool {
        while pages_max > 0
            && let Some((file, first)) = self.unrenewed.pop_first()
        {
            let count = self.file(file).pages.len() as u32;
            let end = count.min(first.0.saturating_add(pages_max));
            pages_max -= (end - first.0).max(1);
            let pages = first.0..end;
            let extents = self.extents_of(file, pages.clone());
            extents.for_each(|extent| self.renew_owners(file, extent));
            self.set_sources(file, pages.map(PageIndex));
            if end < count {
                self.unrenewed.insert(file, PageIndex(end));
            }
        }
        !self.unrenewed.is_empty()
    }

    /// These pages' extents; with the last page, those that follow, too.
    fn extents_of(&self, file: FileId, pages: Range<u32>) -> impl Iterator<Item = usize> + use<> {
        let of = self.file(file);
        let extents = pages.clone().map(|page| of.pages[page as usize].0 as usize);
        let extents: BTreeSet<usize> = extents.collect();
        let is_last = pages.end as usize == of.pages.len();
        let all = if is_last { 0..of.known.len() } else { 0..0 };
        extents.into_iter().chain(all)
    }

    fn renew_owners(&mut self, file: FileId, extent: usize) {
        let of = self.file(file);
        if of.known[extent].view == self.view {
            return;
        }
        let (owners, bytes) = (self.owners_now(of, extent), of.extent_bytes[extent]);
        let known = Known { owners: Some(owners), view: self.view };
        let of = self.files.get_mut(&file).expect("it was looked up above");
        let before = std::mem::replace(&mut of.known[extent], known);
        self.shares.move_extent(before.owner(), owners.owner, bytes);
    }

    /// The owners of an extent, among the members of now.
    pub(super) fn owners_in(&self, file: FileId, extent: usize) -> Owners {
        let of = self.file(file);
        let Known { owners, view } = of.known[extent];
        owners.filter(|_| view == self.view).unwrap_or_else(|| self.owners_now(of, extent))
    }

    fn owners_now(&self, file: &File, extent: usize) -> Owners {
        let owners = owners_of(self.members.iter().copied(), file.identity, extent);
        owners.expect("this node is a member")
    }

    /// The members are others now; false if they are not.
    pub(super) fn change_members(&mut self, members: impl IntoIterator<Item = NodeId>) -> bool {
        let mut members: Vec<_> = members.into_iter().chain([self.id]).collect();
        members.sort_unstable();
        members.dedup();
        let changes = members != self.members;
        if changes {
            self.members = members;
            self.view += 1;
            self.renew_files(self.files.keys().copied().collect::<Vec<_>>());
        }
        changes
    }

    /// Pages of a store are read from elsewhere now.
    pub(super) fn renew_store(&mut self, store: StoreId) {
        let files = self.files.iter().filter(|(_, file)| file.store == store);
        self.renew_files(files.map(|(&id, _)| id).collect::<Vec<_>>());
    }

    pub(super) fn renew_files(&mut self, files: impl IntoIterator<Item = FileId>) {
        if self.unrenewed.is_empty() {
            self.actions.push_back(Action::Renew);
        }
        self.unrenewed.extend(files.into_iter().map(|file| (file, PageIndex(0))));
    }
}
