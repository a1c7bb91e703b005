//! The reports contain the measurements, fit where they are shown, and are well formed.

use coscan_bench::metrics::{EngineReport, QueryReport, ReadPoint};
use coscan_bench::report::flatness::FlatnessPoint;
use coscan_bench::report::mixed::{self, MixedRun};
use coscan_bench::report::{RunDescription, bytes, flatness, html, latency, reads, table};
use coscan_bench::workload::{Kind, Percent};

const ENGINES: [&str; 5] = ["datafusion", "normal", "attach", "elevator", "relevance"];

fn query(kind: Kind, percent: u32, latency_s: f64) -> QueryReport {
    let percent = Percent::try_from(percent).expect("1 to 100");
    QueryReport { kind, percent, stream: 0, start_s: 0.0, latency_s, standalone_s: 2.0 }
}

/// Reports with figures that occur nowhere else. The last engine is the best.
fn reports(scale: f64) -> Vec<EngineReport> {
    let report = |(index, engine): (usize, &&str)| {
        let slower = (5 - index) as f64 * scale;
        let kinds = [(Kind::Fast, 1), (Kind::Fast, 100), (Kind::Slow, 10), (Kind::Slow, 50)];
        EngineReport {
            engine: engine.to_string(),
            total_s: 11.11 * slower,
            stream_avg_s: 7.77 * slower,
            normalized_latency_avg: 1.23 * slower,
            bytes_read: (1_000_000_000.0 * slower) as u64,
            io_requests: (1234.0 * slower) as u64,
            cpu_s: 9.0,
            cpu_use: 0.532,
            answers_equal: true,
            memory_peak_bytes: Some(300_000_000),
            queries: kinds.map(|(kind, percent)| query(kind, percent, 3.21 * slower)).to_vec(),
            reads: vec![ReadPoint { t_s: 1.0, position: 0.25, bytes: 1_000_000 }; 3],
        }
    };
    ENGINES.iter().enumerate().map(report).collect()
}

fn description() -> RunDescription {
    RunDescription {
        title: "16 streams <of> 4 queries".to_string(),
        summary: "On a slow device.".to_string(),
        parameters: vec![("device".to_string(), "50 MB/s & more".to_string())],
        touched_bytes: Some(800_000_000),
    }
}

#[test]
fn the_plain_table_has_every_figure_of_every_engine() {
    let text = table::table(&reports(1.0));
    let line = |start: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("no {start:?} in\n{text}")).to_string()
    };
    let numbers = |start: &str| -> Vec<String> {
        line(start)
            .split_once(start)
            .map_or("", |(_, after)| after)
            .split_whitespace()
            .map(str::to_string)
            .collect()
    };
    assert_eq!(numbers("total time [s]"), ["55.55", "44.44", "33.33", "22.22", "11.11"]);
    assert_eq!(numbers("average stream time [s]")[4], "7.77");
    assert_eq!(numbers("average normalized latency")[0], "6.15");
    assert_eq!(numbers("CPU use [%]")[0], "53.2");
    assert_eq!(numbers("I/O requests")[1], "4,936");
    assert_eq!(numbers("bytes read [MB]"), ["5,000", "4,000", "3,000", "2,000", "1,000"]);
    assert_eq!(numbers("peak memory of the process [MB]")[0], "300");
    assert_eq!(numbers("answers equal"), ["yes"; 5]);
    // These are the count, the time alone, then the average, standard deviation and normalized
    // latency per engine.
    assert_eq!(numbers("F-01")[..5], ["1", "2.00", "16.05", "0.00", "8.03"]);
    for label in ["F-100", "S-10", "S-50"] {
        assert_eq!(numbers(label)[0], "1");
    }
}

#[test]
fn the_plain_table_is_never_too_wide_and_never_loses_an_engine() {
    for scale in [0.01, 1.0, 1e3, 1e6] {
        let text = table::table(&reports(scale));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(table::WIDTH_MAX), "{widest:?}\n{text}");
        for engine in ENGINES {
            let count = text.split_whitespace().filter(|word| *word == engine).count();
            assert_eq!(count, 2, "{engine}\n{text}");
        }
        // Five engines are in two lines, as three and two instead of four and one.
        if scale == 1.0 {
            let names = text.lines().filter(|line| line.starts_with("queries"));
            let counts: Vec<usize> = names
                .map(|line| ENGINES.iter().filter(|name| line.contains(*name)).count())
                .collect();
            assert_eq!(counts, [3, 2]);
        }
    }
    assert!(table::table(&[]).trim().is_empty());
}

#[test]
fn a_wrong_answer_is_shouted() {
    let mut reports = reports(1.0);
    let page = html::streams_page(&description(), &reports);
    assert!(page.contains("equal answers to all queries"));
    reports[3].answers_equal = false;
    assert!(
        table::table(&reports)
            .lines()
            .any(|line| line.ends_with("NO     yes") || line.contains(" NO "))
    );
    let page = html::streams_page(&description(), &reports);
    assert!(page.contains("The answers differ: elevator."));
    assert!(!page.contains("equal answers to all queries"));
}

/// Two engines, of which the second needs half the time. There are two streams, and points run in the second.
fn mixed_runs() -> Vec<MixedRun> {
    let run = |run: &str, streams: &[&str], queries: &[(usize, Kind, u32, f64)]| {
        let engine = |(index, engine): (usize, &&str)| {
            let faster = 1.0 / (index + 1) as f64;
            let queries = queries.iter().map(|&(stream, kind, percent, latency_s)| QueryReport {
                stream,
                ..query(kind, percent, latency_s * faster)
            });
            EngineReport {
                engine: engine.to_string(),
                total_s: 30.0 * faster,
                queries: queries.collect(),
                ..reports(1.0)[0].clone()
            }
        };
        let engines = ["datafusion", "relevance"].iter().enumerate().map(engine).collect();
        let streams = streams.iter().map(|name| name.to_string()).collect();
        MixedRun { run: run.to_string(), streams, engines }
    };
    let scans = [(0, Kind::Fast, 10, 16.0), (0, Kind::Ordered, 50, 24.0)];
    let points = [(1, Kind::Point, 0, 0.5), (1, Kind::Point, 0, 0.7)];
    vec![
        run(mixed::TOGETHER, &["scans", "points"], &[&scans[..], &points[..]].concat()),
        run("scans", &["scans"], &scans),
        run(
            "points",
            &["points"],
            &points.map(|(_, kind, percent, time)| (0, kind, percent, time)),
        ),
    ]
}

#[test]
fn a_mixed_table_has_each_group_and_kind_together_and_alone() {
    let mut runs = mixed_runs();
    let text = mixed::table(&runs);
    let words: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in [
        // These are the total time, its ratio to the first engine, and the bytes.
        "together 2 30.00 1.00 5,000 15.00 0.50 5,000",
        // These are the time alone, then count, average, 95 %, 99 %, normalized average and 99 %.
        // All take 2 s alone.
        "scans together 2.00 2 20.00 24.00 24.00 10.00 12.00 2 10.00 12.00 12.00 5.00 6.00",
        "scans alone 2.00 2 20.00 24.00 24.00 10.00 12.00 2 10.00 12.00 12.00 5.00 6.00",
        "F-10 together 2.00 1 16.00 16.00 16.00 8.00 8.00 1 8.00 8.00 8.00 4.00 4.00",
        "O-50 alone 2.00 1 24.00 24.00 24.00 12.00 12.00 1 12.00 12.00 12.00 6.00 6.00",
        "points together 2.00 2 0.600 0.700 0.700 0.30 0.35 2 0.300 0.350 0.350 0.15 0.17",
    ] {
        let wanted: Vec<&str> = line.split_whitespace().collect();
        assert!(words.contains(&wanted), "no {line:?} in\n{text}");
    }
    assert!(text.contains("All engines gave equal answers."));
    assert!(text.lines().all(|line| line.chars().count() <= table::WIDTH_MAX), "{text}");
    // A group of one kind needs no row for the kind.
    assert_eq!(words.iter().filter(|line| line.first() == Some(&"points")).count(), 3);
    assert!(!words.iter().any(|line| line.first() == Some(&"P")));

    runs[1].engines[1].answers_equal = false;
    assert!(mixed::table(&runs).contains("THE ANSWERS DIFFER: relevance (scans)"));
}

#[test]
fn the_page_needs_nothing_else_and_says_everything() {
    let page = html::streams_page(&description(), &reports(1.0));
    for part in [
        "16 streams &lt;of&gt; 4 queries",
        "50 MB/s &amp; more",
        "prefers-color-scheme:dark",
        "Reads over time",
        "Latency per kind of query",
        "Bytes read",
        "<td class=\"best\">11.11</td>",
        "5.0× less",
        "every byte needed, read once: 800 MB",
    ] {
        assert!(page.contains(part), "{part:?} is missing");
    }
    for outside in ["<script", "<link", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    let addresses = page.matches("http").count();
    let namespaces = page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, namespaces, "the page refers to an address");
    assert_eq!(page.matches("<svg").count(), 3);
    well_formed(&page);
}

#[test]
fn pictures_stand_alone_as_well_formed_svg() {
    let reports = reports(1.0);
    let points = flatness_points();
    for figure in [
        reads::figure(&reports),
        latency::figure(&reports),
        bytes::figure(&reports, Some(1)),
        flatness::figure(&points),
        reads::figure(&[]),
        latency::figure(&[]),
        bytes::figure(&[], None),
        flatness::figure(&[]),
    ] {
        let text = figure.standalone();
        assert!(text.starts_with("<svg ") && text.contains("<style>"));
        assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
        well_formed(&text);
    }
}

#[test]
fn every_read_is_a_dot_and_equal_ones_are_one() {
    let mut reports = reports(1.0);
    reports.truncate(1);
    let dots = |reports: &[EngineReport]| reads::figure(reports).standalone().matches("h0").count();
    assert_eq!(dots(&reports), 1);
    reports[0].reads.push(ReadPoint { t_s: 30.0, position: 0.75, bytes: 1 });
    assert_eq!(dots(&reports), 2);
    reports[0].reads.clear();
    assert!(reads::figure(&reports).standalone().contains("no reads recorded"));
}

fn flatness_points() -> Vec<FlatnessPoint> {
    let point = |engine: &str, streams: usize, query_avg_s| FlatnessPoint {
        engine: engine.to_string(),
        streams,
        query_avg_s,
    };
    vec![
        point("relevance", 2, 3.0),
        point("relevance", 1, 2.5),
        point("normal", 1, 2.5),
        point("normal", 2, 3.01),
    ]
}

#[test]
fn flatness_has_one_named_curve_per_engine_and_names_do_not_overlap() {
    let page = html::flatness_page(&description(), &flatness_points());
    well_formed(&page);
    assert_eq!(page.matches("class=\"curve\"").count(), 2);
    assert_eq!(page.matches("<path fill=").count(), 4);
    let height = |name: &str| -> f64 {
        let line = page.lines().find(|line| line.contains(name)).expect("a name");
        let (_, after) = line.rsplit_once("y=\"").expect("a place");
        after.split_once('"').expect("a number").0.parse().expect("a number")
    };
    assert!(height("relevance 3.00 s") - height("normal 3.01 s") >= 18.0);
}

/// Checks that every open element is closed, in order. This suffices for the HTML of the reports.
fn well_formed(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "before </{name}>");
        } else if !tag.ends_with('/') && !["!doctype", "meta", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}
