//! Texts that are read as quantities, and texts that are refused.

use super::*;

#[test]
fn quantities_are_read_as_written() {
    assert_eq!(Nanoseconds::read("1.5 ms"), Some(Nanoseconds(1_500_000)));
    assert_eq!(Nanoseconds::read("3s"), Some(Nanoseconds(3_000_000_000)));
    assert_eq!(Bytes::read("16 MiB"), Some(Bytes(16_777_216.0)));
    assert_eq!(BytesPerSecond::read("200 MB/s"), Some(BytesPerSecond(2e8)));
    assert_eq!(PoolSize::read("12.5 %"), Some(PoolSize::PartOfTables(0.125)));
    assert_eq!(InterarrivalTime::read("about 2 s"), Some(InterarrivalTime::Random(2_000_000_000)));
    let cost = CostText::read("35 s + 45 cycles/byte").expect("a sum");
    assert_eq!((cost.ns_per_table, cost.cycles_per_byte), (35e9, 45.0));
}

#[test]
fn what_has_no_unit_is_refused() {
    assert_eq!(Nanoseconds::read("3"), None);
    assert_eq!(Bytes::read("16 megs"), None);
    assert_eq!(BytesPerSecond::read("200 MB"), None);
    assert_eq!(BytesPerSecond::read("0 MB/s"), None);
    assert_eq!(CostText::read("45 cycles"), None);
}

#[test]
fn a_query_is_named_by_template_and_percent() {
    let f10 = QueryName { template: "F".to_owned(), percent: Some(10.0) };
    assert_eq!(QueryName::of("F-10"), f10);
    let other = QueryName { template: "top-sellers".to_owned(), percent: None };
    assert_eq!(QueryName::of("top-sellers"), other);
}
