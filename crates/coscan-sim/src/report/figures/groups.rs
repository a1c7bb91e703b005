//! Groups of upright bars from 1 up to a ratio: equal lengths are equal ratios.

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH};
use crate::report::draw::numbers::{short, tick};
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::{Key, legend};

const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 356.0;
const HEIGHT: f64 = 416.0;
/// The part of the width of a group of bars that is left free.
const SPACE: f64 = 0.2;

/// The bars of one colour, one in each group.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// The ratio in each group, where there is one.
    pub ratios: Vec<Option<f64>>,
    /// The figure of a paper in each group that has one.
    pub paper: Vec<Option<f64>>,
}

/// The title and the names of the axes.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The text for screen readers.
    pub title: &'a str,
    /// The upright axis.
    pub upright: &'a str,
    /// The name of the groups.
    pub across: &'a str,
}

/// Draws bars from 1 up to each ratio on a logarithmic axis. Bars below 1 hang down. `groups` are the names of the
/// groups.
#[must_use]
pub fn figure(names: Names<'_>, groups: &[String], series: &[Series]) -> Figure {
    let mut canvas = Canvas::new();
    let ratios = series.iter().flat_map(|series| series.ratios.iter().chain(&series.paper));
    let (low, high) = ratios
        .flatten()
        .fold((1.0_f64, 2.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    // There is room for the numbers at the ends of the bars.
    let low = if low < 1.0 { low.max(0.01) * 0.8 } else { 1.0 };
    let axis = Axis::logarithmic(low, high * 1.25, BOTTOM, TOP);
    for ratio in axis.ticks() {
        let y = axis.place(ratio);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("", Anchor::End, (LEFT - 8.0, y + 4.5), &format!("{}×", tick(ratio)));
    }
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), names.upright);
    legend(
        &mut canvas,
        Key::Square,
        (LEFT, 26.0),
        series.iter().map(|one| (one.hue, one.name.as_str())),
    );

    let group_width = (RIGHT - LEFT) / groups.len().max(1) as f64;
    let bar_width = group_width * (1.0 - SPACE) / series.len().max(1) as f64;
    for (group, name) in groups.iter().enumerate() {
        let left = LEFT + group_width * (group as f64 + SPACE / 2.0);
        for (index, one) in series.iter().enumerate() {
            let x = left + bar_width * index as f64;
            bar(&mut canvas, one, (group, name), (x, bar_width), axis);
        }
        let middle = LEFT + group_width * (group as f64 + 0.5);
        canvas.text("ink", Anchor::Middle, (middle, BOTTOM + 22.0), name);
    }
    canvas.line("base", (LEFT, axis.place(1.0)), (RIGHT, axis.place(1.0)));
    canvas.text("", Anchor::Middle, ((LEFT + RIGHT) / 2.0, BOTTOM + 46.0), names.across);
    canvas.finish(names.title, HEIGHT)
}

fn bar(
    canvas: &mut Canvas,
    series: &Series,
    (group, group_name): (usize, &str),
    (x, width): (f64, f64),
    axis: Axis,
) {
    let middle = x + width / 2.0;
    if let Some(value) = series.ratios.get(group).copied().flatten() {
        let (one, end) = (axis.place(1.0), axis.place(value));
        let (top, bottom) = (one.min(end), one.max(end));
        let name = format!("{} {group_name}: {value:.2}", series.name);
        let (at, size) = ((x + 0.5, top), (width - 1.0, (bottom - top).max(1.0)));
        canvas.bar(series.hue, at, size, &name);
        if width >= 13.0 {
            let y = if value < 1.0 { bottom + 11.0 } else { top - 4.0 };
            canvas.text("small", Anchor::Middle, (middle, y), &short(value));
        }
    }
    if let Some(paper) = series.paper.get(group).copied().flatten() {
        let name = format!("{} {group_name}, in the paper: {paper:.2}", series.name);
        canvas.dash("paper", (middle, axis.place(paper)), width / 2.0 + 1.0, &name);
    }
}
