//! Membership without a central list of servers: SWIM, by `foca`.
//!
//! A server that knows one other learns of all. Each probes another every second, and asks others to probe it before it
//! is suspected, so a broken link between two servers does not make the others believe that one is dead. News travels
//! on these messages. (A. Das, I. Gupta, A. Motivala: SWIM, DSN 2002.)

mod member;

use std::collections::{BTreeMap, VecDeque};
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use coscan_core::Time;
use foca::{Foca, NoCustomBroadcast, Notification, PeriodicParams, PostcardCodec, Runtime, Timer};
use rand::SeedableRng;
use rand::rngs::SmallRng;

pub use foca::Error as MembershipError;
pub use member::Member;

/// The most bytes of a message: some hundred members.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipAction {
    /// Send a message to a server. It may get lost.
    Send {
        /// The address of the server.
        to: String,
        /// The message, for [`Membership::handle`] there.
        message: Vec<u8>,
    },
    /// [`Membership::alive`] has changed.
    Changed,
}

/// The servers that are alive, as far as one of them knows.
///
/// A state machine, as [`Node`](crate::Node) is. The caller passes on events, with the time, carries out each
/// [`poll_action`](Self::poll_action), and arms a timer for [`poll_timeout`](Self::poll_timeout).
pub struct Membership {
    foca: Foca<Member, PostcardCodec, SmallRng, NoCustomBroadcast>,
    effects: Effects,
}

/// The effects that `foca` asks for.
#[derive(Debug, Default)]
struct Effects {
    now: Time,
    /// The timers by due time, then in the order in which they were made.
    timers: BTreeMap<(Time, u64), Timer<Member>>,
    timers_made: u64,
    actions: VecDeque<MembershipAction>,
}

impl Membership {
    /// A server that knows of no other. `seed` is the seed of its random choices.
    #[must_use]
    pub fn new(own: Member, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { foca: Foca::new(own, config(), random, PostcardCodec), effects: Effects::default() }
    }

    /// Asks a server to which there is a connection for the others, and makes this one known.
    pub fn introduce(&mut self, now: Time, address: &str) {
        self.effects.now = now;
        let announced = self.foca.announce(Member::at(address), &mut self.effects);
        debug_assert!(announced.is_ok(), "{announced:?}");
    }

    /// Handles a message from another server.
    ///
    /// # Errors
    /// If it is malformed, or comes from a server with the address of this one.
    pub fn handle(&mut self, now: Time, message: &[u8]) -> Result<(), MembershipError> {
        self.effects.now = now;
        self.foca.handle_data(message, &mut self.effects)
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) is reached.
    pub fn handle_timeout(&mut self, now: Time) {
        self.effects.now = now;
        let later = self.effects.timers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.effects.timers, later);
        let mut due: Vec<_> = due.into_values().collect();
        due.sort(); // As `foca` asks for timers that are late.
        for timer in due {
            // The error means that timers came in another order than they are due, as they do when
            // this server was stopped.
            let _late = self.foca.handle_timer(timer, &mut self.effects);
        }
    }

    /// Announces to some others that this server ends; they tell the rest.
    pub fn leave(&mut self, now: Time) {
        self.effects.now = now;
        let left = self.foca.leave_cluster(&mut self.effects);
        debug_assert!(left.is_ok(), "{left:?}");
    }

    /// The next action; `None` if there is none until the next event.
    pub fn poll_action(&mut self) -> Option<MembershipAction> {
        self.effects.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless an event comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.effects.timers.keys().next().map(|&(due, _)| due)
    }

    /// This server.
    #[must_use]
    pub fn own(&self) -> &Member {
        self.foca.identity()
    }

    /// The other servers that are alive, as far as is known here, in no particular order.
    pub fn alive(&self) -> impl Iterator<Item = &Member> {
        self.foca.iter_members().map(foca::Member::id)
    }
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let alive: Vec<_> = self.alive().collect();
        formatter
            .debug_struct("Membership")
            .field("own", self.own())
            .field("alive", &alive)
            .finish()
    }
}

impl Runtime<Member> for Effects {
    fn notify(&mut self, _: Notification<'_, Member>) {
        if self.actions.back() != Some(&MembershipAction::Changed) {
            self.actions.push_back(MembershipAction::Changed);
        }
    }

    fn send_to(&mut self, to: Member, data: &[u8]) {
        let message = data.to_vec();
        self.actions.push_back(MembershipAction::Send { to: to.address, message });
    }

    fn submit_after(&mut self, event: Timer<Member>, after: Duration) {
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let due = Time(self.now.0.saturating_add(after));
        self.timers.insert((due, self.timers_made), event);
        self.timers_made += 1;
    }
}

/// Periods for servers of one region: dead servers are known after about six seconds. Most are known at once, because
/// their connections break.
fn config() -> foca::Config {
    let often = |milliseconds, members| {
        let num_members = NonZeroUsize::new(members).expect("some members");
        Some(PeriodicParams { frequency: Duration::from_millis(milliseconds), num_members })
    };
    foca::Config {
        probe_period: Duration::from_secs(1),
        probe_rtt: Duration::from_millis(400),
        num_indirect_probes: NonZeroUsize::new(3).expect("some probes"),
        max_transmissions: NonZeroU8::new(10).expect("some transmissions"),
        suspect_to_down_after: Duration::from_secs(4),
        remove_down_after: Some(Duration::from_secs(3600)),
        max_packet_size: NonZeroUsize::new(MESSAGE_BYTES_MAX).expect("some bytes"),
        notify_down_members: true,
        periodic_announce: often(10_000, 1),
        periodic_announce_to_down_members: often(10_000, 2),
        periodic_gossip: often(500, 3),
    }
}
