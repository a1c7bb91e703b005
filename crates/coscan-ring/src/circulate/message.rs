//! The messages between neighbours on the ring.

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// A message to a neighbour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CirculateMessage<F> {
    /// To the predecessor, counter-clockwise: the requests of nodes. All requests of one step are in one message. [DC
    /// §5.2.2]
    Requests(Vec<Request<F>>),
    /// To the successor, clockwise: a fragment. Its bytes travel beside it.
    Fragment(FragmentHeader<F>),
    /// To the successor, once round: the owner cannot read this fragment, so every node that needs it reads the store.
    Unreadable {
        /// The fragment.
        fragment: F,
        /// Its owner.
        owner: NodeId,
        /// The number of nodes that it has reached.
        hops: u32,
    },
}

/// A request of a node for a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request<F> {
    /// The fragment.
    pub fragment: F,
    /// The owner of the fragment, according to the origin. In `[DC]` only the owner knows; here ownership is a function
    /// of the members.
    pub owner: NodeId,
    /// The node that requests it.
    pub origin: NodeId,
    /// The number of nodes that it has reached.
    pub hops: u32,
}

/// The header of a fragment on its way round.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FragmentHeader<F> {
    /// The fragment.
    pub fragment: F,
    /// The node that has injected it, to which it returns.
    pub owner: NodeId,
    /// The incarnation of the owner that injected it. After another start, the owner drops what comes back.
    pub incarnation: u64,
    /// The owner's number for this lap of this fragment, different for each, by which a second copy is recognized.
    pub sequence: u64,
    /// The number of nodes that it has reached in this lap.
    pub hops: u32,
    /// The number of nodes that have taken it in this lap.
    pub copies: u32,
    /// The number of laps, this one included.
    pub cycles: u32,
    /// Its level of interest at the end of the last lap.
    pub interest: f64,
}
