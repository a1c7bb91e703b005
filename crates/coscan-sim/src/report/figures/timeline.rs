//! The states of chunks, queries, processor and disk over time (CS04 Figures 3 and 4).

use crate::report::draw::figure::{Anchor, Canvas, Figure, WIDTH, polyline};
use crate::report::draw::numbers::{decimal, tick};
use crate::report::draw::scale::Axis;
use crate::report::draw::style::Hue;

use super::text_width;

const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 34.0;
/// The distance between the chunks, the queries, the processor and the disk.
const SPACE: f64 = 16.0;
/// The height of the row of a query.
const QUERY_HEIGHT: f64 = 18.0;
/// The whole height of the processor's, and of the disk's, steps.
const STEPS_HEIGHT: f64 = 26.0;
/// The distance from one line of a query on a chunk to the next.
const LANE: f64 = 3.0;
/// The most lines per chunk. Further ones are laid on top of each other.
const LANES_MAX: usize = 6;

/// The content of a picture of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The policy and its colour.
    pub name: (Hue, String),
    /// A few figures of the whole run.
    pub summary: String,
    /// The end of the axis of time, in seconds; the same for runs that are compared.
    pub end_s: f64,
    /// The number of chunks of the table.
    pub chunks: usize,
    /// The queries.
    pub queries: Vec<Query>,
    /// Chunks that were being read, and the query that it was for.
    pub loads: Vec<Span>,
    /// Chunks of which some pages were held.
    pub kept: Vec<Span>,
    /// Chunks that a query worked on.
    pub uses: Vec<Span>,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its name.
    pub name: String,
    /// The times when it started and ended, in seconds.
    pub time_s: (f64, f64),
}

/// A span of time.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The chunk.
    pub chunk: usize,
    /// The query, as a position in [`Timeline::queries`], if it was for one.
    pub query: Option<usize>,
    /// The start and end, in seconds.
    pub time_s: (f64, f64),
}

/// Draws a picture of a run.
#[must_use]
pub fn figure(timeline: &Timeline) -> Figure {
    let mut canvas = Canvas::new();
    let time = Axis::linear(timeline.end_s, 12, LEFT, RIGHT);
    let rows = Rows::of(timeline);
    let (hue, name) = &timeline.name;
    canvas.hue_text(*hue, Anchor::Start, (LEFT, TOP - 12.0), name);
    canvas.text("", Anchor::End, (RIGHT, TOP - 12.0), &timeline.summary);

    canvas.area("panel", (LEFT, TOP), (RIGHT - LEFT, rows.chunks_bottom - TOP));
    for seconds in time.ticks() {
        canvas.line("grid", (time.place(seconds), TOP), (time.place(seconds), rows.bottom));
        canvas.text("", Anchor::Middle, (time.place(seconds), rows.bottom + 18.0), &tick(seconds));
    }
    chunks(&mut canvas, timeline, &rows, time);
    queries(&mut canvas, timeline, rows.queries_top, time);
    let pairs = [
        ("processor", &timeline.uses, rows.processor_top),
        ("disk", &timeline.loads, rows.disk_top),
    ];
    for (name, spans, top) in pairs {
        steps(&mut canvas, name, spans, top, time);
    }
    key(&mut canvas, rows.bottom + 40.0);
    canvas.text("", Anchor::End, (RIGHT, rows.bottom + 40.0), "time since the start [s]");
    canvas.finish(
        &format!("Chunks, queries, processor and disk over time: {name}"),
        rows.bottom + 54.0,
    )
}

/// The positions of the parts.
struct Rows {
    /// The height of the row of a chunk.
    chunk: f64,
    /// The number of lines for queries in it.
    lanes: usize,
    chunks_bottom: f64,
    queries_top: f64,
    processor_top: f64,
    disk_top: f64,
    bottom: f64,
}

impl Rows {
    fn of(timeline: &Timeline) -> Rows {
        let lanes = timeline.queries.len().clamp(1, LANES_MAX);
        let chunk = LANE * lanes as f64 + 5.0;
        let chunks_bottom = TOP + chunk * timeline.chunks as f64;
        let queries_top = chunks_bottom + SPACE;
        let processor_top = queries_top + QUERY_HEIGHT * timeline.queries.len() as f64 + SPACE;
        let disk_top = processor_top + STEPS_HEIGHT + SPACE;
        let bottom = disk_top + STEPS_HEIGHT;
        Rows { chunk, lanes, chunks_bottom, queries_top, processor_top, disk_top, bottom }
    }

    /// The upper end of the row of a chunk. The first one is at the bottom.
    fn top_of(&self, chunk: usize) -> f64 {
        self.chunks_bottom - self.chunk * (chunk + 1) as f64
    }
}

fn chunks(canvas: &mut Canvas, timeline: &Timeline, rows: &Rows, time: Axis) {
    canvas.text("ink", Anchor::End, (LEFT - 30.0, (TOP + rows.chunks_bottom) / 2.0), "chunk");
    let every = (14.0 / rows.chunk).ceil() as usize;
    for chunk in (0..timeline.chunks).step_by(every.max(1)) {
        let base_line = rows.top_of(chunk) + rows.chunk / 2.0 + 4.0;
        canvas.text("note", Anchor::End, (LEFT - 8.0, base_line), &(chunk + 1).to_string());
    }
    for span in &timeline.kept {
        let name = format!("chunk {} is in the pool, {}", span.chunk + 1, from_to(*span));
        rectangle(canvas, "kept", span, rows, time, &name);
    }
    for span in &timeline.loads {
        let reader = span.query.and_then(|query| timeline.queries.get(query));
        let whom = reader.map_or(String::new(), |query| format!(" for {}", query.name));
        let name = format!("chunk {} is being read{whom}, {}", span.chunk + 1, from_to(*span));
        rectangle(canvas, "dark", span, rows, time, &name);
    }
    for span in &timeline.uses {
        let query = span.query.unwrap_or_default();
        let Some(user) = timeline.queries.get(query) else { continue };
        let y = rows.top_of(span.chunk) + 3.0 + LANE * (query % rows.lanes) as f64;
        let (x, width) = place(span.time_s, time);
        let name = format!("{} works on chunk {}, {}", user.name, span.chunk + 1, from_to(*span));
        canvas.bar(Hue::of_query(query), (x, y), (width, LANE - 0.8), &name);
    }
}

fn rectangle(canvas: &mut Canvas, class: &str, span: &Span, rows: &Rows, time: Axis, name: &str) {
    let (x, width) = place(span.time_s, time);
    canvas.named_area(class, (x, rows.top_of(span.chunk) + 1.0), (width, rows.chunk - 2.0), name);
}

/// The left end and the width of a span. Nothing that happened is too short to be seen.
fn place((from, to): (f64, f64), time: Axis) -> (f64, f64) {
    (time.place(from), (time.place(to) - time.place(from)).max(0.8))
}

fn from_to(span: Span) -> String {
    format!("{} to {} s", decimal(span.time_s.0), decimal(span.time_s.1))
}

/// Draws for each query a pale bar while it waits, and a strong one while it works.
fn queries(canvas: &mut Canvas, timeline: &Timeline, top: f64, time: Axis) {
    for (index, query) in timeline.queries.iter().enumerate() {
        let hue = Hue::of_query(index);
        let y = top + QUERY_HEIGHT * index as f64;
        let (x, width) = place(query.time_s, time);
        let seconds = decimal(query.time_s.1 - query.time_s.0);
        canvas.hue_text(hue, Anchor::End, (LEFT - 8.0, y + 11.0), &query.name);
        let name = format!("{}: {seconds} s, waiting where it is pale", query.name);
        canvas.named_area("kept", (x, y + 3.5), (width, 7.0), &name);
        for span in timeline.uses.iter().filter(|span| span.query == Some(index)) {
            let (x, width) = place(span.time_s, time);
            canvas.bar(hue, (x, y + 1.0), (width, 12.0), &format!("{} works", query.name));
        }
        let end = format!("{seconds} s");
        if x + width + 8.0 + text_width(&end) < RIGHT {
            canvas.text("note", Anchor::Start, (x + width + 8.0, y + 11.0), &end);
        } else {
            canvas.text("note haloed", Anchor::End, (x - 8.0, y + 11.0), &end);
        }
    }
}

/// Draws the number of spans that cover each time, as steps.
fn steps(canvas: &mut Canvas, name: &str, spans: &[Span], top: f64, time: Axis) {
    let mut changes: Vec<(f64, i64)> =
        spans.iter().flat_map(|span| [(span.time_s.0, 1), (span.time_s.1, -1)]).collect();
    // At one time, spans that end come first.
    changes.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let (mut now, mut most, mut levels) = (0, 0, Vec::new());
    for (at, change) in changes {
        levels.push((at, now));
        now += change;
        most = most.max(now);
        levels.push((at, now));
    }
    let bottom = top + STEPS_HEIGHT;
    let height = |level: i64| bottom - STEPS_HEIGHT * level as f64 / most.max(1) as f64;
    let outline = levels.iter().map(|(at, level)| (time.place(*at), height(*level)));
    if !levels.is_empty() {
        canvas.shade(Hue::QUIET, 0.55, &format!("{}Z", polyline(outline)), name);
    }
    canvas.line("base", (LEFT, bottom), (RIGHT, bottom));
    canvas.text("ink", Anchor::End, (LEFT - 22.0, top + 18.0), name);
    canvas.text("note", Anchor::End, (LEFT - 8.0, top + 8.0), &most.to_string());
    canvas.text("note", Anchor::End, (LEFT - 8.0, bottom + 2.0), "0");
}

/// Draws the legend of the rectangles.
fn key(canvas: &mut Canvas, base_line: f64) {
    let mut x = LEFT;
    for (class, name) in [("dark", "being read"), ("kept", "in the pool")] {
        canvas.area(class, (x, base_line - 10.0), (18.0, 11.0));
        canvas.text("", Anchor::Start, (x + 25.0, base_line), name);
        x += 50.0 + text_width(name);
    }
    canvas.bar(Hue::of_query(0), (x, base_line - 6.0), (18.0, LANE), "");
    canvas.text("", Anchor::Start, (x + 25.0, base_line), "used by a query, in its colour");
}
