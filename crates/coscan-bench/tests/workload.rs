//! The streams are what was asked for, and the same for the same seed.

use std::time::Duration;

use coscan_bench::workload::{
    Kind, Mix, Percent, Query, Stream, WorkloadError, WorkloadOptions, standalone_queries,
};

fn percent(number: u32) -> Percent {
    Percent::try_from(number).expect("1 to 100")
}

fn options(mix: &str, percents: &[u32]) -> WorkloadOptions {
    WorkloadOptions {
        mix: mix.parse().expect("a mix"),
        percents: percents.iter().map(|number| percent(*number)).collect(),
        streams: 16,
        queries_per_stream: 4,
        seed: 7,
        stagger: Duration::from_millis(250),
        keys: 1..=6_000_000,
    }
}

fn queries(options: &WorkloadOptions) -> Vec<Query> {
    options.streams().expect("streams").into_iter().flat_map(|stream| stream.queries).collect()
}

#[test]
fn the_same_seed_gives_the_same_streams_and_another_seed_others() {
    let options = options("FS", &[1, 10, 50, 100]);
    assert_eq!(options.streams(), options.streams());
    let other = WorkloadOptions { seed: 8, ..options.clone() };
    assert_ne!(options.streams(), other.streams());
}

/// Published figures depend on these draws: a change here changes every benchmark.
#[test]
fn the_draw_for_a_seed_never_changes() {
    let options = options("FS", &[1, 10, 50, 100]);
    let first: Vec<String> = queries(&options)
        .iter()
        .take(4)
        .map(|query| format!("{} {:?}", query.label(), query.keys))
        .collect();
    let expected = [
        "F-01 Some(5350520..=5410519)",
        "S-10 Some(1346931..=1946930)",
        "F-10 Some(724995..=1324994)",
        "F-01 Some(5701653..=5761652)",
    ];
    assert_eq!(first, expected);
}

#[test]
fn streams_start_one_after_another_with_the_queries_asked_for() {
    let streams = options("FS", &[1, 100]).streams().expect("streams");
    assert_eq!(streams.len(), 16);
    assert!(streams.iter().all(|stream| stream.queries.len() == 4));
    assert_eq!(streams[0].start_delay, Duration::ZERO);
    assert_eq!(streams[15].start_delay, Duration::from_millis(15 * 250));
}

#[test]
fn a_range_reads_its_percent_of_the_keys_somewhere_in_the_table() {
    for (number, keys_expected) in [(1, 60_000), (10, 600_000), (50, 3_000_000), (99, 5_940_000)] {
        let mut options = options("F", &[number]);
        options.streams = 100;
        let mut lows = Vec::new();
        for query in queries(&options) {
            let keys = query.keys.expect("a range");
            assert_eq!(keys.end() - keys.start() + 1, keys_expected);
            assert!(*keys.start() >= 1 && *keys.end() <= 6_000_000, "{keys:?}");
            lows.push(*keys.start());
        }
        // Places spread over all that is possible.
        let possible = 6_000_000 - keys_expected;
        assert!(*lows.iter().min().expect("ranges") < possible / 10);
        assert!(*lows.iter().max().expect("ranges") > possible * 9 / 10);
    }
}

#[test]
fn extreme_keys_are_drawn_without_overflow() {
    for keys in [i64::MIN..=i64::MAX, 5..=5, i64::MAX - 1..=i64::MAX] {
        let options = WorkloadOptions { keys: keys.clone(), ..options("FS", &[1, 50, 99, 100]) };
        for query in queries(&options) {
            let drawn = query.keys.unwrap_or(keys.clone());
            assert!(
                keys.contains(drawn.start()) && keys.contains(drawn.end()) && !drawn.is_empty()
            );
        }
    }
}

#[test]
fn letters_of_the_mix_are_equally_likely() {
    let mut options = options("FFS", &[1]);
    options.streams = 1000;
    let fast = queries(&options).iter().filter(|query| query.kind == Kind::Fast).count();
    assert!((2550..2780).contains(&fast), "{fast} of 4000, expected about 2667");
    assert!(queries(&self::options("S", &[1])).iter().all(|query| query.kind == Kind::Slow));
}

#[test]
fn a_query_says_its_range_unless_it_reads_all() {
    let part = Query { kind: Kind::Fast, percent: percent(1), keys: Some(10..=20) };
    assert_eq!(part.label(), "F-01");
    let sql = part.sql("lineitem");
    assert!(sql.contains("FROM lineitem\n") && sql.ends_with("AND l_orderkey BETWEEN 10 AND 20"));
    assert!(sql.contains("sum(l_extendedprice * l_discount)"));

    let whole = Query { kind: Kind::Slow, percent: Percent::WHOLE, keys: None };
    assert_eq!(whole.label(), "S-100");
    assert!(!whole.sql("t").contains("l_orderkey"));
    assert!(whole.sql("t").contains("GROUP BY l_returnflag, l_linestatus"));
    assert!(queries(&options("FS", &[100])).iter().all(|query| query.keys.is_none()));
}

#[test]
fn each_kind_and_range_is_run_alone_once() {
    let query =
        |kind, number, low| Query { kind, percent: percent(number), keys: Some(low..=low + 9) };
    let streams = [
        vec![query(Kind::Slow, 10, 1), query(Kind::Fast, 10, 2)],
        vec![query(Kind::Fast, 1, 3), query(Kind::Fast, 10, 4)],
    ]
    .map(|queries| Stream { start_delay: Duration::ZERO, queries });
    let expected = [query(Kind::Fast, 1, 3), query(Kind::Fast, 10, 2), query(Kind::Slow, 10, 1)];
    assert_eq!(standalone_queries(&streams), expected);
}

#[test]
fn input_that_makes_no_sense_is_refused_with_the_text_given() {
    for text in ["", "FX", "F S"] {
        assert_eq!(text.parse::<Mix>(), Err(WorkloadError::Mix(text.to_string())));
    }
    assert_eq!("ffs".parse::<Mix>().expect("a mix").to_string(), "FFS");
    for text in ["0", "101", "-1", "1.5", ""] {
        assert_eq!(text.parse::<Percent>(), Err(WorkloadError::Percent(text.to_string())));
    }
    assert_eq!(" 50".parse(), Ok(percent(50)));
    assert_eq!(options("F", &[]).streams(), Err(WorkloadError::Empty));
    #[allow(clippy::reversed_empty_ranges)]
    let no_keys = WorkloadOptions { keys: 1..=0, ..options("F", &[1]) };
    assert_eq!(no_keys.streams(), Err(WorkloadError::Keys(1, 0)));
}
