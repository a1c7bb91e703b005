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

/// What each node owns, kept up to date: nobody walks over all extents to see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    by_node: BTreeMap<NodeId, Share>,
}

impl Shares {
    pub(super) fn add(&mut self, file: &File) {
        for (owners, bytes) in file.owners.iter().zip(&file.extent_bytes) {
            let share = self.by_node.entry(owners.owner).or_default();
            share.extents += 1;
            share.bytes += bytes;
        }
    }

    pub(super) fn remove(&mut self, file: &File) {
        for (owners, bytes) in file.owners.iter().zip(&file.extent_bytes) {
            if let Some(share) = self.by_node.get_mut(&owners.owner) {
                share.extents -= 1;
                share.bytes -= bytes;
            }
        }
    }

    /// Members have changed: these are all files.
    pub(super) fn recount<'a>(&mut self, files: impl IntoIterator<Item = &'a File>) {
        self.by_node.clear();
        files.into_iter().for_each(|file| self.add(file));
    }
}

impl Node {
    /// This node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// What each node owns of the files that this one shares. A node that is not listed owns nothing.
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
        self.file(file).owners[extent]
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
