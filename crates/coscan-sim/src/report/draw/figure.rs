//! Pictures: a small SVG writer.

use std::fmt::Display;

use super::style::{self, Hue};

/// The width of every picture, in pixels at its natural size.
pub const WIDTH: f64 = 960.0;

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Figure {
    title: String,
    height: f64,
    body: String,
}

impl Figure {
    /// The picture as an SVG file of its own, for light and dark.
    #[must_use]
    pub fn standalone(&self) -> String {
        let style = format!("<style>\n{}</style>\n", style::picture());
        let ground = format!(
            "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{}\" rx=\"8\"/>\n",
            self.height
        );
        self.element(&format!("{style}{ground}"))
    }

    /// The picture as an element of a page that has the page's style.
    #[must_use]
    pub fn inline(&self) -> String {
        self.element("")
    }

    fn element(&self, head: &str) -> String {
        format!(
            "<svg class=\"figure\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
             width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
             <title>{title}</title>\n{head}{body}</svg>\n",
            height = self.height,
            title = escape(&self.title),
            body = self.body,
        )
    }
}

/// The alignment of a text relative to its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The middle of the text is at the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// A picture in the making. Places and sizes are in pixels, from the upper left corner.
#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
}

impl Canvas {
    /// An empty picture.
    #[must_use]
    pub fn new() -> Canvas {
        Canvas::default()
    }

    /// Finishes the picture. `title` is its text for screen readers.
    #[must_use]
    pub fn finish(self, title: &str, height: f64) -> Figure {
        Figure { title: title.to_string(), height, body: self.body }
    }

    /// Draws a straight line in one of the style's line classes.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(pixels);
        self.push(format!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// Writes a text whose base line is at the place. `class` is a list of the style's text classes.
    pub fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        self.push(text_element(&format!("class=\"{class}\""), anchor, at, text));
    }

    /// Writes a strong text in a colour.
    pub fn hue_text(&mut self, hue: Hue, anchor: Anchor, at: (f64, f64), text: &str) {
        let look = format!("class=\"strong\" style=\"fill:{}\"", hue.variable());
        self.push(text_element(&look, anchor, at, text));
    }

    /// Writes a small text in a colour that can be read on top of lines.
    pub fn hue_note(&mut self, hue: Hue, anchor: Anchor, at: (f64, f64), text: &str) {
        let look = format!("class=\"note haloed\" style=\"fill:{}\"", hue.variable());
        self.push(text_element(&look, anchor, at, text));
    }

    /// Writes the name of an upright axis: a text that runs upwards, centred at the place.
    pub fn upward_text(&mut self, (x, y): (f64, f64), text: &str) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(format!(
            "<text text-anchor=\"middle\" transform=\"translate({x} {y}) rotate(-90)\">{}</text>",
            escape(text)
        ));
    }

    /// Draws a rectangle in a class of the style.
    pub fn area(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.push(rectangle(&format!("class=\"{class}\""), at, size, ""));
    }

    /// Draws a rectangle in a class of the style, with a name that shows on hovering.
    pub fn named_area(&mut self, class: &str, at: (f64, f64), size: (f64, f64), name: &str) {
        self.push(rectangle(&format!("class=\"{class}\""), at, size, name));
    }

    /// Draws a rectangle in a colour, with a name that shows on hovering.
    pub fn bar(&mut self, hue: Hue, at: (f64, f64), size: (f64, f64), name: &str) {
        self.push(rectangle(&format!("fill=\"{}\"", hue.variable()), at, size, name));
    }

    /// Draws a path in a class of the style and a colour.
    pub fn path(&mut self, class: &str, hue: Hue, path: &str) {
        let stroke = hue.variable();
        self.push(format!("<path class=\"{class}\" stroke=\"{stroke}\" d=\"{path}\"/>"));
    }

    /// Draws a translucent area in a colour. `opacity` is between 0 and 1.
    pub fn shade(&mut self, hue: Hue, opacity: f64, path: &str, name: &str) {
        let look = format!("fill=\"{}\" fill-opacity=\"{opacity:.2}\"", hue.variable());
        self.push(titled("path", &format!("{look} d=\"{path}\""), name));
    }

    /// Draws a point in a colour, in the shape that belongs to it, with a name that shows on hovering.
    pub fn point(&mut self, hue: Hue, at: (f64, f64), name: &str) {
        let look = format!("fill=\"{}\" d=\"{}\"", hue.variable(), shape(hue, at));
        self.push(titled("path", &look, name));
    }

    /// Draws a dash across a place, in a class of the style, with a name that shows on hovering.
    pub fn dash(&mut self, class: &str, (x, y): (f64, f64), half_width: f64, name: &str) {
        let (from, to, y) = (pixels(x - half_width), pixels(x + half_width), pixels(y));
        self.push(titled("path", &format!("class=\"{class}\" d=\"M{from} {y}L{to} {y}\""), name));
    }

    fn push(&mut self, element: String) {
        self.body.push_str(&element);
        self.body.push('\n');
    }
}

/// The shape that belongs to a colour, so that points can also be distinguished without it. All are of about the same
/// size.
fn shape(hue: Hue, (x, y): (f64, f64)) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", pixels(x + dx), pixels(y + dy));
    let corners = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("M{}Z", corners.join("L"))
    };
    match hue.index() {
        1 => corners(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        2 => corners(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
        3 => corners(&[(0.0, -4.8), (4.9, 3.6), (-4.9, 3.6)]),
        5 => corners(&[(0.0, 4.8), (4.9, -3.6), (-4.9, -3.6)]),
        6 => corners(&[(-5.0, -2.2), (5.0, -2.2), (5.0, 2.2), (-5.0, 2.2)]),
        7 => corners(&[(-2.2, -5.0), (2.2, -5.0), (2.2, 5.0), (-2.2, 5.0)]),
        _ => format!("M{}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", at(-4.0, 0.0)),
    }
}

/// A path through places.
#[must_use]
pub fn polyline(places: impl IntoIterator<Item = (f64, f64)>) -> String {
    let places: Vec<String> =
        places.into_iter().map(|(x, y)| format!("{} {}", pixels(x), pixels(y))).collect();
    if places.is_empty() { String::new() } else { format!("M{}", places.join("L")) }
}

fn text_element(look: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    format!(
        "<text {look} text-anchor=\"{anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>",
        x = pixels(x),
        y = pixels(y),
        text = escape(text)
    )
}

fn rectangle(look: &str, (x, y): (f64, f64), (width, height): (f64, f64), name: &str) -> String {
    let [x, y, width, height] = [x, y, width, height].map(pixels);
    let place = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"1.5\"");
    titled("rect", &format!("{look} {place}"), name)
}

/// An element with a name that shows on hovering, if it has one.
fn titled(element: &str, attributes: &str, name: &str) -> String {
    if name.is_empty() {
        format!("<{element} {attributes}/>")
    } else {
        format!("<{element} {attributes}><title>{}</title></{element}>", escape(name))
    }
}

/// A length to a tenth of a pixel, without needless zeros.
pub fn pixels(value: f64) -> impl Display {
    (value * 10.0).round() / 10.0
}

/// Text that may stand between tags and in attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(character),
        }
    }
    escaped
}
