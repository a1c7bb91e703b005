//! Numbers of bytes and times, as users write them: `"200MB"`, `"1.5GiB"`, `4096`; `"30s"`, `"5min"`, `2.5`.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};

/// Reads a number of bytes: decimal and binary units, or plain bytes.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is not a number of bytes; write for example 200MB, 1.5GiB or 4096");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor = match unit {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0_f64.powi(4),
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    // A float holds every whole number up to here, more than any machine has bytes.
    if (0.0..=9e15).contains(&bytes) { Ok(bytes.round() as u64) } else { Err(wrong()) }
}

/// Reads a time: `ms`, `s`, `min`, `h`, `d`, or plain seconds.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time; write for example 500ms, 30s, 5min or 1h");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let time = number * seconds;
    // Clocks can add no more than some centuries to now.
    if time > 3e9 {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(time).map_err(|_| wrong())
}

/// The number and the unit, in lower case for the units that are written otherwise.
fn split(text: &str) -> Option<(f64, &'static str)> {
    let text = text.trim();
    let is_unit = |c: char| !c.is_ascii_digit() && c != '.' && c != '_';
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let known = [
        "", "b", "k", "kb", "m", "mb", "g", "gb", "t", "tb", "kib", "mib", "gib", "tib", "us",
        "ms", "s", "min", "h", "d",
    ];
    let unit = known.into_iter().find(|known| *known == unit)?;
    Some((number.replace('_', "").parse().ok()?, unit))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_times_are_read_in_all_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("200MB"), Ok(200_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse_duration("5min"), Ok(Duration::from_secs(300)));
        for wrong in ["", "MB", "12 parsecs", "-1", "1e30", "1.2.3", "30s"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "s", "-1s", "1 year", "5MB", "99999999999999999999s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
