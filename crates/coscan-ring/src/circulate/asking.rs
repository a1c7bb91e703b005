//! Requests of this node, and requests that pass.

use std::fmt::Debug;

use coscan_core::Time;

use super::Circulate;
use super::action::{CirculateAction, WhyGivenUp};
use super::message::{CirculateMessage, Request};
use crate::ids::NodeId;

/// The most requests in a message.
const REQUESTS_MAX: usize = 10_000;

/// An open request of this node.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    owner: NodeId,
    since: Time,
    /// Whether the fragment has passed since it was last asked for, when there was no room to take it. It may not come
    /// again.
    has_passed: bool,
    /// The number of times that the request has come back, or found its owner missing.
    returns: u32,
}

impl<F: Copy + Ord + Debug> Circulate<F> {
    /// Requests a fragment: it is taken when it passes next. `owner` is its expected owner. If the request is open
    /// already, nothing changes, unless the owner has changed: then the new one is asked.
    pub fn request(&mut self, now: Time, fragment: F, owner: NodeId) {
        match self.wanted.get_mut(fragment) {
            Some(wanted) if wanted.owner == owner => return,
            Some(wanted) => wanted.owner = owner,
            None => {
                let wanted = Wanted { owner, since: now, has_passed: false, returns: 0 };
                self.wanted.insert(fragment, wanted, now);
                if self.transit.holds(fragment) && self.take(fragment) {
                    return;
                }
            }
        }
        self.ask(now, fragment);
    }

    /// Whether there is no other node on the ring.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.ring.successor.is_none()
    }

    /// Whether a fragment of this node is going round.
    #[must_use]
    pub fn goes_round(&self, fragment: F) -> bool {
        self.owned.goes_round(fragment)
    }

    /// Withdraws the request for a fragment.
    pub fn withdraw(&mut self, fragment: F) {
        self.wanted.remove(fragment);
    }

    /// Sets the number of fragments that can be taken from now on. Each [`Take`](CirculateAction::Take) needs the room
    /// of one until this is called again. Without room a fragment passes, and its request stays open.
    pub fn set_room(&mut self, fragments: usize) {
        self.room = fragments;
        if fragments > 0 {
            let here: Vec<F> = self.wanted.keys().filter(|&it| self.transit.holds(it)).collect();
            for fragment in here {
                self.take(fragment);
            }
        }
    }

    /// Takes a fragment that is in transit here, if it is requested and there is room.
    pub(super) fn take(&mut self, fragment: F) -> bool {
        let is_taken = self.room > 0 && self.wanted.remove(fragment).is_some();
        if is_taken {
            self.room -= 1;
            self.actions.push_back(CirculateAction::Take(fragment));
        }
        is_taken
    }

    /// Notes that a fragment passes that could not be taken. Whether it comes again depends on others.
    pub(super) fn passes_untaken(&mut self, now: Time, fragment: F) {
        if let Some(wanted) = self.wanted.get_mut(fragment) {
            wanted.has_passed = true;
            self.set_resend(now, fragment);
        }
    }

    pub(super) fn give_up(&mut self, fragment: F, why: WhyGivenUp) {
        if self.wanted.remove(fragment).is_some() {
            self.actions.push_back(CirculateAction::GiveUp(fragment, why));
        }
    }

    pub(super) fn ask(&mut self, now: Time, fragment: F) {
        let Some(wanted) = self.wanted.get_mut(fragment) else { return };
        wanted.has_passed = false;
        let owner = wanted.owner;
        self.set_resend(now, fragment);
        if owner == self.id {
            self.own(now, fragment);
        } else {
            self.requests.push(Request { fragment, owner, origin: self.id, hops: 0 });
        }
    }

    fn set_resend(&mut self, now: Time, fragment: F) {
        let Some(wanted) = self.wanted.get(fragment) else { return };
        let patience = wanted.since.0.saturating_add(self.config.patience_ns);
        let resend = now.0.saturating_add(self.resend_ns());
        self.wanted.set_due(fragment, Time(resend.min(patience)));
    }

    /// Repeats requests without an answer.
    pub(super) fn ask_again(&mut self, now: Time) {
        while let Some(fragment) = self.wanted.due_by(now) {
            let wanted = self.wanted.get(fragment).expect("it is due");
            let (owner, is_over) =
                (wanted.owner, now.since(wanted.since) >= self.config.patience_ns);
            if is_over {
                self.give_up(fragment, WhyGivenUp::Patience);
            } else if owner != self.id && !self.ring.contains(owner) {
                self.not_owned(fragment);
            }
            self.ask(now, fragment);
        }
    }

    /// Handles a request of this node that has come back, or whose owner is missing: views of the membership may have
    /// to settle. (1)
    fn not_owned(&mut self, fragment: F) {
        let Some(wanted) = self.wanted.get_mut(fragment) else { return };
        wanted.returns += 1;
        if wanted.returns >= self.config.returns_max {
            self.give_up(fragment, WhyGivenUp::NotOwned);
        }
    }

    /// Handles a request from the successor: the six outcomes *(recalled)* of [DC §5.2.2].
    pub(super) fn requested(&mut self, now: Time, request: Request<F>) {
        let Request { fragment, owner, origin, hops } = request;
        let is_expected = |wanted: &Wanted| wanted.owner == owner && !wanted.has_passed;
        if origin == self.id {
            self.not_owned(fragment); // 1. Nobody owns it.
        } else if owner == self.id {
            self.own(now, fragment); // 2. to 4.
        } else if self.wanted.get(fragment).is_some_and(is_expected) {
            // 5. It is on its way, and will pass here before it reaches the origin.
        } else if hops.saturating_add(1) < self.ring.hops_max() {
            self.requests.push(Request { hops: hops + 1, ..request }); // 6.
        }
    }

    /// The requests of this step, in one message, unless there are very many.
    pub(super) fn poll_requests(&mut self) -> Option<CirculateAction<F>> {
        let count = self.requests.len().min(REQUESTS_MAX);
        let requests: Vec<_> = self.requests.drain(..count).collect();
        let to = self.ring.predecessor.filter(|_| !requests.is_empty())?;
        Some(CirculateAction::Send { to, message: CirculateMessage::Requests(requests) })
    }
}
