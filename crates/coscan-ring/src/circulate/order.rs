//! The order of the ring.

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// A place on the ring. Each member carries its own; the ring closes after the largest.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct RingPosition(pub u128);

impl RingPosition {
    /// The place halfway from this one to the next, clockwise.
    #[must_use]
    fn halfway_to(self, next: Self) -> Self {
        let distance = next.0.wrapping_sub(self.0);
        // The distance from a place to itself is the whole ring.
        let half = if distance == 0 { 1 << 127 } else { distance / 2 };
        Self(self.0.wrapping_add(half))
    }
}

/// The place at which a new node joins: halfway from the most crowded member to its successor, so that it takes a part
/// of that one's load. "The new nodes should enter the ring next to the groovy nodes" `[DC §5.4.5]`. Members are given
/// as place and load, in any unit. Of those with the same load the first place counts.
#[must_use]
pub fn joining_position(members: impl IntoIterator<Item = (RingPosition, u64)>) -> RingPosition {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_unstable();
    let most = members.iter().map(|&(_, load)| load).max();
    let Some(crowded) = members.iter().position(|&(_, load)| Some(load) == most) else {
        return RingPosition::default();
    };
    let (next, _) = members[(crowded + 1) % members.len()];
    members[crowded].0.halfway_to(next)
}

/// The ring as a node sees it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Ring {
    /// All members, clockwise.
    members: Vec<(RingPosition, NodeId)>,
    /// The next node clockwise; `None` if the node is alone.
    pub(super) successor: Option<NodeId>,
    pub(super) predecessor: Option<NodeId>,
}

impl Ring {
    /// The ring of these members as `node` sees it. Members at one place are ordered by their ids.
    pub(super) fn of(
        node: NodeId,
        members: impl IntoIterator<Item = (RingPosition, NodeId)>,
    ) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_unstable();
        members.dedup_by_key(|&mut (_, id)| id);
        let count = members.len();
        let at = members.iter().position(|&(_, id)| id == node).filter(|_| count > 1);
        Self {
            successor: at.map(|at| members[(at + 1) % count].1),
            predecessor: at.map(|at| members[(at + count - 1) % count].1),
            members,
        }
    }

    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.members.iter().any(|&(_, id)| id == node)
    }

    /// The number of hops after which a message is dropped, because no node would end it.
    pub(super) fn hops_max(&self) -> u32 {
        2 * u32::try_from(self.members.len()).unwrap_or(u32::MAX / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_next_in_order_of_places_and_the_ring_closes() {
        let members = [(30, 1), (10, 2), (20, 3)].map(|(at, id)| (RingPosition(at), NodeId(id)));
        let ring = |id| Ring::of(NodeId(id), members);
        assert_eq!((ring(1).predecessor, ring(1).successor), (Some(NodeId(3)), Some(NodeId(2))));
        assert_eq!((ring(2).predecessor, ring(2).successor), (Some(NodeId(1)), Some(NodeId(3))));
        let alone = Ring::of(NodeId(2), [members[1]]);
        assert_eq!((alone.predecessor, alone.successor), (None, None));
        let stranger = Ring::of(NodeId(9), members);
        assert_eq!((stranger.predecessor, stranger.successor), (None, None));
    }

    #[test]
    fn a_new_node_follows_the_most_crowded_one() {
        let places = |loads: [u64; 3]| {
            let places = [0, 100, 300].map(RingPosition);
            joining_position(places.into_iter().zip(loads))
        };
        assert_eq!(places([1, 5, 2]), RingPosition(200));
        assert_eq!(places([5, 5, 2]), RingPosition(50));
        assert_eq!(places([1, 2, 5]).0, 300 + (u128::MAX - 299) / 2); // Past the end of the numbers.
        assert_eq!(joining_position([]), RingPosition(0));
        assert_eq!(joining_position([(RingPosition(7), 1)]), RingPosition(7 + (1 << 127)));
    }
}
