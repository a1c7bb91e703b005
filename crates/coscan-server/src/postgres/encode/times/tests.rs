#![allow(clippy::unwrap_used)]

use super::*;

fn text(time: Time, zone: Option<&str>) -> String {
    let mut text = String::new();
    time.write(&mut text, zone.map(|zone| zone.parse().unwrap())).unwrap();
    text
}

/// The expected texts are answers of PostgreSQL 15.
#[test]
fn texts_are_those_of_postgresql() {
    const HOUR: i64 = 3600 * SECOND;
    let noon = 1_704_110_400 * SECOND;
    let interval = |months, days, micros| Time::Interval { months, days, micros };
    for (time, zone, expected) in [
        (Time::Date(0), None, "1970-01-01"),
        (Time::Date(19_782), None, "2024-02-29"),
        (Time::Date(-719_163), None, "0001-12-31 BC"),
        (Time::Date(-2_440_588), None, "4714-11-24 BC"),
        (Time::Date(2_932_897), None, "10000-01-01"),
        (Time::OfDay(0), None, "00:00:00"),
        (Time::OfDay(24 * HOUR), None, "24:00:00"),
        (Time::OfDay(HOUR + 1), None, "01:00:00.000001"),
        (Time::Timestamp(noon), None, "2024-01-01 12:00:00"),
        (Time::Timestamp(-1), None, "1969-12-31 23:59:59.999999"),
        (Time::Timestamp(noon + 500_000), Some("UTC"), "2024-01-01 12:00:00.5+00"),
        (Time::Timestamp(noon), Some("Asia/Kolkata"), "2024-01-01 17:30:00+05:30"),
        (Time::Timestamp(noon), Some("Asia/Kathmandu"), "2024-01-01 17:45:00+05:45"),
        (Time::Timestamp(noon), Some("America/St_Johns"), "2024-01-01 08:30:00-03:30"),
        (Time::Timestamp(noon), Some("-03:30"), "2024-01-01 08:30:00-03:30"),
        (
            Time::Timestamp(-62_135_596_800 * SECOND),
            Some("America/New_York"),
            "0001-12-31 19:03:58-04:56:02 BC",
        ),
        (interval(0, 0, 0), None, "00:00:00"),
        (interval(14, 3, 4 * HOUR), None, "1 year 2 mons 3 days 04:00:00"),
        (interval(-14, 3, -HOUR), None, "-1 years -2 mons +3 days -01:00:00"),
        (interval(1, -1, HOUR), None, "1 mon -1 days +01:00:00"),
        (interval(0, 1, 0), None, "1 day"),
        (interval(0, 0, 100 * HOUR + 1500), None, "100:00:00.0015"),
    ] {
        assert_eq!(text(time, zone), expected);
    }
}

#[test]
fn dates_follow_each_other() {
    let mut before = civil(-1_000_000);
    for days in -999_999..1_000_000 {
        let now = civil(days);
        let is_next = now == (before.0, before.1, before.2 + 1)
            || now.2 == 1 && before.2 >= 28 && (now.1 == before.1 + 1 || now.1 == 1);
        assert!(is_next, "{before:?} {now:?}");
        before = now;
    }
}
