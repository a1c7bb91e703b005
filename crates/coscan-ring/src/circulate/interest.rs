//! The level of interest of a fragment, and the threshold below which it leaves the ring.

use coscan_core::Time;

use super::config::CirculateConfig;
use super::message::FragmentHeader;

/// The highest level of interest that is accepted from a neighbour, so that a fragment that no node takes leaves the
/// ring.
const HISTORY_MAX: f64 = 4.0;

/// The level of interest of a fragment at the end of a lap *(recalled)*: its previous level, which counts less with
/// each lap, and the part of the nodes that have taken it.
pub(super) fn level_of_interest<F>(fragment: &FragmentHeader<F>) -> f64 {
    let FragmentHeader { interest, cycles, copies, hops, .. } = fragment;
    let before = interest.clamp(0.0, HISTORY_MAX) / f64::from((*cycles).max(1));
    before + f64::from(*copies) / f64::from((*hops).max(1))
}

/// The threshold of a node, LOIT: it rises when space is scarce. [DC §5.4]
#[derive(Clone, Default, Debug)]
pub(super) struct Threshold {
    level: usize,
    changed: Option<Time>,
}

impl Threshold {
    pub(super) fn value(&self, config: &CirculateConfig) -> f64 {
        config.thresholds[self.level]
    }

    /// Adjusts the level to the transit buffers in use. A change needs a lap to show, so there is at most one in that
    /// time.
    pub(super) fn adjust(&mut self, now: Time, used: usize, lap_ns: u64, config: &CirculateConfig) {
        if self.changed.is_some_and(|changed| now.since(changed) < lap_ns) {
            return;
        }
        let part = used as f64 / config.transit_buffers.max(1) as f64;
        let level = match self.level {
            level if part > config.high_water => (level + 1).min(config.thresholds.len() - 1),
            level if part < config.low_water => level.saturating_sub(1),
            level => level,
        };
        if level != self.level {
            (self.level, self.changed) = (level, Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn interest_is_the_part_of_the_nodes_and_history_fades() {
        let lap = |interest, cycles, copies| FragmentHeader {
            fragment: 1,
            owner: NodeId(0),
            incarnation: 0,
            sequence: 0,
            hops: 8,
            copies,
            cycles,
            interest,
        };
        assert_eq!(level_of_interest(&lap(0.0, 1, 4)), 0.5);
        assert_eq!(level_of_interest(&lap(0.5, 2, 2)), 0.5);
        assert_eq!(level_of_interest(&lap(0.5, 5, 0)), 0.1);
    }

    #[test]
    fn the_threshold_rises_above_the_high_water_mark_once_a_lap_and_falls_below_the_low_one() {
        let config = CirculateConfig { transit_buffers: 10, ..CirculateConfig::default() };
        let mut threshold = Threshold::default();
        let mut after = |now, used| {
            threshold.adjust(Time(now), used, 100, &config);
            threshold.value(&config)
        };
        assert_eq!(after(0, 8), 0.1);
        assert_eq!(after(1, 9), 0.6);
        assert_eq!(after(50, 9), 0.6);
        assert_eq!(after(101, 9), 1.1);
        assert_eq!(after(300, 9), 1.1);
        assert_eq!(after(400, 4), 1.1);
        assert_eq!(after(500, 3), 0.6);
        assert_eq!(after(700, 3), 0.1);
    }
}
