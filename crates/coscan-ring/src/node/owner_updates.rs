//! Owners of extents and sources of pages: computed again in steps for a new file, after a change of members, or after
//! the node has chosen otherwise.

use std::collections::BTreeSet;

use coscan_core::PageIndex;

use super::action::Action;
use super::{File, Node};
use crate::ids::{FileId, NodeId, StoreId};
use crate::ownership::{Owners, owners_of};

/// The owners of an extent, once they were computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedOwners {
    owners: Option<Owners>,
    /// The view of the members when they were computed, see [`Node::view`].
    view: u64,
}

impl CachedOwners {
    /// The owner, among the members of that view.
    pub(super) fn owner(&self) -> Option<NodeId> {
        self.owners.map(|owners| owners.owner)
    }
}

impl Node {
    /// Computes the owners of up to `pages_max` more pages, and reports from where they are read. Returns whether any
    /// are left. To be called after [`Action::Renew`], until it returns false. Requests go to the right owner
    /// meanwhile; only the buffer manager's costs of pages are out of date.
    pub fn renew(&mut self, mut pages_max: u32) -> bool {
        while pages_max > 0
            && let Some((id, first)) = self.unrenewed.pop_first()
        {
            let file = self.file(id);
            let count = file.pages.len() as u32;
            let end = count.min(first.0.saturating_add(pages_max));
            pages_max -= (end - first.0).max(1);
            let extents: BTreeSet<_> = match end < count {
                true => (first.0..end).map(|page| file.pages[page as usize].0 as usize).collect(),
                // There may be extents in which no page begins.
                false => (0..file.owners.len()).collect(),
            };
            extents.into_iter().for_each(|extent| self.renew_owners(id, extent));
            self.set_sources(id, (first.0..end).map(PageIndex));
            if end < count {
                self.unrenewed.insert(id, PageIndex(end));
            }
        }
        !self.unrenewed.is_empty()
    }

    fn renew_owners(&mut self, id: FileId, extent: usize) {
        let file = self.file(id);
        if file.owners[extent].view == self.view {
            return;
        }
        let (owners, bytes) = (self.owners_now(file, extent), file.extent_bytes[extent]);
        let cached = CachedOwners { owners: Some(owners), view: self.view };
        let file = self.files.get_mut(&id).expect("it was looked up above");
        let before = std::mem::replace(&mut file.owners[extent], cached);
        self.shares.move_extent(before.owner(), owners.owner, bytes);
    }

    /// The owners of an extent, among the current members.
    pub(super) fn owners_in(&self, file: FileId, extent: usize) -> Owners {
        let file = self.file(file);
        let CachedOwners { owners, view } = file.owners[extent];
        owners.filter(|_| view == self.view).unwrap_or_else(|| self.owners_now(file, extent))
    }

    fn owners_now(&self, file: &File, extent: usize) -> Owners {
        let owners = owners_of(self.members.iter().copied(), file.identity, extent);
        owners.expect("this node is a member")
    }

    /// Changes the members. Returns false if they are the same.
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

    /// Notes that pages of a store are read from elsewhere now.
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
