//! The actions of a node of the ring.

use super::message::CirculateMessage;
use crate::ids::NodeId;

/// An action for the caller. The caller keeps the bytes of the fragments in transit, by fragment: from a
/// [`Read`](Self::Read) that succeeds, or from their arrival, to their [`Release`](Self::Release).
#[derive(Clone, PartialEq, Debug)]
pub enum CirculateAction<F> {
    /// Send a message to a neighbour, and the bytes of its fragment if it has one. Call
    /// [`Circulate::sent`](crate::Circulate::sent) when the link has taken them.
    Send {
        /// The neighbour.
        to: NodeId,
        /// The message.
        message: CirculateMessage<F>,
    },
    /// This node owns the fragment: read it from the store into a transit buffer.
    /// [`Circulate::read`](crate::Circulate::read) or [`Circulate::unreadable`](crate::Circulate::unreadable) answers.
    Read(F),
    /// The fragment is in transit here and was requested: hand it to those who wait for it. The request has ended.
    Take(F),
    /// The transit buffer of the fragment is free again: drop its bytes. If it was to be sent and that has not begun,
    /// it is not sent.
    Release(F),
    /// The request has ended without the fragment: read it from the store.
    GiveUp(F, WhyGivenUp),
}

/// The reason why a request has ended without its fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhyGivenUp {
    /// Its owner is not on the ring, or does not accept it as its own.
    NotOwned,
    /// Its owner cannot read it.
    Unreadable,
    /// It has waited too long.
    Patience,
}
