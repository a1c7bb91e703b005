//! Ownership of the state, and the ways to change it.
//!
//! The state has one owner at a time: the thread that holds its lock. The owner applies what others have posted, in
//! order, then its own command, lets core decide, and releases the lock. Only then does it carry out the
//! [effects](super::effects). There are three ways in:
//!
//! | way | who | waits for the lock |
//! |---|---|---|
//! | [`Driver::call`] | callers that need an answer or start something | yes |
//! | [`Driver::offer`] | reports of reads, of workers | no: if another thread owns the state, that one applies it |
//! | [`Driver::post`] | destructors | no: the next owner of the state applies it, at the latest the pump |
//!
//! Beside these, [`Driver::lock`] waits for the lock to look, or to change what core need not know. It applies nothing
//! that was posted. The pump takes its turns as a call does.
//!
//! A thread that holds the lock takes no other locks but those of the inbox, of [leases](crate::chunks::lease), of the
//! decode cache, and of answers to requests for memory. A destructor never takes it: in debug builds [`InDestructor`]
//! makes sure of that.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;

use coscan_core::{LoadId, Time};

use super::bypass::Bypass;
use super::effects::{DecidedBypass, DecidedLoad, Effects};
use super::handle::Driver;
use super::message::Message;
use super::state::State;
use crate::io::load::{self, Load, Source, Urgency};
use crate::sync::destructor::InDestructor;
use crate::tables::registry::STEP_SLICES;

impl Driver {
    /// Gives the state a command.
    pub(super) fn call<R>(self: &Arc<Self>, command: impl FnOnce(&mut State, Time) -> R) -> R {
        self.call_then(command, |_, result| result)
    }

    /// Gives the state a command, and looks at the state once core has decided.
    pub(super) fn call_then<R, A>(
        self: &Arc<Self>,
        command: impl FnOnce(&mut State, Time) -> R,
        answer: impl FnOnce(&mut State, R) -> A,
    ) -> A {
        self.own(self.lock(), |state, now| {
            let result = command(state, now);
            state.decide(now);
            answer(state, result)
        })
    }

    /// Reports the end of something. Never waits. The messages of a thread are applied in order.
    pub(crate) fn offer(self: &Arc<Self>, message: Message) {
        self.inbox.offer(message, || {
            if let Some(state) = self.try_lock() {
                self.own(state, |_, _| ());
            }
        });
    }

    /// Posts the end of something. It locks nothing but the inbox and runs no other code, so destructors may call it.
    pub(crate) fn post(self: &Arc<Self>, message: Message) {
        self.inbox.post(message, self.bell());
        if self.is_closed.load(Ordering::Acquire) {
            // The pump is gone and does not answer the bell any more.
            let _allowed = InDestructor::except();
            self.call(|_, _| ());
        }
    }

    /// Applies what was posted, then `act`. Carries out the decisions once the lock is released.
    pub(super) fn own<A>(
        self: &Arc<Self>,
        mut state: Locked<'_>,
        act: impl FnOnce(&mut State, Time) -> A,
    ) -> A {
        // The time is taken under the lock, so that core's time does not run backwards.
        let now = self.now();
        self.drain(&mut state, now);
        let answer = act(&mut state, now);
        if !self.inbox.is_empty() {
            self.drain(&mut state, now); // What was offered meanwhile.
        }
        if self.is_closed.load(Ordering::Acquire) {
            state.make_all_steps(now); // There is no pump any more.
            state.decide(now);
        }
        let effects = self.settle(&mut state, now);
        drop(state);
        self.carry_out(effects);
        answer
    }

    /// Applies everything in the inbox.
    fn drain(&self, state: &mut State, now: Time) {
        let mut messages = std::mem::take(&mut state.spare);
        self.inbox.swap(&mut messages);
        let has_collected = state.collect_surplus(now);
        if has_collected || !messages.is_empty() {
            for message in messages.drain(..) {
                state.apply(message, now);
            }
            state.decide(now);
        }
        state.spare = messages;
    }

    /// The effects to be carried out after the lock is released.
    fn settle(&self, state: &mut State, now: Time) -> Effects {
        state.read_errors.clear();
        state.slices_left = STEP_SLICES;
        state.pass_on_record();
        let is_earlier = |time: &Time| state.armed.is_none_or(|armed| *time < armed);
        if let Some(time) = state.timeout(now).filter(is_earlier) {
            state.armed = Some(time);
            state.effects.rings = true;
        }
        // The decisions may let the pool shrink for workers that wait to share a column.
        let available_bytes = state.core.available_bytes();
        let has_grown = available_bytes > state.searched_available_bytes;
        state.searched_available_bytes = state.searched_available_bytes.min(available_bytes);
        if state.pool_lacks_memory() {
            state.want_for_pool(now);
        } else {
            state.effects.rings |= has_grown && state.credit.is_wanted();
        }
        self.memory.note_pool_held(state.core.state().held_bytes());
        state.effects.memory_wait_began |= self.waiting_requests.note(&state.core);
        state.totals.decision_ns += self.now().since(now);
        std::mem::take(&mut state.effects)
    }

    /// Locks the state to look at it, or to change what core need not know. What was posted before may not be applied
    /// yet.
    pub(super) fn lock(&self) -> Locked<'_> {
        InDestructor::check();
        // After a panic the contents were discarded at once, so the lock may be taken.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked::new(self, state)
    }

    fn try_lock(&self) -> Option<Locked<'_>> {
        InDestructor::check();
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Locked::new(self, state))
    }
}

impl Driver {
    /// Carries out the decisions of this thread. Threads may do so in another order than they decided in.
    pub(super) fn carry_out(self: &Arc<Self>, mut effects: Effects) {
        let Effects {
            loads,
            bypasses,
            outgoing,
            circulating,
            fragments,
            network,
            opening,
            escalated,
            woken,
            memory_wait_began,
            rings,
            ..
        } = &mut effects;
        for load in loads.drain(..) {
            self.runtime().spawn(load::run(self.load(load)));
        }
        for bypass in bypasses.drain(..) {
            self.runtime().spawn(load::run(self.bypassing_load(bypass)));
        }
        if let Some(network) = network {
            outgoing.drain(..).for_each(|message| network.send(message));
            circulating.drain(..).for_each(|(to, message)| network.send_circulating(to, message));
            fragments.drain(..).for_each(|fragment| network.send_fragment(fragment));
        }
        for (opener, file) in opening.drain(..) {
            opener.upgrade().into_iter().for_each(|opener| opener.open(file.clone()));
        }
        escalated.iter().for_each(Urgency::escalate);
        woken.drain(..).for_each(Waker::wake);
        if *memory_wait_began {
            self.waiting_requests.notify();
        }
        if *rings {
            self.bell().ring();
        }
        // Everything else is dropped here.
    }

    fn load(self: &Arc<Self>, decided: DecidedLoad) -> Load {
        let DecidedLoad { id, pages, parts, urgency, counters } = decided;
        Load {
            owner: Arc::clone(self) as _,
            id,
            unreported: pages.into_iter().collect(),
            source: Arc::new(Source { requests: Arc::clone(self.requests()), parts, urgency }),
            counters,
        }
    }
}

impl Driver {
    fn bypassing_load(self: &Arc<Self>, decided: DecidedBypass) -> Load {
        let DecidedBypass { served, pages, parts } = decided;
        let (requests, urgency) = (Arc::clone(self.requests()), Urgency::new(false));
        Load {
            owner: Arc::new(Bypass { driver: Arc::clone(self), served }),
            id: LoadId(0),
            unreported: pages.into_iter().collect(),
            source: Arc::new(Source { requests, parts, urgency }),
            counters: Arc::default(),
        }
    }
}

impl State {
    /// Lets core decide, to the end.
    pub(super) fn decide(&mut self, now: Time) {
        self.cover_overdraft(now); // Before others get what was returned.
        loop {
            while let Some(action) = self.core.poll_action() {
                self.totals.decisions += 1;
                self.note_event(&action);
                self.act(now, action);
            }
            if !self.settle_peers(now) {
                return;
            }
        }
    }

    /// The time at which to look again, if no decision is due by then.
    pub(super) fn timeout(&self, now: Time) -> Option<Time> {
        let of_core = self.core.poll_timeout().filter(|&time| time > now);
        let of_memory = self.revocation_due(now).into_iter().chain(self.request_timeout());
        let of_peers = self.peers.as_ref().and_then(|peers| peers.timeout());
        of_core.into_iter().chain(of_memory).chain(of_peers).min()
    }
}

/// A guard of the lock. If a panic unwinds meanwhile, all scans are ended: core may be half changed, and continuing
/// could give wrong rows or wait for ever.
pub(super) struct Locked<'a> {
    driver: &'a Driver,
    /// The guard; `None` once it is released.
    state: Option<MutexGuard<'a, State>>,
    was_panicking: bool,
}

impl<'a> Locked<'a> {
    fn new(driver: &'a Driver, state: MutexGuard<'a, State>) -> Self {
        Self { driver, state: Some(state), was_panicking: std::thread::panicking() }
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let has_panicked = !self.was_panicking && std::thread::panicking();
        let effects = has_panicked.then(|| {
            self.poison();
            std::mem::take(&mut self.effects)
        });
        self.state = None;
        for waker in effects.into_iter().flat_map(|effects| effects.woken) {
            waker.wake(); // Nobody else tells them.
        }
        self.driver.inbox.release(self.driver.bell());
    }
}
