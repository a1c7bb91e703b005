//! Reports about owners and pages, for observers.

use std::collections::BTreeMap;

use coscan_core::PageIndex;

use super::{File, Node};
use crate::extents::Extents;
use crate::ids::{FileId, NodeId};
use crate::ownership::Owners;

/// The part of the shared files that a node owns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Share {
    /// The number of extents.
    pub extents: u64,
    /// The bytes of their pages.
    pub bytes: u64,
}

/// The share of each node, kept up to date as it is [renewed](Node::renew), so that no caller walks over all extents to
/// see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    by_node: BTreeMap<NodeId, Share>,
}

impl Shares {
    /// Moves an extent of this many bytes to another owner. A new extent had none before.
    pub(super) fn move_extent(&mut self, from: Option<NodeId>, to: NodeId, bytes: u64) {
        from.into_iter().for_each(|from| self.take(from, bytes));
        let share = self.by_node.entry(to).or_default();
        share.extents += 1;
        share.bytes += bytes;
    }

    /// Removes a file that is not shared any more.
    pub(super) fn remove(&mut self, file: &File) {
        for (owners, &bytes) in file.owners.iter().zip(&file.extent_bytes) {
            owners.owner().into_iter().for_each(|owner| self.take(owner, bytes));
        }
    }

    fn take(&mut self, from: NodeId, bytes: u64) {
        let Some(share) = self.by_node.get_mut(&from) else { return };
        share.extents -= 1;
        share.bytes -= bytes;
        if share.extents == 0 {
            self.by_node.remove(&from);
        }
    }
}

impl Node {
    /// This node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The share of each node in the files that this one shares. A node that is not listed owns nothing. While owners
    /// are being [computed again](Self::renew), new files do not count yet, and some extents count for the owner that
    /// they had before.
    pub fn shares(&self) -> impl Iterator<Item = (NodeId, Share)> {
        self.shares.by_node.iter().map(|(&node, &share)| (node, share))
    }

    /// The extents of a file; `None` if it is not shared.
    #[must_use]
    pub fn extents(&self, file: FileId) -> Option<&Extents> {
        self.files.get(&file).map(|file| &file.extents)
    }

    /// The owners of an extent of a shared file.
    #[must_use]
    pub fn owners_of_extent(&self, file: FileId, extent: usize) -> Owners {
        self.owners_in(file, extent)
    }

    /// The extent that a page of a shared file is in.
    #[must_use]
    pub fn extent_of(&self, file: FileId, page: PageIndex) -> usize {
        self.file(file).pages[page.0 as usize].0 as usize
    }

    /// Whether the owner of a page, another node, has announced that it has it. It does so if a scan of this one needs
    /// the page.
    #[must_use]
    pub fn owner_has(&self, file: FileId, page: PageIndex) -> bool {
        self.is_held_by(self.owner_of(file, page), file, page)
    }
}
