//! Axes: from values to positions in a picture.

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal distances are equal differences. The axis begins at zero.
    Linear,
    /// Equal distances are equal ratios.
    Logarithmic,
}

/// An axis of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    scale: Scale,
    /// The values at the ends.
    min: f64,
    max: f64,
    /// The positions of the ends, in pixels.
    from: f64,
    to: f64,
    /// The distance between ticks of a linear axis.
    step: f64,
}

impl Axis {
    /// A linear axis from zero to `max`, with at most about `ticks` ticks, between two places in pixels.
    #[must_use]
    pub fn linear(max: f64, ticks: usize, from: f64, to: f64) -> Axis {
        let max = if max > 0.0 { max } else { 1.0 };
        let rough = max / ticks as f64;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(steps[3]);
        Axis { scale: Scale::Linear, min: 0.0, max, from, to, step }
    }

    /// A logarithmic axis between two values above zero. Values outside are shown at its ends.
    #[must_use]
    pub fn logarithmic(min: f64, max: f64, from: f64, to: f64) -> Axis {
        let min = if min > 0.0 { min } else { 1.0 };
        let max = if max > min { max } else { min * 2.0 };
        Axis { scale: Scale::Logarithmic, min, max, from, to, step: 0.0 }
    }

    /// The position of a value, in pixels.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => value / self.max,
            Scale::Logarithmic => {
                (value.clamp(self.min, self.max) / self.min).ln() / (self.max / self.min).ln()
            }
        };
        self.from + (self.to - self.from) * part
    }

    /// The round values on the axis, in rising order: multiples of one number, or on a logarithmic axis 1, 2, 5, 10, …
    /// and their fractions. There are more of them if the axis spans little and fewer if it spans much.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let count = (self.max / self.step + 1e-9).floor() as u32;
                (0..=count).map(|index| f64::from(index) * self.step).collect()
            }
            Scale::Logarithmic => {
                let decades = (-6..=9).map(|exponent| 10_f64.powi(exponent));
                let inside = self.min * 0.999..=self.max * 1.001;
                let factors: &[f64] = match self.max / self.min {
                    ratio if ratio > 2e3 => &[1.0],
                    ratio if ratio > 8.0 => &[1.0, 2.0, 5.0],
                    ratio if ratio > 3.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
                    _ => &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
                };
                decades
                    .flat_map(|decade| factors.iter().map(move |factor| factor * decade))
                    .filter(|tick| inside.contains(tick))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_and_the_ends_are_at_the_ends() {
        let axis = Axis::linear(187.0, 8, 100.0, 0.0);
        assert_eq!(axis.ticks(), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!((axis.place(0.0), axis.place(187.0)), (100.0, 0.0));
        assert_eq!(Axis::linear(0.0, 4, 0.0, 1.0).ticks(), [0.0, 0.5, 1.0]);

        let axis = Axis::logarithmic(0.5, 50.0, 0.0, 10.0);
        assert_eq!(axis.ticks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert!((axis.place(5.0) - 5.0).abs() < 1e-9);
        assert_eq!(axis.place(0.01), 0.0);
        assert_eq!(
            Axis::logarithmic(1.0, 1e5, 0.0, 1.0).ticks(),
            [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
        );
    }

    #[test]
    fn nothing_to_show_still_is_an_axis() {
        for axis in [Axis::linear(0.0, 5, 0.0, 9.0), Axis::logarithmic(0.0, 0.0, 0.0, 9.0)] {
            assert!(axis.place(0.0).is_finite());
            assert!(!axis.ticks().is_empty());
        }
    }
}
