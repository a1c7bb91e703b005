//! Horizontal bars, with marks for the lower bound and for the figures of a paper.

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH};
use crate::report::draw::numbers::tick;
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::text_width;

const LEFT: f64 = 130.0;
/// The left end of the numbers at the ends of the bars.
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 34.0;
const BAR_HEIGHT: f64 = 26.0;
const BAR_STEP: f64 = 40.0;

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub hue: Hue,
    /// Its length, in the unit of the axis.
    pub value: f64,
    /// The value as text.
    pub text: String,
    /// The text after the value, such as a ratio.
    pub note: String,
    /// The figure of a paper.
    pub paper: Option<f64>,
}

/// A line across all bars.
#[derive(Clone, Debug)]
pub struct ReferenceLine {
    /// Its position, in the unit of the axis.
    pub value: f64,
    /// Its name.
    pub name: String,
}

/// Draws a picture of bars. `axis_name` is the name of the axis, with its unit.
#[must_use]
pub fn figure(title: &str, axis_name: &str, bars: &[Bar], least: Option<&ReferenceLine>) -> Figure {
    let mut canvas = Canvas::new();
    let values = bars.iter().flat_map(|bar| [Some(bar.value), bar.paper]);
    let most = values.chain([least.map(|least| least.value)]).flatten().fold(0.0, f64::max);
    let axis = Axis::linear(most, 6, LEFT, RIGHT);
    let bottom = TOP + BAR_STEP * bars.len() as f64;
    for value in axis.ticks() {
        let x = axis.place(value);
        canvas.line("grid", (x, TOP - 8.0), (x, bottom));
        canvas.text("", Anchor::Middle, (x, bottom + 18.0), &tick(value));
    }
    canvas.text("", Anchor::Middle, ((LEFT + RIGHT) / 2.0, bottom + 40.0), axis_name);
    for (index, bar) in bars.iter().enumerate() {
        draw(&mut canvas, bar, axis, TOP + BAR_STEP * index as f64);
    }
    if let Some(least) = least {
        let x = axis.place(least.value);
        canvas.line("halo", (x, TOP - 10.0), (x, bottom));
        canvas.line("least", (x, TOP - 10.0), (x, bottom));
        let anchor = if x < (LEFT + RIGHT) / 2.0 { Anchor::Start } else { Anchor::End };
        canvas.text("", anchor, (x, TOP - 16.0), &least.name);
    }
    canvas.finish(title, bottom + 52.0)
}

fn draw(canvas: &mut Canvas, bar: &Bar, axis: Axis, top: f64) {
    let end = axis.place(bar.value);
    canvas.hue_text(bar.hue, Anchor::End, (LEFT - 12.0, top + 18.0), &bar.name);
    let size = ((end - LEFT).max(1.0), BAR_HEIGHT);
    canvas.bar(bar.hue, (LEFT, top), size, &format!("{}: {}", bar.name, bar.text));
    let mut after = end + 10.0;
    if let Some(paper) = bar.paper {
        let x = axis.place(paper);
        canvas.line("halo", (x, top - 3.0), (x, top + BAR_HEIGHT + 3.0));
        let name = format!("{}, in the paper: {}", bar.name, tick(paper));
        canvas.named_area("dark", (x - 1.0, top - 3.0), (2.0, BAR_HEIGHT + 6.0), &name);
        // The number does not stand on the mark.
        if x > end - 4.0 && x < end + 16.0 + text_width(&bar.text) + text_width(&bar.note) {
            after = x + 8.0;
        }
    }
    canvas.text("ink strong", Anchor::Start, (after, top + 18.0), &bar.text);
    after += 16.0 + text_width(&bar.text);
    canvas.text("", Anchor::Start, (after, top + 18.0), &bar.note);
}
