//! Owners of extents, by rendezvous hashing: a node that joins or leaves moves only its own share.

use twox_hash::XxHash64;

use crate::extents::Extents;
use crate::ids::NodeId;

/// The owner of an extent, and the node that takes over when the owner is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owners {
    /// The node that reads the extent for all.
    pub owner: NodeId,
    /// The next in order, if there is more than one node.
    pub runner_up: Option<NodeId>,
}

/// The owners of an extent of a file among some nodes; `None` if there is no node. `file` identifies the version of the file
/// alike on all nodes.
///
/// Nodes with different views of the living members may name different owners. That costs a second read, never a wrong
/// row.
#[must_use]
pub fn owners_of(
    members: impl IntoIterator<Item = NodeId>,
    file: u64,
    extent: usize,
) -> Option<Owners> {
    let (mut first, mut second) = (None, None);
    for node in members {
        let ranked = Some((weight(file, extent, node), node));
        if ranked > first {
            (first, second) = (ranked, first);
        } else if ranked > second && ranked != first {
            second = ranked;
        }
    }
    let (_, owner) = first?;
    Some(Owners { owner, runner_up: second.map(|(_, node)| node) })
}

fn weight(file: u64, extent: usize, node: NodeId) -> u64 {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&file.to_le_bytes());
    key[8..16].copy_from_slice(&(extent as u64).to_le_bytes());
    key[16..].copy_from_slice(&node.0.to_le_bytes());
    XxHash64::oneshot(u64::from(Extents::RULE), &key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn nodes(count: u64) -> impl Iterator<Item = NodeId> + Clone {
        (0..count).map(NodeId)
    }

    #[test]
    fn shares_are_even_and_only_those_of_the_node_that_leaves_move() {
        const EXTENTS: usize = 4_000;
        let mut shares = [0; 8];
        for extent in 0..EXTENTS {
            let before = owners_of(nodes(8), 7, extent).unwrap();
            shares[before.owner.0 as usize] += 1;
            let left = nodes(8).filter(|node| *node != before.owner);
            assert_eq!(owners_of(left, 7, extent).map(|left| left.owner), before.runner_up);
            let gone = NodeId(3);
            let without = owners_of(nodes(8).filter(|&node| node != gone), 7, extent).unwrap();
            assert!(before.owner == gone || without.owner == before.owner);
        }
        let even = EXTENTS / shares.len();
        assert!(
            shares.iter().all(|share| (even * 4 / 5..=even * 6 / 5).contains(share)),
            "{shares:?}"
        );
    }

    #[test]
    fn one_node_has_no_runner_up_and_the_order_of_members_does_not_matter() {
        let alone = owners_of(nodes(1), 1, 0).unwrap();
        assert_eq!(alone, Owners { owner: NodeId(0), runner_up: None });
        assert_eq!(owners_of([], 1, 0), None);
        let twice = owners_of([NodeId(0), NodeId(0)], 1, 0).unwrap();
        assert_eq!(twice.runner_up, None);
        let backward: Vec<_> = (0..9).rev().map(NodeId).collect();
        assert_eq!(owners_of(nodes(9), 1, 5), owners_of(backward, 1, 5));
    }

    #[test]
    fn the_owners_of_an_extent_are_the_same_in_every_version_of_the_program() {
        let owners = owners_of(nodes(16), 0x1234_5678_9abc_def0, 42).unwrap();
        assert_eq!((owners.owner, owners.runner_up), (NodeId(13), Some(NodeId(12))));
    }
}
