//! Kinds of pictures, drawn from prepared values.

pub mod bars;
pub mod curves;
pub mod dots;
pub mod groups;
pub mod layers;
pub mod scatter;
pub mod timeline;

use super::draw::figure::{Anchor, Canvas};
use super::draw::style::Hue;

/// The mark of a colour in a legend.
#[derive(Clone, Copy)]
enum Key {
    Square,
    Point,
}

/// Draws a legend of colours from left to right on a base line.
fn legend<'a>(
    canvas: &mut Canvas,
    key: Key,
    (left, base_line): (f64, f64),
    entries: impl IntoIterator<Item = (Hue, &'a str)>,
) {
    let mut x = left;
    for (hue, name) in entries {
        match key {
            Key::Square => canvas.bar(hue, (x, base_line - 11.0), (12.0, 12.0), name),
            Key::Point => canvas.point(hue, (x + 6.0, base_line - 5.0), name),
        }
        canvas.hue_text(hue, Anchor::Start, (x + 18.0, base_line), name);
        x += 50.0 + text_width(name);
    }
}

/// The approximate width of a text of the usual size, in pixels.
fn text_width(text: &str) -> f64 {
    7.6 * text.chars().count() as f64
}

/// Moves names that stand below one another apart where they would overlap, and none below `lowest`. Returns their
/// places in the order of `places`.
fn apart(places: &[f64], height: f64, lowest: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|left, right| places[*left].total_cmp(&places[*right]));
    let mut moved = places.to_vec();
    for pair in order.windows(2) {
        moved[pair[1]] = moved[pair[1]].max(moved[pair[0]] + height);
    }
    // Names pushed below the axis move up again, and push the ones above them.
    let mut limit = lowest;
    for index in order.into_iter().rev() {
        moved[index] = moved[index].min(limit);
        limit = moved[index] - height;
    }
    moved
}
