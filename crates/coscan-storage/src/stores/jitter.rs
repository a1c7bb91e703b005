//! Reproducible pseudo-random numbers: the jitter of pauses.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::SplitMix64;

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
        let seed = SplitMix64(self.seed).next_u64();
        let fraction = (SplitMix64(seed ^ drawn).next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
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
