//! A picture: a small writer of SVG, and what it wrote.

use std::fmt::Display;

use super::style;

/// The width of every picture, in pixels at its natural size.
pub(super) const WIDTH: f64 = 960.0;

/// A finished picture.
#[derive(Debug, Clone)]
pub struct Figure {
    title: String,
    height: f64,
    body: String,
}

impl Figure {
    /// The picture as an SVG file of its own, for light and dark.
    pub fn standalone(&self) -> String {
        let style = format!("<style>\n{}</style>\n", style::picture());
        let ground = format!(
            "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{}\" rx=\"8\"/>\n",
            self.height
        );
        self.element(&format!("{style}{ground}"))
    }

    /// The picture as an element of a page that has the page's style.
    pub(super) fn inline(&self) -> String {
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

/// Where a text is relative to its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    pub(super) fn new() -> Canvas {
        Canvas { body: String::new() }
    }

    pub(super) fn finish(self, title: &str, height: f64) -> Figure {
        Figure { title: title.to_string(), height, body: self.body }
    }

    /// A straight line in one of the style's line classes.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(pixels);
        self.push(format!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// A text whose base line is at `y`; `class` is a list of the style's text classes.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        self.push(text_element(&format!("class=\"{class}\""), anchor, (x, y), text));
    }

    /// A text in the colour of an engine.
    pub(super) fn hue_text(&mut self, hue: usize, anchor: Anchor, at: (f64, f64), text: &str) {
        let look = format!("class=\"strong\" style=\"fill:var(--hue-{hue})\"");
        self.push(text_element(&look, anchor, at, text));
    }

    /// The name of an upright axis: a text that runs upwards, centred at the place.
    pub(super) fn upward_text(&mut self, (x, y): (f64, f64), text: &str) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(format!(
            "<text text-anchor=\"middle\" transform=\"translate({x} {y}) rotate(-90)\">{}</text>",
            escape(text)
        ));
    }

    /// A rectangle in a class of the style.
    pub(super) fn area(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let look = format!("class=\"{class}\"");
        self.push(rectangle(&look, at, size));
    }

    /// A rectangle in the colour of an engine, with a name that shows on hovering.
    pub(super) fn bar(&mut self, hue: usize, at: (f64, f64), size: (f64, f64), name: &str) {
        let look = format!("fill=\"var(--hue-{hue})\"");
        let rectangle = rectangle(&look, at, size).replace("/>", ">");
        self.push(format!("{rectangle}<title>{}</title></rect>", escape(name)));
    }

    /// A path in a class of the style and the colour of an engine.
    pub(super) fn path(&mut self, class: &str, hue: usize, path: &str) {
        self.push(format!("<path class=\"{class}\" stroke=\"var(--hue-{hue})\" d=\"{path}\"/>"));
    }

    /// A point on a curve, in the colour of an engine.
    pub(super) fn point(&mut self, hue: usize, (x, y): (f64, f64)) {
        let (x, y) = (pixels(x), pixels(y));
        self.push(format!("<circle fill=\"var(--hue-{hue})\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>"));
    }

    fn push(&mut self, element: String) {
        self.body.push_str(&element);
        self.body.push('\n');
    }
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

fn rectangle(look: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let [x, y, width, height] = [x, y, width, height].map(pixels);
    format!("<rect {look} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"1.5\"/>")
}

/// A length to a tenth of a pixel, without needless zeros.
pub(super) fn pixels(value: f64) -> impl Display {
    (value * 10.0).round() / 10.0
}

/// Text that may stand between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
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
