//! The streams conform to the options, and are the same for the same seed.

use std::collections::BTreeSet;
use std::time::Duration;

use coscan_bench::workload::{
    ConstantChoice, Constants, Kind, Mix, Percent, Query, Stream, StreamGroup, WorkloadError,
    WorkloadOptions, standalone_queries,
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
        constants: ConstantChoice::Equal,
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

/// The text of Q6 and Q1, on which published figures depend as well.
#[test]
fn equal_constants_are_those_of_the_validation_run() {
    let fast = "SELECT sum(l_extendedprice * l_discount) AS revenue
FROM t
WHERE l_shipdate >= DATE '1994-01-01'
  AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07
  AND l_quantity < 24";
    assert_eq!(Query::whole(Kind::Fast).sql("t"), fast);
    let slow = Query::whole(Kind::Slow).sql("t");
    for part in [
        "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge",
        "WHERE l_shipdate <= DATE '1998-09-02'\nGROUP BY",
    ] {
        assert!(slow.contains(part), "{part} in\n{slow}");
    }
    let drawn = queries(&options("FS", &[1, 100]));
    assert!(drawn.iter().all(|query| query.constants == Constants::Validation));
}

/// The numbers and dates of a query's text, other than its keys and `AS sum_qty`.
fn constants(query: &Query) -> BTreeSet<String> {
    let sql = query.sql("t");
    let sql = sql.split("\n  AND l_orderkey").next().expect("a text");
    let words =
        sql.split(|letter: char| !(letter.is_ascii_alphanumeric() || "._'-".contains(letter)));
    let words =
        words.filter(|word| word.starts_with(|letter: char| "'0123456789".contains(letter)));
    words.map(str::to_owned).collect()
}

#[test]
fn distinct_constants_are_shared_by_no_two_queries() {
    let mut options = options("FSOP", &[1, 10, 100]);
    options.groups[0].streams = 400;
    let equal = queries(&options);
    options.constants = ConstantChoice::Distinct(100);
    let drawn = queries(&options);
    assert_eq!(drawn, queries(&options), "a seed gives the same constants");
    let validation = [Kind::Fast, Kind::Slow].map(Query::whole);
    let mut seen: BTreeSet<String> = validation.iter().flat_map(constants).collect();
    for (query, equal) in drawn.iter().zip(&equal) {
        // Everything else is as in the same streams with equal constants.
        let with_equal = Query { constants: Constants::Validation, ..query.clone() };
        assert_eq!(with_equal, *equal);
        let count = match query.kind {
            Kind::Fast => 6,
            Kind::Slow => 3,
            _ => {
                assert_eq!(query.sql("t"), equal.sql("t"));
                continue;
            }
        };
        let constants = constants(query);
        assert_eq!(constants.len(), count, "{constants:?}");
        for constant in constants {
            assert!(seen.insert(constant.clone()), "{constant} is in two queries");
        }
    }
    options.groups[0] = StreamGroup { streams: 2000, ..group("F", &[1]) };
    assert!(matches!(options.streams(), Err(WorkloadError::DistinctConstants(8000))));
}

#[test]
fn so_many_percent_of_constants_are_distinct() {
    let mut options = options("FS", &[1]);
    options.groups[0].streams = 200;
    options.constants = "30%".parse().expect("constants");
    let drawn = queries(&options);
    let own = drawn.iter().filter(|query| query.constants != Constants::Validation).count();
    assert!((200..280).contains(&own), "{own} of 800, expected about 240");
}

#[test]
fn constants_of_tpch_are_few() {
    let mut options = options("FS", &[100]);
    options.groups[0].streams = 500;
    options.constants = ConstantChoice::Tpch;
    let drawn = queries(&options);
    let texts = |kind| {
        let of_kind = drawn.iter().filter(|query| query.kind == kind);
        of_kind.map(|query| query.sql("t")).collect::<BTreeSet<_>>()
    };
    // Five years, eight discounts and two quantities; 61 days.
    assert_eq!((texts(Kind::Fast).len(), texts(Kind::Slow).len()), (5 * 8 * 2, 61));
    let validation = [Kind::Fast, Kind::Slow].map(Query::whole).map(|query| query.sql("t"));
    assert!(
        texts(Kind::Fast).contains(&validation[0]) && texts(Kind::Slow).contains(&validation[1])
    );
    let leap = "DATE '1996-01-01'\n  AND l_shipdate < DATE '1997-01-01'";
    assert!(texts(Kind::Fast).iter().any(|sql| sql.contains(leap)));
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
    let part = Query::new(Kind::Fast, percent(1), Some(10..=20));
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
    let part = Query::new(Kind::Ordered, percent(10), Some(101..=500));
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
    let part = |kind| Query::new(kind, percent(10), Some(101..=500));
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
    let query = |kind, number, low| Query::new(kind, percent(number), Some(low..=low + 9));
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
    for text in ["", "some", "101%", "-1%", "50"] {
        let error = WorkloadError::Constants(text.to_string());
        assert_eq!(text.parse::<ConstantChoice>(), Err(error));
    }
    for text in ["equal", "tpch", "distinct", "30%", "0%"] {
        assert_eq!(text.parse::<ConstantChoice>().expect("constants").to_string(), text);
    }
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
