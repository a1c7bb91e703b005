//! What neighbours on the ring tell each other.

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// A message to a neighbour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CirculateMessage<F> {
    /// To the predecessor, counter-clockwise: what nodes want. All requests of one step are in one message. [DC §5.2.2]
    Requests(Vec<Request<F>>),
    /// To the successor, clockwise: a fragment. Its bytes travel beside it.
    Fragment(FragmentHeader<F>),
    /// To the successor, once round: the owner cannot read this fragment, so whoever wants it reads the store.
    Unreadable {
        /// The fragment.
        fragment: F,
        /// Its owner.
        owner: NodeId,
        /// Nodes that it has come to.
        hops: u32,
    },
}

/// A node wants a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request<F> {
    /// The fragment.
    pub fragment: F,
    /// Who owns it, as the origin thinks. In `[DC]` only the owner knows; here ownership is a function of the members.
    pub owner: NodeId,
    /// Who wants it.
    pub origin: NodeId,
    /// Nodes that it has come to.
    pub hops: u32,
}

/// The header of a fragment on its way round.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FragmentHeader<F> {
    /// The fragment.
    pub fragment: F,
    /// The node that has injected it, to which it returns.
    pub owner: NodeId,
    /// The start of the owner that injected it: after another start it drops what comes back.
    pub incarnation: u64,
    /// The owner's number for this lap of this fragment, different for each: a second copy of it is known by that.
    pub sequence: u64,
    /// Nodes that it has come to in this lap.
    pub hops: u32,
    /// Nodes that have taken it in this lap.
    pub copies: u32,
    /// Laps, this one included.
    pub cycles: u32,
    /// Its level of interest at the end of the last lap.
    pub interest: f64,
}
