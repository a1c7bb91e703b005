//! CS07 Figure 4: which part of the table each engine read when.

use std::collections::BTreeSet;

use crate::metrics::EngineReport;

use super::figure::{Anchor, Canvas, Figure, WIDTH};
use super::numbers::{count, decimal, megabytes, tick};
use super::scale::Linear;
use super::style::hue;

const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 24.0;
const PANEL_HEIGHT: f64 = 110.0;
/// From the top of one panel to the top of the next.
const PANEL_STEP: f64 = PANEL_HEIGHT + 38.0;
const TOP: f64 = 30.0;
/// Below the last panel: the numbers and the name of the axis of time.
const BELOW: f64 = 50.0;

/// One panel per engine, all on the same time; every dot is a read.
pub fn figure(reports: &[EngineReport]) -> Figure {
    let mut canvas = Canvas::new();
    let time_max_s = reports.iter().map(|report| report.total_s).fold(0.0, f64::max);
    let time = Linear::new(time_max_s, 10, LEFT, RIGHT);

    for (index, report) in reports.iter().enumerate() {
        panel(
            &mut canvas,
            report,
            hue(&report.engine, index),
            TOP + PANEL_STEP * index as f64,
            time,
        );
    }
    let bottom = TOP + PANEL_STEP * (reports.len().max(1) - 1) as f64 + PANEL_HEIGHT;
    for seconds in time.ticks() {
        canvas.text("", Anchor::Middle, (time.place(seconds), bottom + 18.0), &tick(seconds));
    }
    canvas.text(
        "",
        Anchor::Middle,
        ((LEFT + RIGHT) / 2.0, bottom + 40.0),
        "time since the start [s]",
    );
    canvas.upward_text((18.0, (TOP + bottom) / 2.0), "position in the table");
    canvas.finish("Reads over time, one panel per engine", bottom + BELOW)
}

fn panel(canvas: &mut Canvas, report: &EngineReport, hue: usize, top: f64, time: Linear) {
    let bottom = top + PANEL_HEIGHT;
    let position = Linear::new(1.0, 2, bottom, top);

    canvas.hue_text(hue, Anchor::Start, (LEFT, top - 9.0), &report.engine);
    let summary = format!(
        "{} requests · {} MB · done after {} s",
        count(report.io_requests),
        megabytes(report.bytes_read),
        decimal(report.total_s)
    );
    canvas.text("", Anchor::End, (RIGHT, top - 9.0), &summary);
    canvas.area("panel", (LEFT, top), (RIGHT - LEFT, PANEL_HEIGHT));
    for seconds in time.ticks() {
        canvas.line("grid", (time.place(seconds), top), (time.place(seconds), bottom));
    }
    for (part, name) in [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")] {
        canvas.text("", Anchor::End, (LEFT - 8.0, position.place(part) + 4.5), name);
    }
    let end = time.place(report.total_s);
    canvas.line("base", (end, top), (end, bottom));
    if report.reads.is_empty() {
        let middle = ((LEFT + RIGHT) / 2.0, (top + bottom) / 2.0 + 5.0);
        canvas.text("", Anchor::Middle, middle, "no reads recorded");
    } else {
        canvas.path("dots", hue, &dots(report, time, position));
    }
}

/// One dot per place on the picture, however many reads fall on it.
fn dots(report: &EngineReport, time: Linear, position: Linear) -> String {
    let half_pixels = |place: f64| (place * 2.0).round() as i64;
    let places: BTreeSet<(i64, i64)> = report
        .reads
        .iter()
        .map(|read| {
            let position = position.place(read.position.clamp(0.0, 1.0));
            (half_pixels(time.place(read.t_s)), half_pixels(position))
        })
        .collect();
    let dots = places.into_iter().map(|(x, y)| format!("M{} {}h0", x as f64 / 2.0, y as f64 / 2.0));
    dots.collect()
}
