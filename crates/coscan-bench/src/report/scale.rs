//! From values to places on a picture.

/// A straight axis from zero.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    /// The largest value shown.
    max: f64,
    /// The distance between ticks.
    step: f64,
    /// Where zero and the largest value are, in pixels.
    from: f64,
    to: f64,
}

impl Linear {
    /// An axis that ends at `max`, with at most about `ticks` ticks.
    pub(super) fn new(max: f64, ticks: usize, from: f64, to: f64) -> Linear {
        let max = if max > 0.0 { max } else { 1.0 };
        let rough = max / ticks as f64;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(steps[3]);
        Linear { max, step, from, to }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * value / self.max
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        let count = (self.max / self.step + 1e-9).floor() as u32;
        (0..=count).map(|index| f64::from(index) * self.step).collect()
    }
}

/// An axis on which equal distances are equal ratios.
#[derive(Clone, Copy)]
pub(super) struct Logarithmic {
    min: f64,
    max: f64,
    from: f64,
    to: f64,
}

impl Logarithmic {
    /// `min` and `max` are above zero and differ.
    pub(super) fn new(min: f64, max: f64, from: f64, to: f64) -> Logarithmic {
        Logarithmic { min, max, from, to }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let part = (value.clamp(self.min, self.max) / self.min).ln() / (self.max / self.min).ln();
        self.from + (self.to - self.from) * part
    }

    /// The values 1, 2, 5, 10, … and their fractions that are on the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = (-3..=5).map(|exponent| 10_f64.powi(exponent));
        let ticks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * decade));
        let inside = self.min * 0.999..=self.max * 1.001;
        ticks.filter(|tick| inside.contains(tick)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_and_the_ends_are_at_the_ends() {
        let axis = Linear::new(187.0, 8, 100.0, 0.0);
        assert_eq!(axis.ticks(), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!((axis.place(0.0), axis.place(187.0)), (100.0, 0.0));
        assert_eq!(Linear::new(0.0, 4, 0.0, 1.0).ticks(), [0.0, 0.5, 1.0]);

        let axis = Logarithmic::new(0.5, 50.0, 0.0, 10.0);
        assert_eq!(axis.ticks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert!((axis.place(5.0) - 5.0).abs() < 1e-9);
        assert_eq!(axis.place(0.01), 0.0);
    }
}
