//! Quantities as people write them: `"3 s"`, `"16 MiB"`, `"200 MB/s"`, `"45 cycles/byte"`.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanoseconds(pub(crate) u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bytes(pub(crate) f64);

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BytesPerSecond(pub(crate) f64);

/// Processor cycles per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hertz(pub(super) f64);

/// The size of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PoolSize {
    /// A number of bytes.
    Bytes(f64),
    /// This part of the bytes of all tables, 1 for all of them.
    PartOfTables(f64),
}

/// A time between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterarrivalTime {
    /// Always this long, in nanoseconds.
    Fixed(u64),
    /// Random with this mean in nanoseconds, exponentially distributed: independent arrivals.
    Random(u64),
}

/// The processor time of a query: a sum of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CostText {
    /// Nanoseconds for all rows of the table, by one core.
    pub(super) ns_per_table: f64,
    /// Nanoseconds per row.
    pub(super) ns_per_row: f64,
    /// Nanoseconds per byte of the pages it uses.
    pub(super) ns_per_byte: f64,
    /// Cycles per row.
    pub(super) cycles_per_row: f64,
    /// Cycles per byte of the pages it uses.
    pub(super) cycles_per_byte: f64,
}

/// A number and the text after it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim_start()))
}

fn ns_of_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

fn bytes_of_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => f64::from(1 << 20),
        "GiB" => f64::from(1 << 30),
        "TiB" => 1024.0 * f64::from(1 << 30),
        _ => return None,
    })
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    Some((number * ns_of_unit(unit)?).round() as u64)
}

fn bytes(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    Some(number * bytes_of_unit(unit)?)
}

/// A quantity that is read from text.
trait Quantity: Sized {
    /// The end of the error "expected …".
    const EXPECTED: &'static str;

    fn read(text: &str) -> Option<Self>;
}

impl Quantity for Nanoseconds {
    const EXPECTED: &'static str = "a time such as \"3 s\" or \"8 ms\"";

    fn read(text: &str) -> Option<Self> {
        nanoseconds(text).map(Self)
    }
}

impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size such as \"16 MiB\" or \"4.4 GB\"";

    fn read(text: &str) -> Option<Self> {
        bytes(text).map(Self)
    }
}

impl Quantity for BytesPerSecond {
    const EXPECTED: &'static str = "a bandwidth such as \"200 MB/s\"";

    fn read(text: &str) -> Option<Self> {
        bytes(text.trim().strip_suffix("/s")?).filter(|&rate| rate > 0.0).map(Self)
    }
}

impl Quantity for Hertz {
    const EXPECTED: &'static str = "a clock rate such as \"2 GHz\"";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let factor = match unit {
            "MHz" => 1e6,
            "GHz" => 1e9,
            _ => return None,
        };
        Some(Self(number * factor)).filter(|rate| rate.0 > 0.0)
    }
}

impl Quantity for PoolSize {
    const EXPECTED: &'static str = "a size such as \"1 GiB\", or \"40 %\" of all tables";

    fn read(text: &str) -> Option<Self> {
        match split(text)? {
            (number, "%") => Some(Self::PartOfTables(number / 100.0)),
            _ => bytes(text).map(Self::Bytes),
        }
    }
}

impl Quantity for InterarrivalTime {
    const EXPECTED: &'static str = "a time such as \"3 s\", or \"about 3 s\" for random ones";

    fn read(text: &str) -> Option<Self> {
        match text.trim().strip_prefix("about ") {
            Some(mean) => nanoseconds(mean).map(Self::Random),
            None => nanoseconds(text).map(Self::Fixed),
        }
    }
}

impl Quantity for CostText {
    const EXPECTED: &'static str = "a cost such as \"35 s\" for the whole table, \"20 ns/row\", \"2 ns/byte\" or \
         \"45 cycles/byte\", or a sum of them with +";

    fn read(text: &str) -> Option<Self> {
        let mut cost = Self::default();
        for part in text.split('+') {
            let (number, unit) = split(part)?;
            match unit.split_once('/') {
                None => cost.ns_per_table += number * ns_of_unit(unit)?,
                Some(("cycles", "row")) => cost.cycles_per_row += number,
                Some(("cycles", "byte")) => cost.cycles_per_byte += number,
                Some((unit, "row")) => cost.ns_per_row += number * ns_of_unit(unit)?,
                Some((unit, "byte")) => cost.ns_per_byte += number * ns_of_unit(unit)?,
                Some(_) => return None,
            }
        }
        Some(cost)
    }
}

struct QuantityVisitor<T>(std::marker::PhantomData<T>);

impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::read(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

macro_rules! deserialize_quantity {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(QuantityVisitor(std::marker::PhantomData))
            }
        }
    )*};
}

deserialize_quantity!(
    Nanoseconds,
    Bytes,
    BytesPerSecond,
    Hertz,
    PoolSize,
    InterarrivalTime,
    CostText
);

/// A result of the paper: a plain number, or a size such as `"20461 MB"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure(pub(super) f64);

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl Visitor<'_> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a size such as \"20461 MB\"")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Figure, E> {
        Ok(Figure(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Figure, E> {
        Ok(Figure(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Figure, E> {
        bytes(text).map(Figure).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The name of a query in a stream: a template, and the part of the table if it differs: `F`, `F-10`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueryName {
    /// The template.
    pub(super) template: String,
    /// Percent of the table.
    pub(super) percent: Option<f64>,
}

impl QueryName {
    /// Splits a name into its parts.
    pub(super) fn of(text: &str) -> Self {
        let with_percent = text.rsplit_once('-').and_then(|(template, percent)| {
            Some(Self { template: template.to_owned(), percent: Some(percent.parse().ok()?) })
        });
        with_percent.unwrap_or_else(|| Self { template: text.to_owned(), percent: None })
    }
}

#[cfg(test)]
mod tests;
