//! Pseudo-random numbers of many kinds.

use coscan_core::SplitMix64;

/// A generator of pseudo-random numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.next_u64()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).expect("below a 64-bit bound")
    }

    /// A number from `low` to `high`, both possible.
    ///
    /// # Panics
    /// If `high` is below `low`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "no number from {low} to {high}");
        if low == 0 && high == u64::MAX {
            self.next_u64()
        } else {
            low + self.below(high - low + 1)
        }
    }

    /// A count from `low` to `high`, both possible.
    ///
    /// # Panics
    /// If `high` is below `low`.
    pub fn count(&mut self, low: usize, high: usize) -> usize {
        usize::try_from(self.between(low as u64, high as u64)).expect("at most a usize")
    }

    /// True with a probability of `percent` percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from 0 (possible) to 1 (not possible), all 53 bits random.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there is none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        assert!(!items.is_empty(), "nothing to choose from");
        &items[self.count(0, items.len() - 1)]
    }

    /// Puts the items in random order, each order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.count(0, place));
        }
    }

    /// A generator of its own for one part of the work, so that parts do not shift each other's numbers.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_bounds_and_reaches_them() {
        let mut random = Random::new(1);
        let numbers: Vec<_> = (0..1_000).map(|_| random.between(3, 5)).collect();
        assert!((3..=5).all(|number| numbers.contains(&number)));
        assert!(numbers.iter().all(|number| (3..=5).contains(number)));
        assert_eq!(random.below(0), 0);
    }
}
