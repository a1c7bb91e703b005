//! Reads of a table over time, one panel below the other (CS07 Figure 4).

use std::collections::BTreeSet;

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH};
use crate::report::draw::numbers::tick;
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::{Key, legend};

const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 24.0;
const PANEL_HEIGHT: f64 = 110.0;
/// The distance from the top of one panel to the top of the next.
const PANEL_STEP: f64 = PANEL_HEIGHT + 38.0;
const TOP: f64 = 30.0;
/// The height of the legend.
const LEGEND_HEIGHT: f64 = 34.0;
/// The height below the last panel: the numbers and the name of the axis of time.
const BELOW: f64 = 50.0;

/// The upright axis of all panels.
#[derive(Clone, Debug)]
pub struct Positions {
    /// The name of the axis.
    pub name: String,
    /// The highest position.
    pub max: f64,
    /// The unit of the numbers on the axis, with a space before it if it needs one.
    pub unit: String,
}

/// The reads of one engine or policy.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// A few figures of the whole run.
    pub summary: String,
    /// The time when the run was over, in seconds.
    pub end_s: f64,
    /// Its reads.
    pub series: Vec<Series>,
}

/// Reads of one colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// Their colour.
    pub hue: Hue,
    /// The time of each read, in seconds since the start, and its position.
    pub reads: Vec<(f64, f64)>,
}

/// Draws one panel below the other, all on the same time. Every dot is a read. `colours` names the colours of dots that
/// differ from their panel's.
#[must_use]
pub fn figure(positions: &Positions, colours: &[(Hue, String)], panels: &[Panel]) -> Figure {
    let mut canvas = Canvas::new();
    let time_max_s = panels.iter().map(|panel| panel.end_s).fold(0.0, f64::max);
    let time = Axis::linear(time_max_s, 10, LEFT, RIGHT);
    let mut first = TOP;
    if !colours.is_empty() {
        legend(
            &mut canvas,
            Key::Square,
            (LEFT, TOP),
            colours.iter().map(|(hue, name)| (*hue, name.as_str())),
        );
        first += LEGEND_HEIGHT;
    }
    for (index, panel) in panels.iter().enumerate() {
        draw(&mut canvas, panel, positions, first + PANEL_STEP * index as f64, time);
    }
    let bottom = first + PANEL_STEP * (panels.len().max(1) - 1) as f64 + PANEL_HEIGHT;
    for seconds in time.ticks() {
        canvas.text("", Anchor::Middle, (time.place(seconds), bottom + 18.0), &tick(seconds));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    canvas.text("", Anchor::Middle, (middle, bottom + 40.0), "time since the start [s]");
    canvas.upward_text((18.0, (first + bottom) / 2.0), &positions.name);
    canvas.finish("Reads over time, one panel each", bottom + BELOW)
}

fn draw(canvas: &mut Canvas, panel: &Panel, positions: &Positions, top: f64, time: Axis) {
    let bottom = top + PANEL_HEIGHT;
    let position = Axis::linear(positions.max, 2, bottom, top);

    canvas.hue_text(panel.hue, Anchor::Start, (LEFT, top - 9.0), &panel.name);
    canvas.text("", Anchor::End, (RIGHT, top - 9.0), &panel.summary);
    canvas.area("panel", (LEFT, top), (RIGHT - LEFT, PANEL_HEIGHT));
    for seconds in time.ticks() {
        canvas.line("grid", (time.place(seconds), top), (time.place(seconds), bottom));
    }
    for value in position.ticks() {
        let number = format!("{}{}", tick(value), positions.unit);
        canvas.text("", Anchor::End, (LEFT - 8.0, position.place(value) + 4.5), &number);
    }
    let end = time.place(panel.end_s);
    canvas.line("base", (end, top), (end, bottom));
    if panel.series.iter().all(|series| series.reads.is_empty()) {
        let middle = ((LEFT + RIGHT) / 2.0, (top + bottom) / 2.0 + 5.0);
        canvas.text("", Anchor::Middle, middle, "no reads recorded");
    }
    for series in &panel.series {
        let path = path(&series.reads, positions.max, time, position);
        if !path.is_empty() {
            canvas.path("dots", series.hue, &path);
        }
    }
}

/// A path with one dot per place on the picture, however many reads fall on it.
fn path(reads: &[(f64, f64)], max: f64, time: Axis, position: Axis) -> String {
    let half_pixels = |place: f64| (place * 2.0).round() as i64;
    let places: BTreeSet<(i64, i64)> = reads
        .iter()
        .map(|(seconds, at)| {
            let at = position.place(at.clamp(0.0, max));
            (half_pixels(time.place(*seconds)), half_pixels(at))
        })
        .collect();
    let dots = places.into_iter().map(|(x, y)| format!("M{} {}h0", x as f64 / 2.0, y as f64 / 2.0));
    dots.collect()
}
