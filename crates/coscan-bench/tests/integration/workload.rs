//! The streams conform to the options, and are the same for the same seed.

use std::time::Duration;

use coscan_bench::workload::{
    Kind, Mix, Percent, Query, Stream, StreamGroup, WorkloadError, WorkloadOptions,
    standalone_queries,
};

fn percent(number: u32) -> Percent {
    Percent::try_from(number).expect("1 to 100")
}

fn group(mix: &str, percents: &[u32]) -> StreamGroup {
    let percents = percents.iter().map(|number| percent(*number)).collect();
    StreamGroup::once(mix.parse().expect("a mix"), percents, 16, 4)
}

fn options(mix: &str, percents: &[u32]) -> WorkloadOptions {
    WorkloadOptions {
        groups: vec![group(mix, percents)],
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

/// Published figures depend on these draws, so that a change here changes every benchmark.
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
        options.groups[0].streams = 100;
        let mut lows = Vec::new();
        for query in queries(&options) {
            let keys = query.keys.expect("a range");
            assert_eq!(keys.end() - keys.start() + 1, keys_expected);
            assert!(*keys.start() >= 1 && *keys.end() <= 6_000_000, "{keys:?}");
            lows.push(*keys.start());
        }
        // The places are spread over the whole possible range.
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
    options.groups[0].streams = 1000;
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

    let whole = Query::whole(Kind::Slow);
    assert_eq!(whole.label(), "S-100");
    assert!(!whole.sql("t").contains("l_orderkey"));
    assert!(whole.sql("t").contains("GROUP BY l_returnflag, l_linestatus"));
    assert!(queries(&options("FS", &[100])).iter().all(|query| query.keys.is_none()));
}

#[test]
fn a_query_in_order_ends_with_a_limit_that_counts_the_orders_of_its_range() {
    let part = Query { kind: Kind::Ordered, percent: percent(10), keys: Some(101..=500) };
    assert_eq!(part.label(), "O-10");
    let sql = part.sql("lineitem");
    for line in ["FROM lineitem_in_order", "WHERE l_orderkey >= 101\n", "LIMIT 100\n"] {
        assert!(sql.contains(line), "{line:?} is missing in\n{sql}");
    }
    assert!(sql.contains("GROUP BY l_orderkey\n  ORDER BY l_orderkey\n"), "{sql}");
    let whole = Query::whole(Kind::Ordered).sql("t");
    assert!(!whole.contains("WHERE") && !whole.contains("LIMIT"), "{whole}");
}

#[test]
fn a_point_is_one_key_that_the_table_uses() {
    let mut options = options("P", &[50]);
    options.groups[0].streams = 100;
    let mut keys = Vec::new();
    for query in queries(&options) {
        assert_eq!((query.percent, query.label().as_str()), (Percent::ONE_KEY, "P"));
        let range = query.keys.clone().expect("a key");
        assert_eq!(range.start(), range.end());
        assert!(range.start() % 32 < 8 && options.keys.contains(range.start()), "{range:?}");
        let sql = query.sql("t");
        assert!(sql.ends_with(&format!("FROM t\nWHERE l_orderkey = {}", range.start())), "{sql}");
        keys.push(*range.start());
    }
    assert!(*keys.iter().min().expect("keys") < 100_000);
    assert!(*keys.iter().max().expect("keys") > 5_900_000);
}

#[test]
fn the_joins_of_cs11_read_the_same_range_of_both_tables() {
    let mut options = options("cs11-6.6", &[10, 100]);
    options.groups[0].streams = 100;
    let drawn = queries(&options);
    for kind in [Kind::JoinByPriority, Kind::JoinByMode, Kind::Lines, Kind::Orders] {
        let of_kind = drawn.iter().filter(|query| query.kind == kind).count();
        assert!((70..130).contains(&of_kind), "{of_kind} of 400 are {kind:?}");
    }
    assert!(queries(&self::options("cs11-6.6-joins", &[1])).iter().all(|q| q.kind.is_join()));
    let part = |kind| Query { kind, percent: percent(10), keys: Some(101..=500) };
    let join = part(Kind::JoinByPriority);
    assert_eq!(join.label(), "CMJ1-10");
    let sql = join.sql("lines");
    for line in
        ["FROM orders, lines\n", "o_orderkey = l_orderkey", "AND l_orderkey BETWEEN 101 AND 500\n"]
    {
        assert!(sql.contains(line), "{line:?} is missing in\n{sql}");
    }
    let orders = part(Kind::Orders).sql("lines");
    assert!(orders.ends_with("FROM orders\nWHERE o_orderkey BETWEEN 101 AND 500"), "{orders}");
}

#[test]
fn what_a_group_draws_does_not_depend_on_the_others() {
    let options = |groups: &[StreamGroup]| WorkloadOptions {
        groups: groups.to_vec(),
        ..options("FS", &[50])
    };
    let short = StreamGroup { repeats: true, ..group("P", &[1]) };
    let two = options(&[group("FS", &[50]), short.clone()]).streams().expect("streams");
    let one = options(&[group("FS", &[50])]).streams().expect("streams");
    assert_eq!(two[..16], one);
    let larger = StreamGroup { streams: 20, ..group("FS", &[50]) };
    let three = options(&[larger, short]).streams().expect("streams");
    let drawn = |streams: &[Stream]| -> Vec<_> {
        streams.iter().map(|stream| stream.queries.clone()).collect()
    };
    assert_eq!(drawn(&two[16..]), drawn(&three[20..]));
    assert!(two[16..].iter().all(|stream| stream.repeats && stream.group == 1));
    // They start after all others.
    assert_eq!(two[31].start_delay, Duration::from_millis(31 * 250));
}

#[test]
fn each_kind_and_range_is_run_alone_and_short_ones_several_times() {
    let query =
        |kind, number, low| Query { kind, percent: percent(number), keys: Some(low..=low + 9) };
    let short: Vec<_> = (0..9).map(|low| query(Kind::Fast, 1, low)).collect();
    let streams = [
        vec![query(Kind::Slow, 10, 1), query(Kind::Fast, 10, 2)],
        [&short[..2], &short[..], &[query(Kind::Fast, 10, 4)]].concat(),
    ]
    .map(Stream::once);
    let expected = [&short[..5], &[query(Kind::Fast, 10, 2), query(Kind::Slow, 10, 1)]].concat();
    assert_eq!(standalone_queries(&streams), expected);
}

#[test]
fn input_that_makes_no_sense_is_refused_with_the_text_given() {
    for text in ["", "FX", "F S", "cs11-6.7"] {
        assert_eq!(text.parse::<Mix>(), Err(WorkloadError::Mix(text.to_string())));
    }
    assert_eq!("ffsop".parse::<Mix>().expect("a mix").to_string(), "FFSOP");
    assert_eq!("cs11-6.6".parse::<Mix>().expect("a mix").to_string(), "cs11-6.6");
    for text in ["0", "101", "-1", "1.5", ""] {
        assert_eq!(text.parse::<Percent>(), Err(WorkloadError::Percent(text.to_string())));
    }
    assert_eq!(" 50".parse(), Ok(percent(50)));
    assert_eq!(options("F", &[]).streams(), Err(WorkloadError::Empty));
    let none = WorkloadOptions { groups: Vec::new(), ..options("F", &[1]) };
    assert_eq!(none.streams(), Err(WorkloadError::Empty));
    #[allow(clippy::reversed_empty_ranges)]
    let no_keys = WorkloadOptions { keys: 1..=0, ..options("F", &[1]) };
    assert_eq!(no_keys.streams(), Err(WorkloadError::Keys(1, 0)));
}
