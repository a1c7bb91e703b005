//! The queue of a device: urgent items first, and among equals in order of arrival.

use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Waiting<T> {
    urgent: VecDeque<T>,
    others: VecDeque<T>,
}

impl<T> Waiting<T> {
    pub(super) fn none() -> Self {
        Self { urgent: VecDeque::new(), others: VecDeque::new() }
    }

    pub(super) fn push(&mut self, item: T, urgent: bool) {
        if urgent { self.urgent.push_back(item) } else { self.others.push_back(item) }
    }

    /// Puts a preempted item before all that are not urgent.
    pub(super) fn put_back(&mut self, item: T) {
        self.others.push_front(item);
    }

    /// Moves the items that `is_meant` behind all urgent ones.
    pub(super) fn escalate(&mut self, is_meant: impl Fn(&T) -> bool) {
        let (meant, others) = std::mem::take(&mut self.others).into_iter().partition(is_meant);
        self.others = others;
        self.urgent.extend::<VecDeque<T>>(meant);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.urgent.pop_front().or_else(|| self.others.pop_front())
    }

    pub(super) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }
}
