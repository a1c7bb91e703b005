//! Decides by samples whether a filter is evaluated.

/// The number of rows of a sample. After each sample it is decided whether the filter goes on.
pub(super) const SAMPLE_ROWS: usize = 16_384;

/// A filter goes on if at most one in this many rows passes. Otherwise its evaluation may take longer than the work on the rows that
/// it drops.
const PASSING_DIVISOR: usize = 4;

/// After a sample in which too many rows passed, this many times as many rows pass unfiltered. It doubles each time.
const REST_SAMPLES: usize = 16;

/// The samples of a filter in a partition.
#[derive(Debug)]
pub(super) struct Sampling {
    /// Rows of the current sample, and those among them that passed.
    sampled: usize,
    passed: usize,
    /// The number of rows still to come that pass unfiltered.
    resting_rows: usize,
    /// The length of the next rest, in samples.
    rest_samples: usize,
}

impl Sampling {
    pub(super) fn new() -> Self {
        Self { sampled: 0, passed: 0, resting_rows: 0, rest_samples: REST_SAMPLES }
    }

    /// Whether the filter rests, so that these rows pass unfiltered.
    pub(super) fn rests_for(&mut self, rows: usize) -> bool {
        let rests = self.resting_rows > 0;
        self.resting_rows = self.resting_rows.saturating_sub(rows);
        rests
    }

    /// Lets all rows to come pass unfiltered.
    pub(super) fn rest_for_good(&mut self) {
        self.resting_rows = usize::MAX;
    }

    /// Counts rows, and those among them that passed. Returns whether they complete a sample that lets the filter go on.
    pub(super) fn add(&mut self, rows: usize, passed: usize) -> bool {
        self.sampled += rows;
        self.passed += passed;
        if self.sampled < SAMPLE_ROWS {
            return false;
        }
        let pays = self.passed * PASSING_DIVISOR <= self.sampled;
        if !pays {
            self.resting_rows = self.sampled.saturating_mul(self.rest_samples);
            self.rest_samples = self.rest_samples.saturating_mul(2);
        }
        (self.sampled, self.passed) = (0, 0);
        pays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_goes_on_while_at_most_a_quarter_passes() {
        let mut sampling = Sampling::new();
        for _ in 0..3 {
            assert!(!sampling.rests_for(SAMPLE_ROWS - 1));
            assert!(!sampling.add(SAMPLE_ROWS - 1, SAMPLE_ROWS / 4), "the sample is not complete");
            assert!(!sampling.rests_for(1));
            assert!(sampling.add(1, 0));
        }
    }

    #[test]
    fn otherwise_it_rests_and_longer_each_time() {
        let mut sampling = Sampling::new();
        for samples in [REST_SAMPLES, 2 * REST_SAMPLES, 4 * REST_SAMPLES] {
            assert!(!sampling.rests_for(SAMPLE_ROWS));
            assert!(!sampling.add(SAMPLE_ROWS, SAMPLE_ROWS / 4 + 1));
            for sample in 0..samples {
                assert!(sampling.rests_for(SAMPLE_ROWS), "{sample} of {samples}");
            }
        }
        assert!(!sampling.rests_for(1));
    }

    #[test]
    fn it_may_rest_for_good() {
        let mut sampling = Sampling::new();
        sampling.rest_for_good();
        assert!((0..1000).all(|_| sampling.rests_for(1 << 40)));
    }
}
