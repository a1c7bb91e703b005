//! Who owns and has what, for those who watch.

use std::collections::BTreeMap;

use coscan_core::PageIndex;

use super::{File, Node};
use crate::extents::Extents;
use crate::ids::{FileId, NodeId};
use crate::ownership::Owners;

/// What a node owns of the files that are shared.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Share {
    /// Extents.
    pub extents: u64,
    /// The bytes of their pages.
    pub bytes: u64,
}

/// What each node owns, kept up to date as it is [renewed](Node::renew): nobody walks over all extents to see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    by_node: BTreeMap<NodeId, Share>,
}

impl Shares {
    /// An extent of so many bytes has another owner now; before it had none, if it is new.
    pub(super) fn move_extent(&mut self, from: Option<NodeId>, to: NodeId, bytes: u64) {
        from.into_iter().for_each(|from| self.take(from, bytes));
        let share = self.by_node.entry(to).or_default();
        share.extents += 1;
        share.bytes += bytes;
    }

    /// A file is shared no more.
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

    /// What each node owns of the files that this one shares. A node that is not listed owns nothing. While owners are being
    /// [computed again](Self::renew), new files do not count yet, and some extents for the owner that they had before.
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

    /// Whether the owner of a page, another node, has said that it has it. It says so if a scan of this one wants it.
    #[must_use]
    pub fn owner_has(&self, file: FileId, page: PageIndex) -> bool {
        self.is_held_by(self.owner_of(file, page), file, page)
    }
}
