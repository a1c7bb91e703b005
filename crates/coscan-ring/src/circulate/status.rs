//! The status of a node of the ring, for observers.

use std::fmt::Debug;

use super::Circulate;

impl<F: Copy + Ord + Debug> Circulate<F> {
    /// A picture of the node.
    #[must_use]
    pub fn status(&self) -> CirculateStatus {
        CirculateStatus {
            transit_buffers: self.transit.used(),
            pending: self.owned.pending(),
            going_round: self.owned.going_round(),
            requests: self.wanted.keys().len(),
            threshold: self.threshold.value(&self.config),
            lap_ns: self.lap.ns(),
        }
    }
}

/// A picture of a node of the ring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CirculateStatus {
    /// Transit buffers in use.
    pub transit_buffers: usize,
    /// Fragments of this node that were asked for and wait for space.
    pub pending: usize,
    /// Fragments of this node that go round.
    pub going_round: usize,
    /// Its open requests.
    pub requests: usize,
    /// The interest below which its fragments leave the ring.
    pub threshold: f64,
    /// The smoothed time of a lap, in nanoseconds.
    pub lap_ns: u64,
}
