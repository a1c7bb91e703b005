//! Reports show measurements beside published figures, and are well formed.

use std::sync::Arc;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Prepared, Run};
use coscan_sim::report::{Results, html, json, pictures, text};
use coscan_sim::{Options, Spec};

/// Two queries on four chunks, half of which fit into the pool. The names have characters with a meaning in HTML.
const SMALL: &str = r#"
name = "small"
title = "Two <scans> & a pool"
source = "[CS04 §3.1]"
assumed = ["a < b"]

[machine]
cores = 1
pool = "20 MB"
loads_in_flight = 1
disk = { perfect = { chunk = "1 s" } }

[table.t]
rows = 400
chunks = 4
size = "40 MB"

[query."q<1>"]
cost = "2 s"

[query."q&2"]
cost = "8 s"

[streams.first]
queries = ["q<1>"]

[streams.second]
start = "2500 ms"
queries = ["q&2"]

[[paper]]
policy = "normal"
stream_avg_s = 10
io_requests = 8

[[claim]]
says = "an order"
metric = "io_requests"
smallest_first = ["elevator", "normal"]

[[claim]]
says = "an order"
metric = "io_requests"
smallest_first = ["normal", "elevator"]
"#;

/// Policies as published, whose results do not change.
const POLICIES: [PolicyKind; 2] = [PolicyKind::Normal, PolicyKind::Elevator];

fn swept(key: &str, values: &str) -> String {
    let without_papers = SMALL.split("[[paper]]").next().unwrap();
    format!("{without_papers}\n[[sweep]]\nkey = \"{key}\"\nvalues = {values}\n")
}

fn runs(spec: &Spec, seeds: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    for case in &spec.cases {
        for seed in 1..=seeds {
            let prepared = Arc::new(Prepared::new(case, seed).unwrap());
            let timeline = seed == 1 && pictures::need_timeline(spec, &prepared);
            let options = Options { timeline, ..Options::default() };
            runs.extend(POLICIES.map(|policy| prepared.run(policy.build(), options).unwrap()));
        }
    }
    runs
}

#[test]
fn the_text_has_every_figure_beside_the_papers() {
    let spec = Spec::parse(SMALL).unwrap();
    let runs = runs(&spec, 1);
    insta::assert_snapshot!(text::text(&Results::new(&spec, &runs)));
}

#[test]
fn averages_over_seeds_come_with_the_lowest_and_the_highest() {
    let spec =
        Spec::parse(&SMALL.replace("queries = [\"q&2\"]", "queries = [\"q&2-50\"]")).unwrap();
    let runs = runs(&spec, 5);
    let results = Results::new(&spec, &runs);
    let value = results.value("", "normal", None, coscan_sim::Metric::StreamAvg).unwrap();
    let each: Vec<f64> = results.of("", "normal").map(|run| run.outcome.stream_avg_s()).collect();
    assert_eq!(each.len(), 5);
    assert!((value.average - each.iter().sum::<f64>() / 5.0).abs() < 1e-9);
    assert_eq!(value.ends.0, each.iter().copied().fold(f64::INFINITY, f64::min));
    assert_eq!(value.ends.1, each.iter().copied().fold(0.0, f64::max));
    assert!(value.ends.0 < value.ends.1, "the seeds differ: {each:?}");
    assert!(text::text(&results).contains("lowest–highest seed"));
}

#[test]
fn json_has_these_keys_and_no_others() {
    let spec = Spec::parse(SMALL).unwrap();
    let runs = runs(&spec, 1);
    let document: serde_json::Value =
        serde_json::from_str(&json::json(&Results::new(&spec, &runs))).unwrap();
    assert_eq!(document["experiment"], "small");
    let records = document["runs"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    let keys: Vec<&str> = records[0].as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "policy",
        "seed",
        "stream_avg_s",
        "normalized_latency_avg",
        "normalized_latency_short",
        "normalized_latency_p99",
        "total_s",
        "io_requests",
        "bytes_read",
        "bytes_any_order",
        "bytes_min",
        "bytes_compulsory",
        "bytes_lower_bound",
        "cpu_use",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(records[1]["policy"], "elevator");
    assert_eq!(records[0]["bytes_compulsory"], 40_000_000);
    assert_eq!(records[0]["io_requests"], runs[0].outcome.requests);

    let spec = Spec::parse(&swept("machine.pool", "[\"10 MB\", \"20 MB\"]")).unwrap();
    let runs = self::runs(&spec, 1);
    let document: serde_json::Value =
        serde_json::from_str(&json::json(&Results::new(&spec, &runs))).unwrap();
    assert_eq!(document["runs"][3]["case"], "20 MB");
}

#[test]
fn a_timeline_shows_every_load_and_every_delivery() {
    let spec = Spec::parse(SMALL).unwrap();
    let runs = runs(&spec, 1);
    let sections = pictures::sections(&Results::new(&spec, &runs));
    let timelines = &sections[0].pictures;
    assert_eq!(timelines.len(), 2);
    for (picture, run) in timelines.iter().zip(&runs) {
        let svg = picture.figure.standalone();
        let count = |text: &str| svg.matches(text).count() as u64;
        assert_eq!(count(" is being read for "), run.outcome.requests);
        let delivered: u64 = run.outcome.queries.iter().map(|query| query.chunks).sum();
        assert_eq!(count(" works on chunk "), delivered);
        // A chunk is in the pool from its load on, once for each.
        assert_eq!(count(" is in the pool, "), run.outcome.requests);
    }
}

#[test]
fn pictures_follow_from_the_shape_of_the_experiment() {
    let titles = |text: &str| -> Vec<String> {
        let spec = Spec::parse(text).unwrap();
        let runs = runs(&spec, 1);
        let sections = pictures::sections(&Results::new(&spec, &runs));
        sections.into_iter().map(|section| section.title).collect()
    };
    let small = titles(SMALL);
    assert_eq!(small, ["What happened to each chunk", "Bytes read", "Latency per kind of query"]);
    let large = titles(&SMALL.replace("chunks = 4", "chunks = 100"));
    assert_eq!(large[0], "Reads over time");
    assert_eq!(large[3], "Sharing potential over time");
    let numbers = titles(&swept("machine.pool", "[\"10 MB\", \"20 MB\", \"40 MB\"]"));
    assert!(numbers.contains(&"Average stream time [s]".to_owned()), "{numbers:?}");
    let names = titles(&swept("machine.pool", "{ small = \"10 MB\", large = \"40 MB\" }"));
    assert!(names.contains(&"Throughput and latency, against elevator".to_owned()), "{names:?}");
}

#[test]
fn pages_and_pictures_are_well_formed_and_need_nothing_else() {
    for text in [
        SMALL.to_owned(),
        SMALL.replace("chunks = 4", "chunks = 100"),
        swept("machine.pool", "[\"10 MB\", \"20 MB\", \"40 MB\"]"),
        swept("machine.pool", "{ \"a<b\" = \"10 MB\", \"c&d\" = \"40 MB\" }"),
    ] {
        let spec = Spec::parse(&text).unwrap();
        let runs = runs(&spec, 2);
        let results = Results::new(&spec, &runs);
        let page = html::html(&results);
        well_formed(&page);
        assert!(page.contains("Two &lt;scans&gt; &amp; a pool"));
        for outside in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "the page has {outside}");
        }
        let addresses = page.matches("http").count();
        let namespaces = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(addresses, namespaces, "the page refers to an address");
        for section in pictures::sections(&results) {
            for picture in section.pictures {
                let svg = picture.figure.standalone();
                well_formed(&svg);
                assert!(svg.starts_with("<svg ") && svg.contains("prefers-color-scheme:dark"));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                let plain = |c: char| c.is_alphanumeric() || "-._".contains(c);
                assert!(picture.file_name.chars().all(plain), "{}", picture.file_name);
            }
        }
    }
}

#[test]
fn nothing_run_is_no_reason_to_fail() {
    let spec = Spec::parse(SMALL).unwrap();
    let results = Results::new(&spec, &[]);
    well_formed(&html::html(&results));
    assert!(text::text(&results).starts_with("small: "));
}

/// Checks that every element that is opened is closed, in order, and that every character with a meaning is escaped.
fn well_formed(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        let in_style = open.last() == Some(&"style");
        assert!(in_style || !before.contains('>'), "a bare > in {before}");
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "before </{name}>");
        } else if !tag.ends_with('/') && !["!doctype", "meta", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    for after in text.split('&').skip(1) {
        let escaped = ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| after.starts_with(name));
        assert!(escaped, "a bare & before {}", after.chars().take(20).collect::<String>());
    }
}
