//! How many bytes each engine read from the device.

use crate::metrics::EngineReport;

use super::figure::{Anchor, Canvas, Figure, WIDTH};
use super::numbers::{decimal, megabytes, tick};
use super::scale::Linear;
use super::style::hue;

const LEFT: f64 = 130.0;
/// The numbers at the ends of the bars are right of here.
const RIGHT: f64 = WIDTH - 190.0;
const TOP: f64 = 34.0;
const BAR_HEIGHT: f64 = 26.0;
const BAR_STEP: f64 = 40.0;

/// One bar per engine, with the ratio to the first one. `touched_bytes` marks the least that is
/// possible: every byte that some query needs, read once.
pub fn figure(reports: &[EngineReport], touched_bytes: Option<u64>) -> Figure {
    let mut canvas = Canvas::new();
    let most = reports.iter().map(|report| report.bytes_read).chain(touched_bytes).max();
    let axis = Linear::new(most.unwrap_or(0) as f64 / 1e6, 6, LEFT, RIGHT);
    let bottom = TOP + BAR_STEP * reports.len() as f64;
    for megabytes in axis.ticks() {
        let x = axis.place(megabytes);
        canvas.line("grid", (x, TOP - 8.0), (x, bottom));
        canvas.text("", Anchor::Middle, (x, bottom + 18.0), &tick(megabytes));
    }
    canvas.text("", Anchor::Middle, ((LEFT + RIGHT) / 2.0, bottom + 40.0), "bytes read [MB]");

    let first = reports.first().map_or(0, |report| report.bytes_read);
    for (index, report) in reports.iter().enumerate() {
        let hue = hue(&report.engine, index);
        let top = TOP + BAR_STEP * index as f64;
        let end = axis.place(report.bytes_read as f64 / 1e6);
        let value = format!("{} MB", megabytes(report.bytes_read));
        canvas.hue_text(hue, Anchor::End, (LEFT - 12.0, top + 18.0), &report.engine);
        let size = ((end - LEFT).max(1.0), BAR_HEIGHT);
        canvas.bar(hue, (LEFT, top), size, &format!("{}: {value}", report.engine));
        canvas.text("ink strong", Anchor::Start, (end + 10.0, top + 18.0), &value);
        if index > 0 && first > 0 {
            let ratio = report.bytes_read as f64 / first as f64;
            let after = end + 26.0 + 7.6 * value.chars().count() as f64;
            canvas.text("", Anchor::Start, (after, top + 18.0), &format!("{}×", decimal(ratio)));
        }
    }
    if let Some(touched) = touched_bytes {
        let x = axis.place(touched as f64 / 1e6);
        canvas.line("halo", (x, TOP - 10.0), (x, bottom));
        canvas.line("least", (x, TOP - 10.0), (x, bottom));
        let name = format!("every byte needed, read once: {} MB", megabytes(touched));
        let anchor = if x < (LEFT + RIGHT) / 2.0 { Anchor::Start } else { Anchor::End };
        canvas.text("", anchor, (x, TOP - 16.0), &name);
    }
    canvas.finish("Bytes read per engine", bottom + 52.0)
}
