//! CS07 Figure 7: the average time of a query when more and more of them run at once.

use super::figure::{Anchor, Canvas, Figure, WIDTH, pixels};
use super::numbers::{decimal, tick};
use super::scale::Linear;
use super::style::hue;

const LEFT: f64 = 72.0;
/// The names of the curves are right of here.
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 384.0;
const HEIGHT: f64 = 440.0;
/// The least distance between two names, in pixels.
const NAME_HEIGHT: f64 = 18.0;

/// One run of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatnessPoint {
    /// The engine.
    pub engine: String,
    /// How many streams ran at the same time.
    pub streams: usize,
    /// The average latency of their queries, in seconds.
    pub query_avg_s: f64,
}

/// One curve of a picture.
struct Curve<'a> {
    engine: &'a str,
    hue: usize,
    /// In the order of streams.
    points: Vec<&'a FlatnessPoint>,
}

/// One curve per engine, in the order in which they first occur; equal steps to the right double
/// the streams.
pub fn figure(points: &[FlatnessPoint]) -> Figure {
    let mut canvas = Canvas::new();
    let curves = curves(points);
    let streams_max = points.iter().map(|point| point.streams).max().unwrap_or(1).max(2);
    let doublings = Linear::new((streams_max as f64).log2(), 5, LEFT + 20.0, RIGHT - 10.0);
    let x = |streams: usize| doublings.place((streams.max(1) as f64).log2());
    let slowest_s = points.iter().map(|point| point.query_avg_s).fold(0.0, f64::max);
    let y = Linear::new(slowest_s * 1.05, 6, BOTTOM, TOP);

    for seconds in y.ticks() {
        canvas.line("grid", (LEFT, y.place(seconds)), (RIGHT, y.place(seconds)));
        canvas.text("", Anchor::End, (LEFT - 8.0, y.place(seconds) + 4.5), &tick(seconds));
    }
    canvas.line("base", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    let mut numbers: Vec<usize> = points.iter().map(|point| point.streams).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for streams in numbers {
        canvas.line("base", (x(streams), BOTTOM), (x(streams), BOTTOM + 5.0));
        canvas.text("", Anchor::Middle, (x(streams), BOTTOM + 22.0), &streams.to_string());
    }
    canvas.text(
        "",
        Anchor::Middle,
        ((LEFT + RIGHT) / 2.0, BOTTOM + 46.0),
        "streams at the same time",
    );
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), "average time of a query [s]");

    for curve in &curves {
        let places: Vec<(f64, f64)> =
            curve.points.iter().map(|p| (x(p.streams), y.place(p.query_avg_s))).collect();
        let path: Vec<String> =
            places.iter().map(|(x, y)| format!("{} {}", pixels(*x), pixels(*y))).collect();
        canvas.path("curve", curve.hue, &format!("M{}", path.join("L")));
        places.iter().for_each(|place| canvas.point(curve.hue, *place));
    }
    names(&mut canvas, &curves, y);
    canvas.finish("Average time of a query against the number of streams", HEIGHT)
}

fn curves(points: &[FlatnessPoint]) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for point in points {
        match curves.iter_mut().find(|curve| curve.engine == point.engine) {
            Some(curve) => curve.points.push(point),
            None => {
                let hue = hue(&point.engine, curves.len());
                curves.push(Curve { engine: &point.engine, hue, points: vec![point] });
            }
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by_key(|point| point.streams));
    curves
}

/// The name and the last value of each curve at its end, moved apart where they would overlap.
fn names(canvas: &mut Canvas, curves: &[Curve<'_>], y: Linear) {
    let mut ends: Vec<(f64, &Curve<'_>, f64)> = curves
        .iter()
        .filter_map(|curve| {
            let last = curve.points.last()?.query_avg_s;
            Some((y.place(last) + 4.5, curve, last))
        })
        .collect();
    ends.sort_by(|left, right| left.0.total_cmp(&right.0));
    for index in 1..ends.len() {
        ends[index].0 = ends[index].0.max(ends[index - 1].0 + NAME_HEIGHT);
    }
    // Those pushed below the axis move up again, and push the ones above them.
    let mut lowest = BOTTOM + 4.5;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(lowest);
        lowest = end.0 - NAME_HEIGHT;
    }
    for (place, curve, last_s) in ends {
        let text = format!("{} {} s", curve.engine, decimal(last_s));
        canvas.hue_text(curve.hue, Anchor::Start, (RIGHT + 8.0, place), &text);
    }
}
