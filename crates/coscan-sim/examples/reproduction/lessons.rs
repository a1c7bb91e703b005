//! Lessons of the runs, with the figures that show them. A lesson that the figures no longer show is marked so.

use coscan_sim::Metric;

use crate::format::{head, number, row, shown};
use crate::measured::Measured;

/// One number: its experiment and case, policy, kind of query and metric.
type Cell = (&'static str, &'static str, &'static str, Option<&'static str>, Metric);

struct Lesson {
    /// The lesson in a few words.
    says: &'static str,
    because: &'static str,
    /// The titles of its table, the first one over the names of rows.
    titles: &'static [&'static str],
    rows: Vec<Row>,
    /// Whether the figures, row by row, show it.
    shows: fn(&[Vec<f64>]) -> bool,
}

/// The content of a cell of a table.
enum Part {
    /// A number.
    Value(Cell),
    /// One number divided by another.
    Ratio(Cell, Cell),
}

const NORMAL: &str = "normal";
const ELEVATOR: &str = "elevator";
const PUBLISHED: &str = "relevance-2007";
const OURS: &str = "relevance";

/// A metric of a policy relative to another one.
fn ratio(
    experiment: &'static str,
    case: &'static str,
    [policy, to]: [&'static str; 2],
    metric: Metric,
) -> Part {
    Part::Ratio((experiment, case, policy, None, metric), (experiment, case, to, None, metric))
}

/// A metric of a policy.
fn value(
    experiment: &'static str,
    case: &'static str,
    policy: &'static str,
    metric: Metric,
) -> Part {
    Part::Value((experiment, case, policy, None, metric))
}

fn rising(column: usize, rows: &[Vec<f64>]) -> bool {
    rows.is_sorted_by(|low, high| low[column] < high[column])
}

type Row = (&'static str, Vec<Part>);

fn limit(name: &'static str, experiment: &'static str, case: &'static str) -> Row {
    let parts = vec![
        value(experiment, case, NORMAL, Metric::CpuUse),
        ratio(experiment, case, [PUBLISHED, NORMAL], Metric::StreamAvg),
    ];
    (name, parts)
}

fn cursor(policy: &'static str) -> Row {
    let short = ("cs07-table2", "", policy, Some("S-1"), Metric::NormalizedLatencyAvg);
    let parts = vec![
        value("cs07-table2", "", policy, Metric::Requests),
        value("cs07-table2", "", policy, Metric::StreamAvg),
        Part::Value(short),
    ];
    (policy, parts)
}

fn pool(case: &'static str) -> Row {
    let read = |policy| value("cs11-figure6.2", case, policy, Metric::BytesRead);
    (case, vec![read(NORMAL), read("predictive"), read(PUBLISHED)])
}

fn processors(experiment: &'static str) -> Row {
    let parts = vec![
        value(experiment, "", PUBLISHED, Metric::CpuUse),
        ratio(experiment, "", [OURS, PUBLISHED], Metric::NormalizedLatencyAvg),
        ratio(experiment, "", [OURS, PUBLISHED], Metric::StreamAvg),
    ];
    (experiment, parts)
}

fn columns(case: &'static str) -> Row {
    let relative = |metric| ratio("cs07-table4", case, [PUBLISHED, NORMAL], metric);
    (case, vec![relative(Metric::PagesRead), relative(Metric::LatencyAvg)])
}

fn lessons() -> [Lesson; 5] {
    [
        Lesson {
            says: "Sharing gains most where normal waits for the disk, also with most of the table in the pool, and little \
                   where the processors are busy anyway.",
            because: "The published policy relative to normal:",
            titles: &["", "processors busy under normal", "stream time"],
            rows: vec![
                limit("cs11-table6.1", "cs11-table6.1", ""),
                limit("cs07-table2", "cs07-table2", ""),
                limit("cs07-figure6, fast and slow, pool of 75 percent", "cs07-figure6", "FS-75 %"),
                limit("cs07-figure6, only fast, pool of 75 percent", "cs07-figure6", "F-75 %"),
            ],
            shows: |rows| {
                rising(0, &rows[..3]) && rising(1, &rows[..3]) && rows[3][1] < 0.8 * rows[2][1]
            },
        },
        Lesson {
            says: "The policy that reads least does not finish first.",
            because: "One cursor for all scans makes the fewest requests, and every scan waits for the slowest (cs07-table2):",
            titles: &["", "requests", "stream s", "normalized latency of S-1"],
            rows: vec![cursor(ELEVATOR), cursor(PUBLISHED)],
            shows: |rows| rising(0, rows) && rows[0][1] > rows[1][1] && rows[0][2] > rows[1][2],
        },
        Lesson {
            says: "Order costs more than memory gains.",
            because: "Out of order a pool of 20 percent reads less than one of 40 percent that serves in order, even with the \
                      best estimate of next uses (cs11-figure6.2, bytes read):",
            titles: &["pool", "normal", "predictive", "relevance-2007"],
            rows: vec![pool("20 %"), pool("40 %"), pool("60 %"), pool("80 %")],
            shows: |rows| rows[0][2] < rows[1][1],
        },
        Lesson {
            says: "Where processors are the limit, they have to be scheduled.",
            because: "`relevance`, which does so, relative to the published policy. It was chosen by such experiments; on \
                      generated workloads it [gains less](out-of-sample.md).",
            titles: &["", "processors busy", "normalized latency", "stream time"],
            rows: vec![
                processors("cs07-table2"),
                processors("cs07-table3"),
                processors("cs11-table6.1"),
            ],
            shows: |rows| rows[0][1] < 0.9 && rows[1][1] < 0.9 && rows[2][1] > 0.9,
        },
        Lesson {
            says: "The less queries have in common, the less there is to share.",
            because: "The published policy relative to normal, by the columns of the queries (cs07-table4):",
            titles: &["", "pages read", "latency"],
            rows: vec![columns("ABC"), columns("ABC,BCD"), columns("ABC,DEF")],
            shows: |rows| rising(0, rows) && rising(1, rows),
        },
    ]
}

/// Writes all lessons, each with a table.
pub(crate) fn write(all: &[Measured]) -> String {
    let find = |(experiment, case, policy, query, metric): Cell| {
        let measured = all.iter().find(|measured| measured.spec.name == experiment);
        measured
            .and_then(|measured| measured.average(case, policy, query, metric))
            .unwrap_or(f64::NAN)
    };
    let mut text = String::new();
    for (index, lesson) in lessons().into_iter().enumerate() {
        let number_of = |part: &Part| match part {
            Part::Value(cell) => find(*cell),
            Part::Ratio(cell, to) => find(*cell) / find(*to),
        };
        let figures: Vec<Vec<f64>> =
            lesson.rows.iter().map(|(_, parts)| parts.iter().map(number_of).collect()).collect();
        let no_longer =
            if (lesson.shows)(&figures) { "" } else { "**The figures do not show this:** " };
        text += &format!("{}. {no_longer}**{}** {}\n\n", index + 1, lesson.says, lesson.because);
        text += &head(lesson.titles, 1);
        for ((name, parts), values) in lesson.rows.iter().zip(&figures) {
            let cells = parts.iter().zip(values).map(|(part, &value)| match part {
                Part::Value((.., metric)) => shown(*metric, value),
                Part::Ratio(..) => number(value),
            });
            text += &row(std::iter::once((*name).to_owned()).chain(cells));
        }
        text += "\n";
    }
    text
}
