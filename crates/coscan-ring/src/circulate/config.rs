//! The parameters of a node of the ring.

/// The parameters of a node. Those marked *(recalled)* are from earlier chapters of the thesis, which is not among our
/// sources: the values are from memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CirculateConfig {
    /// The number of transit buffers. Each holds one fragment, whatever its size. With buffers of different sizes, the
    /// free space could be spread so thinly over the ring that no fragment fits anywhere, and the ring would stand
    /// still. At least two, or the node never injects. 64 of 128 MB are the 8 GB of `[DC §5.4]`.
    pub transit_buffers: usize,
    /// The most reads that an owner has in flight. Not stated in `[DC]`.
    pub reads_max: usize,
    /// Levels of the threshold below which a fragment leaves the ring, ascending *(recalled)*.
    pub thresholds: [f64; 3],
    /// The threshold rises by a level, at most once a lap, while more than this part of the transit buffers is in use
    /// *(recalled)*: fragments are dropped when space is scarce.
    pub high_water: f64,
    /// It falls by a level, at most once a lap, while less than this part of them is in use *(recalled)*.
    pub low_water: f64,
    /// The number of smoothed laps after which a request without an answer is sent again, and after which a fragment
    /// that does not come back counts as lost *(recalled)*.
    pub resend_laps: u32,
    /// The assumed time of a lap until one was seen, in nanoseconds. Not stated in `[DC]`.
    pub first_lap_ns: u64,
    /// Whether a fragment of too little interest goes round once more if it was requested since it last set out. As
    /// published *(recalled)* it does not: the node that it had passed already asks again, later.
    pub keeps_requested: bool,
    /// The number of times after which a request that comes back, or finds its owner missing, counts as having no
    /// owner. `[DC]` ends the query the first time *(recalled)*; views of the membership may need time to settle.
    pub returns_max: u32,
    /// Nanoseconds after which a request is given up, whatever the reason; `u64::MAX`: never, as in `[DC]`.
    pub patience_ns: u64,
}

impl CirculateConfig {
    pub(super) fn check(&self) {
        let [low, middle, high] = self.thresholds;
        assert!(low <= middle && middle <= high, "thresholds ascend");
        assert!(self.low_water <= self.high_water, "the low water mark is the lower one");
        assert!(self.resend_laps > 0 && self.first_lap_ns > 0, "there is a pause before a resend");
        assert!(self.returns_max > 0, "a request has to come back to show that nobody owns it");
        assert!(self.reads_max > 0, "an owner reads");
    }
}

impl Default for CirculateConfig {
    fn default() -> Self {
        Self {
            transit_buffers: 64,
            reads_max: 2,
            thresholds: [0.1, 0.6, 1.1],
            high_water: 0.8,
            low_water: 0.4,
            resend_laps: 4,
            keeps_requested: true,
            first_lap_ns: 1_000_000_000,
            returns_max: 2,
            patience_ns: 30_000_000_000,
        }
    }
}
