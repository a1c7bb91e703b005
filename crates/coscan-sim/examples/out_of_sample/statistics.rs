//! Paired comparisons.

/// The difference of a ratio from one below which it counts as equal.
pub(crate) const THRESHOLD: f64 = 0.02;

/// A summary of the ratios of many cases.
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// Bounds of the 95 % confidence interval of the mean.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The number of cases in which it needs less, and more, by more than [`THRESHOLD`].
    pub(crate) wins: usize,
    pub(crate) losses: usize,
    /// The number of cases in which it needs more by more than a tenth.
    pub(crate) large_losses: usize,
    /// The ratio that is not exceeded in 95 % of the cases.
    pub(crate) p95: f64,
}

/// The geometric mean with a t interval on logarithms. Cases are drawn independently of each other, and the mean of
/// some hundred logarithms is close to normal.
pub(crate) fn summary(ratios: &[f64]) -> Summary {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let margin = t_95(count - 1.0) * (variance / count).sqrt();
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let of = |test: &dyn Fn(f64) -> bool| ratios.iter().filter(|&&ratio| test(ratio)).count();
    Summary {
        mean: mean.exp(),
        low: (mean - margin).exp(),
        high: (mean + margin).exp(),
        wins: of(&|ratio| ratio < 1.0 - THRESHOLD),
        losses: of(&|ratio| ratio > 1.0 + THRESHOLD),
        large_losses: of(&|ratio| ratio > 1.1),
        p95: sorted[(sorted.len() * 95).div_ceil(100) - 1],
    }
}

/// The 97.5th percentile of Student's t for `freedom` degrees of freedom, by the first terms of its expansion around
/// the normal one (Abramowitz, Stegun 26.7.5). It is right to three digits from ten degrees on.
fn t_95(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
}
