//! Curves: one value against another, a curve each (CS07 Figures 6 and 7, CS11 Figures 6.2 and 6.4).

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH, pixels, polyline};
use crate::report::draw::numbers::{decimal, tick};
use crate::report::draw::scale::{Axis, Scale};
use crate::report::draw::style::Hue;

use super::apart;

const LEFT: f64 = 72.0;
/// The left end of the names of the curves.
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 384.0;
const HEIGHT: f64 = 440.0;
/// The least distance between two names, in pixels.
const NAME_HEIGHT: f64 = 18.0;
/// The most values for which the axis shows each. Beyond that it shows round numbers.
const TICKS_MAX: usize = 12;

/// The axes of a picture of curves.
#[derive(Clone, Debug)]
pub struct Axes {
    /// The title that distinguishes the picture from others beside it; may be empty.
    pub title: String,
    /// The name of the axis to the right, with its unit.
    pub across: String,
    /// The scale of the axis to the right.
    pub across_scale: Scale,
    /// The name of the upright axis, with its unit.
    pub upright: String,
    /// The scale of the upright axis.
    pub upright_scale: Scale,
    /// The unit of the values that stand beside the names of curves, with a space before it if it needs one.
    pub unit: String,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// Its points, in rising order.
    pub points: Vec<Point>,
    /// The figures of a paper, shown as dashes.
    pub paper: Vec<(f64, f64)>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The value to the right.
    pub across: f64,
    /// The value upwards.
    pub upright: f64,
    /// The lowest and the highest of the runs of which `upright` is the average.
    pub spread: Option<(f64, f64)>,
}

/// Draws a picture of curves, with the name and the last value of each at its end.
#[must_use]
pub fn figure(axes: &Axes, curves: &[Curve]) -> Figure {
    let mut canvas = Canvas::new();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let values = points().map(|point| point.across).chain(papers(curves).map(|(across, _)| across));
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let heights = points().flat_map(|point| [point.upright, point.spread.map_or(0.0, |s| s.1)]);
    let high = heights.chain(papers(curves).map(|(_, upright)| upright)).fold(0.0, f64::max);
    let low = points().map(|point| point.upright).filter(|value| *value > 0.0);
    let low = low.fold(high, f64::min);

    let x = axis(axes.across_scale, bounds(&values), 10, (LEFT + 20.0, RIGHT - 10.0));
    let y = axis(axes.upright_scale, (low * 0.8, high * 1.05), 6, (BOTTOM, TOP));
    for value in y.ticks() {
        canvas.line("grid", (LEFT, y.place(value)), (RIGHT, y.place(value)));
        canvas.text("", Anchor::End, (LEFT - 8.0, y.place(value) + 4.5), &tick(value));
    }
    canvas.line("base", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    for value in if values.len() <= TICKS_MAX { values } else { x.ticks() } {
        canvas.line("base", (x.place(value), BOTTOM), (x.place(value), BOTTOM + 5.0));
        canvas.text("", Anchor::Middle, (x.place(value), BOTTOM + 22.0), &tick(value));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    canvas.text("", Anchor::Middle, (middle, BOTTOM + 46.0), &axes.across);
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), &axes.upright);
    curves.iter().for_each(|curve| spread(&mut canvas, curve, x, y));
    curves.iter().for_each(|curve| draw(&mut canvas, axes, curve, x, y));
    names(&mut canvas, axes, curves, y);
    canvas.text("ink strong", Anchor::Start, (LEFT, TOP - 9.0), &axes.title);
    canvas.finish(&format!("{} against {} {}", axes.upright, axes.across, axes.title), HEIGHT)
}

fn papers(curves: &[Curve]) -> impl Iterator<Item = (f64, f64)> + '_ {
    curves.iter().flat_map(|curve| curve.paper.iter().copied())
}

fn bounds(sorted: &[f64]) -> (f64, f64) {
    (sorted.first().copied().unwrap_or(1.0), sorted.last().copied().unwrap_or(1.0))
}

fn axis(scale: Scale, (min, max): (f64, f64), ticks: usize, (from, to): (f64, f64)) -> Axis {
    match scale {
        Scale::Linear => Axis::linear(max, ticks, from, to),
        Scale::Logarithmic => Axis::logarithmic(min, max, from, to),
    }
}

/// Draws the band between the lowest and the highest run.
fn spread(canvas: &mut Canvas, curve: &Curve, x: Axis, y: Axis) {
    let band = curve.points.iter().filter_map(|point| Some((x.place(point.across), point.spread?)));
    let band: Vec<(f64, (f64, f64))> = band.collect();
    if band.len() > 1 {
        let above = band.iter().map(|(x, (_, high))| (*x, y.place(*high)));
        let below = band.iter().rev().map(|(x, (low, _))| (*x, y.place(*low)));
        let path = format!("{}Z", polyline(above.chain(below)));
        canvas.shade(curve.hue, 0.14, &path, "");
    }
}

fn draw(canvas: &mut Canvas, axes: &Axes, curve: &Curve, x: Axis, y: Axis) {
    let place = |point: &Point| (x.place(point.across), y.place(point.upright));
    canvas.path("curve", curve.hue, &polyline(curve.points.iter().map(place)));
    for point in &curve.points {
        let at = tick(point.across);
        let value = number(point.upright, &axes.unit);
        let name = format!("{} at {at}: {value}", curve.name);
        canvas.point(curve.hue, place(point), &name);
    }
    for (across, upright) in &curve.paper {
        let name = format!("{}, in the paper: {}", curve.name, number(*upright, &axes.unit));
        let (x, y) = (x.place(*across), y.place(*upright));
        canvas.path("curve", curve.hue, &format!("M{} {}h16", pixels(x - 8.0), pixels(y)));
        canvas.dash("paper", (x, y), 6.0, &name);
    }
}

fn number(value: f64, unit: &str) -> String {
    let number = if value < 100.0 { decimal(value) } else { tick(value.round()) };
    format!("{number}{unit}")
}

fn names(canvas: &mut Canvas, axes: &Axes, curves: &[Curve], y: Axis) {
    let ends: Vec<(&Curve, f64)> =
        curves.iter().filter_map(|curve| Some((curve, curve.points.last()?.upright))).collect();
    let places: Vec<f64> = ends.iter().map(|(_, last)| y.place(*last) + 4.5).collect();
    let places = apart(&places, NAME_HEIGHT, BOTTOM + 4.5);
    for ((curve, last), place) in ends.into_iter().zip(places) {
        let name = format!("{} {}", curve.name, number(last, &axes.unit));
        canvas.hue_text(curve.hue, Anchor::Start, (RIGHT + 8.0, place), &name);
    }
}
