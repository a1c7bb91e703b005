//! Pictures of single runs over time, for the first seed that was recorded.

use coscan_core::Time;

use crate::experiment::Run;
use crate::report::draw::numbers::{bytes, count, decimal};
use crate::report::draw::style::Hue;
use crate::report::figures::dots::{self, Panel, Positions, Series};
use crate::report::figures::layers;
use crate::report::figures::timeline::{self, Query, Span, Timeline};
use crate::report::results::Results;
use crate::report::trace::{Interval, Trace, seconds};

use super::{Picture, Section, file_name, is_small};

/// The most kinds of queries that have a colour each.
const KINDS_MAX: usize = 8;

/// The recorded run of each policy.
fn recorded<'a>(results: &Results<'a>, case: &str) -> Vec<&'a Run> {
    let policies = results.policies().iter();
    let first =
        |policy: &&str| results.of(case, policy).find(|run| !run.outcome.timeline.is_empty());
    policies.filter_map(first).collect()
}

/// One timeline per policy for each case that is small enough, all of a case on the same axis of time.
pub(super) fn timelines(results: &Results<'_>) -> Option<Section> {
    let mut pictures = Vec::new();
    for case in results.cases() {
        let runs = recorded(results, case);
        let end_ns = runs.iter().map(|run| run.outcome.total_ns).max().unwrap_or(0);
        for run in runs.into_iter().filter(|run| is_small(&run.prepared)) {
            let timeline = timeline(results, run, end_ns as f64 / 1e9);
            let file_name = file_name(&["timeline", case, &run.outcome.policy]);
            pictures.push(Picture { file_name, figure: timeline::figure(&timeline) });
        }
    }
    let caption = "Above, a row for each chunk: strong while it is being read, pale while it is in the pool, with a line \
                   in the colour of each query that works on it. Below, each query: strong while it works, pale while it \
                   waits. Below them, the number of queries that work, and of loads in flight.";
    let title = "What happened to each chunk".to_owned();
    (!pictures.is_empty()).then(|| Section { title, caption: caption.to_owned(), pictures })
}

fn hue(results: &Results<'_>, policy: &str) -> Hue {
    let index = results.policies().iter().position(|other| *other == policy);
    Hue::of_engine(policy, index.unwrap_or_default())
}

/// The name of a run: its case, if there are several, and its policy.
fn name(run: &Run) -> String {
    let parts = [run.prepared.case.as_str(), &run.outcome.policy];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn summary(run: &Run) -> String {
    format!(
        "{} requests · {} · done after {} s",
        count(run.outcome.requests),
        bytes(run.outcome.bytes_read),
        decimal(run.outcome.total_ns as f64 / 1e9)
    )
}

fn timeline(results: &Results<'_>, run: &Run, end_s: f64) -> Timeline {
    let trace = Trace::of(&run.prepared.workload, &run.outcome);
    let first = first_chunks(run);
    let span = |interval: &Interval| Span {
        chunk: first[interval.table] + interval.chunk.0 as usize,
        query: interval.query,
        time_s: interval.seconds(),
    };
    let queries = run.outcome.queries.iter().enumerate().filter(|(_, query)| query.has_run());
    let queries = queries.map(|(position, query)| Query {
        name: query_name(run, position),
        time_s: (query.started.0 as f64 / 1e9, query.ended.0 as f64 / 1e9),
    });
    Timeline {
        name: (hue(results, &run.outcome.policy), name(run)),
        summary: summary(run),
        end_s,
        chunks: first.last().copied().unwrap_or(0),
        queries: queries.collect(),
        loads: trace.loads.iter().map(span).collect(),
        kept: trace.kept.iter().map(span).collect(),
        uses: trace.uses.iter().map(span).collect(),
    }
}

/// The kind of a query, numbered if there are several of it.
fn query_name(run: &Run, position: usize) -> String {
    let queries = &run.outcome.queries;
    let label = &queries[position].label;
    let same = |until: usize| queries[..until].iter().filter(|query| query.label == *label).count();
    if same(queries.len()) == 1 { label.clone() } else { format!("{label} {}", same(position) + 1) }
}

/// The start of the chunks of each table when the tables stand one after another, and the end of the last one.
fn first_chunks(run: &Run) -> Vec<usize> {
    let mut first = vec![0];
    for table in &run.prepared.workload.tables {
        first.push(first[first.len() - 1] + table.layout.chunk_count());
    }
    first
}

/// The chunks read over time, one panel for each policy.
pub(super) fn reads(results: &Results<'_>, case: &str) -> Option<Section> {
    let runs = recorded(results, case);
    let kinds = results.kinds(case);
    let by_kind = kinds.len() <= KINDS_MAX && kinds.len() > 1;
    let panels: Vec<Panel> = runs
        .iter()
        .map(|run| {
            let hue = hue(results, &run.outcome.policy);
            let trace = Trace::of(&run.prepared.workload, &run.outcome);
            let series = if by_kind {
                let kinds = kinds.iter().enumerate();
                let hue = Hue::of_query;
                kinds.map(|(index, kind)| series(run, &trace, hue(index), Some(kind))).collect()
            } else {
                vec![series(run, &trace, hue, None)]
            };
            let end_s = run.outcome.total_ns as f64 / 1e9;
            Panel { name: run.outcome.policy.clone(), hue, summary: summary(run), end_s, series }
        })
        .collect();
    let chunks = runs.iter().filter_map(|run| first_chunks(run).last().copied()).max()?;
    let positions = Positions { name: "chunk".to_owned(), max: chunks as f64, unit: String::new() };
    let colours = kinds.iter().enumerate().filter(|_| by_kind);
    let colours: Vec<(Hue, String)> =
        colours.map(|(index, kind)| (Hue::of_query(index), (*kind).to_owned())).collect();
    let of_kinds =
        if by_kind { ", in the colour of the kind of query that it was for" } else { "" };
    let caption = format!(
        "Every dot is a load: when it was decided, and which chunk it reads{of_kinds}. Slanted lines are scans in order; \
         many at once are scans that read the same chunks again."
    );
    let figure = dots::figure(&positions, &colours, &panels);
    Some(Section::one("Reads over time", caption, "reads", figure))
}

/// The loads for queries of one kind, or of all.
fn series(run: &Run, trace: &Trace, hue: Hue, kind: Option<&str>) -> Series {
    let first = first_chunks(run);
    let is_of_kind = |load: &&Interval| {
        let label = load.query.map(|query| run.outcome.queries[query].label.as_str());
        kind.is_none() || kind == label
    };
    let loads = trace.loads.iter().filter(is_of_kind);
    let reads = loads
        .map(|load| (load.seconds().0, (first[load.table] + load.chunk.0 as usize) as f64 + 0.5));
    Series { hue, reads: reads.collect() }
}

/// Names of the layers of the sharing potential: the number of scans that need the data.
const NEEDED_BY: [&str; 5] = ["by one scan", "by 2", "by 3", "by 4", "by 5 or more"];

/// The number of moments for which the sharing potential is shown.
const MOMENTS: u32 = 400;

/// The megabytes that one, two, … scans still need, over the time of a run.
fn needed_megabytes(run: &Run) -> Vec<layers::Moment> {
    let moment = |at, bytes: [u64; NEEDED_BY.len()]| layers::Moment {
        at_s: seconds(at),
        amounts: bytes.map(|bytes| bytes as f64 / 1e6).to_vec(),
    };
    let moments = run.sharing_potential(MOMENTS).into_iter();
    let end = moment(Time(run.outcome.total_ns), [0; NEEDED_BY.len()]);
    moments.map(|potential| moment(potential.at, potential.bytes)).chain([end]).collect()
}

/// The sharing potential over time, under the first and the last policy.
pub(super) fn potential(results: &Results<'_>, case: &str) -> Option<Section> {
    let runs = recorded(results, case);
    let ends = match runs.as_slice() {
        [first, .., last] => vec![*first, *last],
        others => others.to_vec(),
    };
    let pictures = ends.into_iter().map(|run| {
        let policy = &run.outcome.policy;
        let names = layers::Names { title: policy, upright: "data needed [MB]" };
        let figure = layers::figure(names, &NEEDED_BY.map(str::to_owned), &needed_megabytes(run));
        Picture { file_name: file_name(&["sharing", policy]), figure }
    });
    let pictures: Vec<Picture> = pictures.collect();
    let caption = "The data that running scans still need at each moment: the darker, the more of them need the same data, \
                   so that one read could serve them all.";
    let title = "Sharing potential over time".to_owned();
    (!pictures.is_empty()).then(|| Section { title, caption: caption.to_owned(), pictures })
}
