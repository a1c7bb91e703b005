//! Numbers of bytes and times in configuration files: `"200MB"`, `"1.5GiB"`, `4096`; `"30s"`, `"5min"`, `2.5`.

use std::fmt;
use std::time::Duration;

use coscan_runtime::units::{parse_bytes, parse_duration};
use serde::de::{Deserializer, Error, Visitor};

/// A number, or a text with a unit.
struct Units<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Units<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text with a unit")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.0)(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.0)(&number.to_string()).map_err(E::custom)
    }
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    from.deserialize_any(Units(parse_bytes))
}

pub(super) fn bytes_option<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(from).map(Some)
}

pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_any(Units(parse_duration))
}

pub(super) fn duration_option<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}
