//! Stacked amounts over time (CS11 Figure 6.1).

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH, polyline};
use crate::report::draw::numbers::tick;
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::apart;

const LEFT: f64 = 72.0;
/// The left end of the names of the layers.
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 324.0;
const HEIGHT: f64 = 380.0;

/// The title and the name of the axis.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The title that distinguishes the picture from others beside it; may be empty.
    pub title: &'a str,
    /// The upright axis, with its unit.
    pub upright: &'a str,
}

/// A moment, and from then on the amount of each layer, the lowest one first.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since the start.
    pub at_s: f64,
    /// One amount for each layer.
    pub amounts: Vec<f64>,
}

/// Draws the layers in steps, each darker than the one below it. `moments` are in rising order; the last one ends the
/// picture.
#[must_use]
pub fn figure(names: Names<'_>, layers: &[String], moments: &[Moment]) -> Figure {
    let mut canvas = Canvas::new();
    let highest = moments.iter().map(|moment| moment.amounts.iter().sum()).fold(0.0, f64::max);
    let end_s = moments.last().map_or(0.0, |moment| moment.at_s);
    let (time, y) = (Axis::linear(end_s, 10, LEFT, RIGHT), Axis::linear(highest, 6, BOTTOM, TOP));
    for value in y.ticks() {
        canvas.line("grid", (LEFT, y.place(value)), (RIGHT, y.place(value)));
        canvas.text("", Anchor::End, (LEFT - 8.0, y.place(value) + 4.5), &tick(value));
    }
    for seconds in time.ticks() {
        canvas.text("", Anchor::Middle, (time.place(seconds), BOTTOM + 20.0), &tick(seconds));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    canvas.text("", Anchor::Middle, (middle, BOTTOM + 44.0), "time since the start [s]");
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), names.upright);

    for (layer, name) in layers.iter().enumerate() {
        let below = outline(moments, layer, time, y);
        let mut above = outline(moments, layer + 1, time, y);
        above.reverse();
        let path = format!("{}Z", polyline(below.into_iter().chain(above)));
        canvas.shade(Hue::of_query(0), strength(layer, layers.len()), &path, name);
    }
    canvas.line("base", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    keys(&mut canvas, layers);
    canvas.text("ink strong", Anchor::Start, (LEFT, TOP - 9.0), names.title);
    canvas.finish(&format!("{} over time {}", names.upright, names.title), HEIGHT)
}

/// The sum of the first `layers` amounts as steps from left to right.
fn outline(moments: &[Moment], layers: usize, time: Axis, y: Axis) -> Vec<(f64, f64)> {
    let height = |moment: &Moment| y.place(moment.amounts.iter().take(layers).sum());
    let mut places = Vec::with_capacity(moments.len() * 2);
    for (index, moment) in moments.iter().enumerate() {
        let x = time.place(moment.at_s);
        if index > 0 {
            places.push((x, height(&moments[index - 1])));
        }
        places.push((x, height(moment)));
    }
    places
}

/// The opacity of a layer.
fn strength(layer: usize, layers: usize) -> f64 {
    0.12 + 0.88 * layer as f64 / (layers.max(2) - 1) as f64
}

/// Draws the legend of the layers, the highest one first.
fn keys(canvas: &mut Canvas, layers: &[String]) {
    let places: Vec<f64> = (0..layers.len()).map(|index| TOP + 22.0 * index as f64).collect();
    for ((layer, name), y) in layers.iter().enumerate().rev().zip(apart(&places, 18.0, BOTTOM)) {
        let x = RIGHT + 16.0;
        let square = polyline([(x, y), (x + 12.0, y), (x + 12.0, y + 12.0), (x, y + 12.0)]) + "Z";
        canvas.shade(Hue::of_query(0), strength(layer, layers.len()), &square, name);
        canvas.text("ink", Anchor::Start, (x + 20.0, y + 11.0), name);
    }
}
