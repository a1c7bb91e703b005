//! The fragments that this node owns: those requested, being read, and going round.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use coscan_core::Time;

use super::Circulate;
use super::action::{CirculateAction, WhyGivenUp};
use super::interest::level_of_interest;
use super::message::{CirculateMessage, FragmentHeader};
use super::timed::Timed;

/// Fragments of this node that are or were requested.
#[derive(Clone, Debug)]
pub(super) struct Owned<F> {
    /// Fragments that were requested and are not read yet for lack of space, oldest first.
    pending: VecDeque<F>,
    states: BTreeMap<F, State>,
    /// Fragments that are going round. Those that are not back when they are due are lost.
    round: Timed<F, Round>,
    next_sequence: u64,
}

/// A fragment on its lap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Round {
    sequence: u64,
    /// Whether it was requested since it set out.
    is_requested: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Pending,
    Reading,
    Round,
}

impl<F: Copy + Ord> Owned<F> {
    pub(super) fn new() -> Self {
        Self {
            pending: VecDeque::new(),
            states: BTreeMap::new(),
            round: Timed::new(),
            next_sequence: 0,
        }
    }

    pub(super) fn goes_round(&self, fragment: F) -> bool {
        self.round.get(fragment).is_some()
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn going_round(&self) -> usize {
        self.round.keys().len()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.round.next_due()
    }

    /// Ends the laps of a fragment, if it is of this node. A pending read of it still takes place: the fragment that
    /// ended may have been a copy of another owner, since views of ownership differ.
    pub(super) fn end_round(&mut self, fragment: F) {
        if self.round.remove(fragment).is_some() {
            self.states.remove(&fragment);
        }
    }

    pub(super) fn forget(&mut self, fragment: F) {
        self.states.remove(&fragment);
        self.round.remove(fragment);
    }
}

impl<F: Copy + Ord + Debug> Circulate<F> {
    /// Handles a request for a fragment of this node. If it goes round, or will, that answers the request (2); else it
    /// is read when there is room (3, 4).
    pub(super) fn own(&mut self, now: Time, fragment: F) {
        if let Entry::Vacant(state) = self.owned.states.entry(fragment) {
            state.insert(State::Pending);
            self.owned.pending.push_back(fragment);
            self.load_pending(now);
        } else if let Some(round) = self.owned.round.get_mut(fragment) {
            round.is_requested = true;
        }
    }

    /// Reads pending fragments, as far as the bubble rule allows.
    pub(super) fn load_pending(&mut self, now: Time) {
        while !self.owned.pending.is_empty()
            && self.transit.reading() < self.config.reads_max
            && self.transit.start_reading()
        {
            let fragment = self.owned.pending.pop_front().expect("there is one");
            self.owned.states.insert(fragment, State::Reading);
            self.actions.push_back(CirculateAction::Read(fragment));
        }
        let (used, lap) = (self.transit.used(), self.lap.ns());
        self.threshold.adjust(now, used, lap, &self.config);
        self.stuck = self.transit.is_full().then(|| self.stuck.unwrap_or(now));
    }

    /// Answers [`Read`](CirculateAction::Read): the fragment is in its transit buffer. It is injected.
    pub fn read(&mut self, now: Time, fragment: F) {
        self.stop_reading(fragment);
        if self.transit.holds(fragment) {
            // C4: a copy by another owner is here. Views of ownership differ; one copy is enough.
            self.owned.forget(fragment);
            return self.load_pending(now);
        }
        let header = FragmentHeader {
            fragment,
            owner: self.id,
            incarnation: self.incarnation,
            sequence: 0,
            hops: 0,
            copies: u32::from(self.take(fragment)),
            cycles: 1,
            interest: 0.0,
        };
        self.passes_untaken(now, fragment);
        self.next_lap(now, header);
        self.load_pending(now);
    }

    /// Answers [`Read`](CirculateAction::Read): the fragment cannot be read. All nodes are told.
    pub fn unreadable(&mut self, now: Time, fragment: F) {
        self.stop_reading(fragment);
        self.owned.forget(fragment);
        self.give_up(fragment, WhyGivenUp::Unreadable);
        let (owner, hops) = (self.id, 0);
        self.send_on(CirculateMessage::Unreadable { fragment, owner, hops });
        self.load_pending(now);
    }

    fn stop_reading(&mut self, fragment: F) {
        let state = self.owned.states.get(&fragment);
        assert_eq!(state, Some(&State::Reading), "{fragment:?} was to be read");
        self.transit.stop_reading();
    }

    /// Sends a fragment of this node round once more.
    fn next_lap(&mut self, now: Time, header: FragmentHeader<F>) {
        let sequence = self.owned.next_sequence;
        self.owned.next_sequence += 1;
        let due = Time(now.0.saturating_add(self.resend_ns()));
        self.owned.states.insert(header.fragment, State::Round);
        let round = Round { sequence, is_requested: false };
        self.owned.round.insert(header.fragment, round, due);
        self.forward(FragmentHeader { sequence, ..header });
    }

    /// Handles a fragment of this node that has come back. It goes round again as long as it interests enough nodes.
    pub(super) fn came_back(&mut self, now: Time, header: FragmentHeader<F>) {
        let FragmentHeader { fragment, incarnation, sequence, cycles, .. } = header;
        let round = self.owned.round.get(fragment).copied();
        let is_mine = |round: &Round| (incarnation, sequence) == (self.incarnation, round.sequence);
        let Some(round) = round.filter(is_mine) else {
            return self.actions.push_back(CirculateAction::Release(fragment));
        };
        let interest = level_of_interest(&header);
        let is_kept = self.config.keeps_requested && round.is_requested;
        // NaN counts as no interest.
        let is_enough = interest >= self.threshold.value(&self.config);
        if !is_enough && !is_kept {
            self.owned.forget(fragment);
            return self.actions.push_back(CirculateAction::Release(fragment));
        }
        let cycles = cycles.saturating_add(1);
        self.next_lap(now, FragmentHeader { hops: 0, copies: 0, cycles, interest, ..header });
    }

    /// Counts fragments that are not back as lost: when they are requested again, they are read again. A copy that
    /// comes back nevertheless is dropped.
    pub(super) fn forget_lost(&mut self, now: Time) {
        while let Some(fragment) = self.owned.round.due_by(now) {
            if self.transit.holds(fragment) {
                // It is still here, because the successor does not take it.
                self.owned.round.set_due(fragment, Time(now.0.saturating_add(self.resend_ns())));
            } else {
                self.owned.forget(fragment);
            }
        }
    }
}
