//! The Data Cyclotron: fragments go round a ring of nodes as long as enough of them take a copy.
//!
//! **Data goes clockwise, from a node to its successor; requests go counter-clockwise.** The request of a node for a
//! fragment passes from node to node until it reaches the owner, which reads the fragment from the store and *injects*
//! it. Each node that the fragment reaches takes it if it is requested there, and sends it on. When it is back, its
//! owner computes how much *interest* it has met, and sends it round again or drops it. [DC §5.2, §5.4]
//!
//! ```text
//! node 2 wants f, node 0 owns it       2 → 1 → 0   request f
//! 0 reads f, injects it                0 → 1 → 2   f: 2 takes it
//!                                      2 → 3 → 0   f is back: a quarter of the nodes took it, that is enough
//! ```
//!
//! Chapter 5 of the thesis leaves the protocol to earlier chapters, which we do not have. What is known of those only
//! second-hand is marked *(recalled)*, and is a parameter in [`CirculateConfig`] if it is a number.

mod action;
mod asking;
mod config;
mod interest;
mod lap;
mod message;
mod order;
mod owning;
mod status;
mod timed;
mod transit;

use std::collections::VecDeque;
use std::fmt::Debug;

use coscan_core::Time;

use crate::ids::NodeId;
pub use action::{CirculateAction, WhyGivenUp};
use asking::Wanted;
pub use config::CirculateConfig;
use interest::Threshold;
use lap::Lap;
pub use message::{CirculateMessage, FragmentHeader, Request};
use order::Ring;
pub use order::{RingPosition, joining_position};
use owning::Owned;
pub use status::CirculateStatus;
use timed::Timed;
use transit::Transit;

/// A node of the ring. `F` is the caller's name of a fragment: the same on all nodes, and always for the same bytes.
///
/// It holds no bytes. The caller passes on events, with the time, then carries out each
/// [`poll_action`](Self::poll_action) until it returns `None`, and arms a timer for
/// [`poll_timeout`](Self::poll_timeout). Links keep the order of what they carry.
///
/// # Rules
/// - C1 the fragments in transit and those being read into it never exceed the transit buffers;
/// - C2 a node starts to read a fragment only if a transit buffer of its own is free afterwards, so the ring never
///   fills up, which would stop it for ever (the bubble rule). If it is full nevertheless, because the node with the
///   last free buffer is gone, nodes that get nothing sent drop a fragment after a few laps;
/// - C3 a request that is not withdrawn ends exactly once: the fragment is taken or given up;
/// - C4 a fragment is in transit in a node at most once;
/// - C5 nothing goes round for ever: the owner of a fragment drops it if it interests too few, or comes back from
///   before its start, and any node drops it at twice as many hops as there are members; the same holds for requests;
/// - C6 transit never waits for room to take a fragment.
#[derive(Clone, Debug)]
pub struct Circulate<F> {
    id: NodeId,
    incarnation: u64,
    config: CirculateConfig,
    ring: Ring,
    transit: Transit<F>,
    owned: Owned<F>,
    wanted: Timed<F, Wanted>,
    /// The number of fragments that can be taken.
    room: usize,
    threshold: Threshold,
    lap: Lap<F>,
    /// The time since which all transit buffers have been in use and the successor has taken none.
    stuck: Option<Time>,
    /// Requests for the next message to the predecessor.
    requests: Vec<Request<F>>,
    actions: VecDeque<CirculateAction<F>>,
}

impl<F: Copy + Ord + Debug> Circulate<F> {
    /// A node that is alone. `incarnation` differs for each start of a node with this id.
    ///
    /// # Panics
    /// If parameters contradict each other.
    #[must_use]
    pub fn new(id: NodeId, incarnation: u64, config: CirculateConfig) -> Self {
        config.check();
        Self {
            id,
            incarnation,
            config,
            ring: Ring::default(),
            transit: Transit::new(config.transit_buffers),
            owned: Owned::new(),
            wanted: Timed::new(),
            room: 0,
            threshold: Threshold::default(),
            lap: Lap::new(config.first_lap_ns),
            stuck: None,
            requests: Vec::new(),
            actions: VecDeque::new(),
        }
    }

    /// Sets the members that are alive, with their places. If the successor has changed, what the last one has not
    /// taken is sent to the new one. If this node is alone, transit is released. Requests that may have been lost with
    /// a member are sent again.
    pub fn set_ring(
        &mut self,
        now: Time,
        members: impl IntoIterator<Item = (RingPosition, NodeId)>,
    ) {
        let ring = Ring::of(self.id, members);
        let before = std::mem::replace(&mut self.ring, ring);
        if self.ring.successor != before.successor {
            self.reconnected(now);
        }
        if self.ring != before {
            for fragment in self.wanted.keys().collect::<Vec<_>>() {
                self.ask(now, fragment);
            }
        }
    }

    /// The connection to the successor was made anew: what the successor had not taken is sent again.
    pub fn reconnected(&mut self, now: Time) {
        for header in self.transit.take_held() {
            self.forward(header);
        }
        self.load_pending(now);
    }

    /// Reserves a transit buffer for the next fragment of the predecessor. If there is none, leave the fragment on the
    /// link, and try again after the next [`Release`](CirculateAction::Release) or change of a read.
    #[must_use]
    pub fn reserve(&mut self) -> bool {
        self.transit.reserve()
    }

    /// Frees a [reserved](Self::reserve) buffer, because its fragment does not come.
    pub fn unreserve(&mut self, now: Time) {
        self.transit.unreserve();
        self.load_pending(now);
    }

    /// Sets the number of transit buffers, which the application may use more or fewer of itself: the neutral zone of
    /// [DC §5.4.4].
    ///
    /// # Panics
    /// If more are in use.
    pub fn set_transit_buffers(&mut self, now: Time, buffers: usize) {
        self.config.transit_buffers = buffers;
        self.transit.set_buffers(buffers);
        self.load_pending(now);
    }

    /// Handles a message that has come whole. A fragment needs a buffer [reserved](Self::reserve) before. Store its
    /// bytes by fragment first, in place of the same bytes if they are there.
    pub fn handle(&mut self, now: Time, message: CirculateMessage<F>) {
        match message {
            CirculateMessage::Requests(requests) => {
                for request in requests {
                    self.requested(now, request);
                }
            }
            CirculateMessage::Fragment(header) => {
                self.transit.unreserve();
                self.arrived(now, header);
                self.load_pending(now);
            }
            CirculateMessage::Unreadable { fragment, owner, hops } => {
                self.give_up(fragment, WhyGivenUp::Unreadable);
                let hops = hops.saturating_add(1);
                if owner != self.id && hops < self.ring.hops_max() {
                    self.send_on(CirculateMessage::Unreadable { fragment, owner, hops });
                }
            }
        }
    }

    /// The link to `to` has taken a fragment.
    pub fn sent(&mut self, now: Time, to: NodeId, fragment: F) {
        if self.ring.successor == Some(to) && self.transit.release(fragment) {
            self.stuck = None;
            self.actions.push_back(CirculateAction::Release(fragment));
            self.load_pending(now);
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) is reached.
    pub fn handle_timeout(&mut self, now: Time) {
        self.forget_lost(now);
        self.ask_again(now);
        if self.stuck_until().is_some_and(|until| until <= now) {
            self.drop_newest(now);
        }
    }

    /// The next action; `None` if there is none until the next event.
    pub fn poll_action(&mut self) -> Option<CirculateAction<F>> {
        self.actions.pop_front().or_else(|| self.poll_requests())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless an event comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = [self.wanted.next_due(), self.owned.next_due(), self.stuck_until()];
        due.into_iter().flatten().min()
    }

    /// Handles a fragment that has come from the predecessor.
    fn arrived(&mut self, now: Time, header: FragmentHeader<F>) {
        let fragment = header.fragment;
        if self.transit.holds(fragment) {
            return; // C4: a second copy, after a change of the ring or by another owner.
        }
        self.lap.passes(now, (fragment, header.cycles), self.resend_ns());
        let hops = header.hops.saturating_add(1);
        let copies = header.copies.saturating_add(u32::from(self.take(fragment)));
        self.passes_untaken(now, fragment);
        let header = FragmentHeader { hops, copies, ..header };
        if header.owner == self.id {
            self.came_back(now, header);
        } else if hops >= self.ring.hops_max() {
            self.actions.push_back(CirculateAction::Release(fragment));
        } else {
            self.forward(header);
        }
    }

    /// Sends a fragment on; without a successor, drops it.
    fn forward(&mut self, header: FragmentHeader<F>) {
        if self.ring.successor.is_some() {
            self.transit.hold(header);
            self.send_on(CirculateMessage::Fragment(header));
        } else {
            self.owned.end_round(header.fragment);
            self.actions.push_back(CirculateAction::Release(header.fragment));
        }
    }

    /// The time at which transit that does not move counts as stuck for good.
    fn stuck_until(&self) -> Option<Time> {
        self.stuck.map(|since| Time(since.0.saturating_add(self.resend_ns())))
    }

    /// Frees a buffer in a ring that stands still. The newest fragment is the least likely to be on the link already.
    fn drop_newest(&mut self, now: Time) {
        self.stuck = None;
        if let Some(fragment) = self.transit.newest() {
            self.transit.release(fragment);
            self.owned.end_round(fragment);
            self.actions.push_back(CirculateAction::Release(fragment));
        }
        self.load_pending(now);
    }

    fn send_on(&mut self, message: CirculateMessage<F>) {
        let to = self.ring.successor;
        self.actions.extend(to.map(|to| CirculateAction::Send { to, message }));
    }

    /// Nanoseconds after which an answer counts as lost.
    fn resend_ns(&self) -> u64 {
        self.lap.ns().saturating_mul(u64::from(self.config.resend_laps))
    }
}
