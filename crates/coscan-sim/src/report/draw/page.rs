//! A self-contained page: no scripts, no fonts, no other files.

use super::figure::{Figure, escape};
use super::style;

/// A page with this title, these parts one after another, and a last line. The parts are HTML; the title is text.
#[must_use]
pub fn page(title: &str, body: &str, footer: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title} · coscan</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
         {body}<footer>{footer}</footer>\n</main>\n</body>\n</html>\n",
        title = escape(title),
        style = style::page(),
    )
}

/// The first lines of a page.
#[must_use]
pub fn head(eyebrow: &str, title: &str, summary: &str) -> String {
    let (eyebrow, title, summary) = (escape(eyebrow), escape(title), escape(summary));
    format!("<p class=\"eyebrow\">{eyebrow}</p>\n<h1>{title}</h1>\n<p>{summary}</p>\n")
}

/// A list of names and values.
#[must_use]
pub fn parameters(parameters: &[(String, String)]) -> String {
    let items = parameters.iter().map(|(name, value)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value))
    });
    format!("<dl>\n{}</dl>\n", items.collect::<String>())
}

/// A picture under a heading, with a caption that says how to read it.
#[must_use]
pub fn section(title: &str, caption: &str, figure: &Figure) -> String {
    heading(title, caption) + &self::figure(figure)
}

/// A heading with a caption, unless that is empty.
#[must_use]
pub fn heading(title: &str, caption: &str) -> String {
    let caption = match caption {
        "" => String::new(),
        caption => format!("<p class=\"caption\">{}</p>\n", escape(caption)),
    };
    format!("<h2>{}</h2>\n{caption}", escape(title))
}

/// A picture.
#[must_use]
pub fn figure(figure: &Figure) -> String {
    format!("<figure>\n{}</figure>\n", figure.inline())
}
