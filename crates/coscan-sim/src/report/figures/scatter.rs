//! Points by two ratios to one of them, which is at (1, 1) (CS07 Figure 5, CS11 Figures 6.3 and 6.5).

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH};
use crate::report::draw::numbers::tick;
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::{Key, legend};

const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 40.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 536.0;
const HEIGHT: f64 = 592.0;
/// The height of a label, and the approximate width of a character in it.
const LABEL: (f64, f64) = (12.0, 6.3);

/// The axes of a picture of points.
#[derive(Clone, Debug)]
pub struct Axes {
    /// The text for screen readers.
    pub title: String,
    /// The name of the axis to the right.
    pub across: String,
    /// The name of the upright axis.
    pub upright: String,
    /// The name of the point at (1, 1).
    pub reference: (Hue, String),
}

/// The points of one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// Their name.
    pub name: String,
    /// Their colour.
    pub hue: Hue,
    /// The points.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Clone, Debug)]
pub struct Point {
    /// The text beside the point.
    pub label: String,
    /// The ratio to the right, above zero.
    pub across: f64,
    /// The ratio upwards, above zero.
    pub upright: f64,
}

/// A rectangle that is taken.
#[derive(Clone, Copy)]
struct Taken {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Taken {
    fn meets(&self, other: &Taken) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Draws the points on logarithmic axes: twice as much and half as much are equally far from the reference.
#[must_use]
pub fn figure(axes: &Axes, series: &[Series]) -> Figure {
    let mut canvas = Canvas::new();
    let points = || series.iter().flat_map(|series| &series.points);
    let x = axis(points().map(|point| point.across), LEFT, RIGHT);
    let y = axis(points().map(|point| point.upright), BOTTOM, TOP);

    legend(
        &mut canvas,
        Key::Point,
        (LEFT, 26.0),
        series.iter().map(|one| (one.hue, one.name.as_str())),
    );
    canvas.area("panel", (LEFT, TOP), (RIGHT - LEFT, BOTTOM - TOP));
    for ratio in x.ticks() {
        canvas.line("grid", (x.place(ratio), TOP), (x.place(ratio), BOTTOM));
        let at = (x.place(ratio), BOTTOM + 20.0);
        canvas.text("", Anchor::Middle, at, &format!("{}×", tick(ratio)));
    }
    for ratio in y.ticks() {
        canvas.line("grid", (LEFT, y.place(ratio)), (RIGHT, y.place(ratio)));
        let at = (LEFT - 8.0, y.place(ratio) + 4.5);
        canvas.text("", Anchor::End, at, &format!("{}×", tick(ratio)));
    }
    let one = (x.place(1.0), y.place(1.0));
    canvas.line("base", (one.0, TOP), (one.0, BOTTOM));
    canvas.line("base", (LEFT, one.1), (RIGHT, one.1));
    canvas.text("", Anchor::Middle, ((LEFT + RIGHT) / 2.0, BOTTOM + 44.0), &axes.across);
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), &axes.upright);

    let (hue, name) = &axes.reference;
    canvas.point(*hue, one, name);
    let place = |point: &Point| (x.place(point.across), y.place(point.upright));
    let mut taken = vec![dot(one)];
    taken.extend(points().map(|point| dot(place(point))));
    label(&mut canvas, &mut taken, *hue, one, name);
    for one in series {
        for point in &one.points {
            let name = format!(
                "{} {}: {:.2}× {}, {:.2}× {}",
                one.name, point.label, point.across, axes.across, point.upright, axes.upright
            );
            canvas.point(one.hue, place(point), &name);
        }
    }
    for one in series {
        for point in &one.points {
            label(&mut canvas, &mut taken, one.hue, place(point), &point.label);
        }
    }
    canvas.finish(&axes.title, HEIGHT)
}

/// An axis with all the ratios and 1, and some room beside them.
fn axis(ratios: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
    let ratios = ratios.filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    let (low, high) =
        ratios.fold((1.0_f64, 1.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    let room = (high / low).powf(0.07).max(1.05);
    Axis::logarithmic(low / room, high * room, from, to)
}

fn dot((x, y): (f64, f64)) -> Taken {
    Taken { left: x - 4.0, top: y - 4.0, right: x + 4.0, bottom: y + 4.0 }
}

/// Writes the label beside its point if there is room. Without room it only shows on hovering.
fn label(canvas: &mut Canvas, taken: &mut Vec<Taken>, hue: Hue, (x, y): (f64, f64), text: &str) {
    let (height, character) = LABEL;
    let width = character * text.chars().count() as f64;
    let places = [
        (Anchor::Start, x + 8.0, y + 4.0),
        (Anchor::End, x - 8.0, y + 4.0),
        (Anchor::Middle, x, y - 8.0),
        (Anchor::Middle, x, y + 16.0),
        (Anchor::Start, x + 6.0, y - 6.0),
        (Anchor::End, x - 6.0, y - 6.0),
        (Anchor::Start, x + 6.0, y + 14.0),
        (Anchor::End, x - 6.0, y + 14.0),
    ];
    for (anchor, at, base_line) in places {
        let left = match anchor {
            Anchor::Start => at,
            Anchor::Middle => at - width / 2.0,
            Anchor::End => at - width,
        };
        let place = Taken {
            left,
            top: base_line - height + 2.0,
            right: left + width,
            bottom: base_line + 2.0,
        };
        let inside = place.left > LEFT && place.right < RIGHT + 36.0 && place.bottom < BOTTOM;
        if inside && !taken.iter().any(|other| other.meets(&place)) {
            canvas.hue_note(hue, anchor, (at, base_line), text);
            taken.push(place);
            return;
        }
    }
}
