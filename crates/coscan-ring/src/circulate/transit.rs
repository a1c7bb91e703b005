//! The transit buffers of a node.

use super::message::FragmentHeader;

/// The content of the transit buffers: one fragment each.
#[derive(Clone, Debug)]
pub(super) struct Transit<F> {
    buffers: usize,
    /// Buffers given to the link from the predecessor for what it sends next.
    reserved: usize,
    /// Buffers of fragments that are being read from the store.
    reading: usize,
    /// Fragments that wait for the link to the successor to take them, in this order.
    held: Vec<FragmentHeader<F>>,
}

impl<F: Copy + PartialEq> Transit<F> {
    pub(super) fn new(buffers: usize) -> Self {
        Self { buffers, reserved: 0, reading: 0, held: Vec::new() }
    }

    pub(super) fn used(&self) -> usize {
        self.reserved + self.reading + self.held.len()
    }

    pub(super) fn set_buffers(&mut self, buffers: usize) {
        assert!(self.used() <= buffers, "C1: {} buffers in use, {buffers} are left", self.used());
        self.buffers = buffers;
    }

    pub(super) fn reading(&self) -> usize {
        self.reading
    }

    pub(super) fn holds(&self, fragment: F) -> bool {
        self.held.iter().any(|held| held.fragment == fragment)
    }

    /// Takes all held fragments, in order.
    pub(super) fn take_held(&mut self) -> Vec<FragmentHeader<F>> {
        std::mem::take(&mut self.held)
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() >= self.buffers
    }

    /// The fragment that was held last.
    pub(super) fn newest(&self) -> Option<F> {
        self.held.last().map(|held| held.fragment)
    }

    /// Reserves a buffer for what the predecessor sends next, if one is free.
    pub(super) fn reserve(&mut self) -> bool {
        let is_free = !self.is_full();
        self.reserved += usize::from(is_free);
        is_free
    }

    /// Frees the buffer of what the predecessor has sent, or has failed to.
    pub(super) fn unreserve(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Takes a buffer for a fragment from the store, if one is free afterwards (the bubble rule, C2).
    pub(super) fn start_reading(&mut self) -> bool {
        let leaves_one = self.used() + 1 < self.buffers;
        self.reading += usize::from(leaves_one);
        leaves_one
    }

    pub(super) fn stop_reading(&mut self) {
        self.reading -= 1;
    }

    pub(super) fn hold(&mut self, fragment: FragmentHeader<F>) {
        assert!(!self.is_full(), "C1: a fragment has a buffer");
        self.held.push(fragment);
    }

    /// Releases the buffer of a fragment. Returns whether it was held.
    pub(super) fn release(&mut self, fragment: F) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.fragment != fragment);
        self.held.len() < before
    }
}
