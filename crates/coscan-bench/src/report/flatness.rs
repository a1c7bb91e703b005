//! CS07 Figure 7, which is the average time of a query for increasing numbers of simultaneous queries.

use coscan_sim::report::draw::figure::Figure;
use coscan_sim::report::draw::scale::Scale;
use coscan_sim::report::draw::style::Hue;
use coscan_sim::report::figures::curves::{self, Axes, Curve, Point};

/// One run of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatnessPoint {
    /// The engine.
    pub engine: String,
    /// The number of streams that ran at the same time.
    pub streams: usize,
    /// The average latency of their queries, in seconds.
    pub query_avg_s: f64,
}

/// One curve per engine, in the order in which they first occur. Equal steps to the right double the streams.
pub fn figure(points: &[FlatnessPoint]) -> Figure {
    let axes = Axes {
        title: "Average time of a query against the number of streams".into(),
        across: "streams at the same time".into(),
        across_scale: Scale::Logarithmic,
        upright: "average time of a query [s]".into(),
        upright_scale: Scale::Linear,
        unit: " s".into(),
    };
    curves::figure(&axes, &curves(points))
}

fn curves(points: &[FlatnessPoint]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for point in points {
        let shown =
            Point { across: point.streams as f64, upright: point.query_avg_s, spread: None };
        match curves.iter_mut().find(|curve| curve.name == point.engine) {
            Some(curve) => curve.points.push(shown),
            None => curves.push(Curve {
                name: point.engine.clone(),
                hue: Hue::of_engine(&point.engine, curves.len()),
                points: vec![shown],
                paper: Vec::new(),
            }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|left, right| left.across.total_cmp(&right.across));
    }
    curves
}
