//! Reproducible pseudo-random numbers: faults of tests, and the jitter of pauses.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One step of splitmix64 (Steele, Lea, Flood 2014): well mixed bits from a counter.
pub(super) fn mix(value: u64) -> u64 {
    let mut bits = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Jitter, so that clients that were refused at the same moment do not return at the same moment. The same seed gives
/// the same sequence.
#[derive(Debug)]
pub struct Jitter {
    seed: u64,
    drawn: AtomicU64,
}

impl Jitter {
    /// Creates a jitter with this seed, or with one that differs between processes.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self { seed, drawn: AtomicU64::new(0) }
    }

    /// A duration between half of `longest` and all of it.
    #[must_use]
    pub fn up_to(&self, longest: Duration) -> Duration {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        let fraction = (mix(mix(self.seed) ^ drawn) >> 11) as f64 / (1_u64 << 53) as f64;
        longest.mul_f64(0.5 + fraction / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_reproducible_and_spread() {
        let draw = |seed| {
            let jitter = Jitter::new(Some(seed));
            (0..100).map(|_| jitter.up_to(Duration::from_secs(2))).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let (shortest, longest) = (draw(1).into_iter().min(), draw(1).into_iter().max());
        assert!(shortest.is_some_and(|pause| (1.0..1.1).contains(&pause.as_secs_f64())));
        assert!(longest.is_some_and(|pause| (1.9..=2.0).contains(&pause.as_secs_f64())));
    }
}
