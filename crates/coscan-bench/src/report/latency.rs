//! How much longer each kind of query took than alone, per engine (CS07 Table 2, normalized
//! latency).

use crate::metrics::EngineReport;
use crate::workload::{Kind, Percent, label};

use super::figure::{Anchor, Canvas, Figure, WIDTH};
use super::numbers::{short, tick};
use super::scale::Logarithmic;
use super::style::hue;

const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 356.0;
const HEIGHT: f64 = 416.0;
/// The part of the width of a group of bars that is left free.
const SPACE: f64 = 0.2;

/// Bars from 1 (as fast as alone) up to the average normalized latency of each kind of query, on
/// a logarithmic axis: equal lengths are equal ratios. Bars below 1 hang down.
pub fn figure(reports: &[EngineReport]) -> Figure {
    let mut canvas = Canvas::new();
    let kinds: Vec<_> = reports.iter().map(EngineReport::kinds).collect();
    let mut keys: Vec<(Kind, Percent)> =
        kinds.iter().flat_map(|kinds| kinds.keys().copied()).collect();
    keys.sort_unstable();
    keys.dedup();

    let values = kinds.iter().flat_map(|kinds| kinds.values());
    let (low, high) = values.fold((1.0_f64, 2.0_f64), |(low, high), kind| {
        (low.min(kind.normalized_latency_avg), high.max(kind.normalized_latency_avg))
    });
    // Room for the numbers at the ends of the bars.
    let low = if low < 1.0 { low.max(0.01) * 0.8 } else { 1.0 };
    let axis = Logarithmic::new(low, high * 1.25, BOTTOM, TOP);
    axis_of_ratios(&mut canvas, axis);
    legend(&mut canvas, reports);

    let group_width = (RIGHT - LEFT) / keys.len().max(1) as f64;
    let bar_width = group_width * (1.0 - SPACE) / reports.len().max(1) as f64;
    for (group, key) in keys.iter().enumerate() {
        let left = LEFT + group_width * (group as f64 + SPACE / 2.0);
        for (engine, report) in reports.iter().enumerate() {
            let Some(kind) = kinds[engine].get(key) else { continue };
            let value = kind.normalized_latency_avg;
            let x = left + bar_width * engine as f64;
            let (top, bottom) = ends(axis.place(value), axis.place(1.0));
            let name = format!("{} {}: {value:.2}", report.engine, label(key.0, key.1));
            let (at, size) = ((x + 0.5, top), (bar_width - 1.0, (bottom - top).max(1.0)));
            canvas.bar(hue(&report.engine, engine), at, size, &name);
            if bar_width >= 13.0 {
                let y = if value < 1.0 { bottom + 11.0 } else { top - 4.0 };
                canvas.text("small", Anchor::Middle, (x + bar_width / 2.0, y), &short(value));
            }
        }
        let middle = LEFT + group_width * (group as f64 + 0.5);
        canvas.text("ink", Anchor::Middle, (middle, BOTTOM + 22.0), &label(key.0, key.1));
    }
    canvas.line("base", (LEFT, axis.place(1.0)), (RIGHT, axis.place(1.0)));
    let below = ((LEFT + RIGHT) / 2.0, BOTTOM + 46.0);
    canvas.text(
        "",
        Anchor::Middle,
        below,
        "kind of query: F = fast (Q6), S = slow (Q1), and how many percent of the table it reads",
    );
    canvas.finish("Latency per kind of query, divided by the time alone", HEIGHT)
}

fn ends(first: f64, second: f64) -> (f64, f64) {
    (first.min(second), first.max(second))
}

fn axis_of_ratios(canvas: &mut Canvas, axis: Logarithmic) {
    for ratio in axis.ticks() {
        let y = axis.place(ratio);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("", Anchor::End, (LEFT - 8.0, y + 4.5), &format!("{}×", tick(ratio)));
    }
    canvas.upward_text((18.0, (TOP + BOTTOM) / 2.0), "latency ÷ time alone (logarithmic)");
}

/// The names of the engines in the order of the bars.
pub(super) fn legend(canvas: &mut Canvas, reports: &[EngineReport]) {
    let mut x = LEFT;
    for (index, report) in reports.iter().enumerate() {
        let hue = hue(&report.engine, index);
        canvas.bar(hue, (x, 15.0), (12.0, 12.0), &report.engine);
        canvas.hue_text(hue, Anchor::Start, (x + 18.0, 26.0), &report.engine);
        x += 50.0 + 7.6 * report.engine.chars().count() as f64;
    }
}
