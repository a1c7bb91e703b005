//! Formats dates, times and intervals as PostgreSQL does, in any unit and for any distance from the epoch.

use std::fmt::{self, Write};

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, Offset, TimeZone};

const SECOND: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The days from 1970 to 2000, which is PostgreSQL's epoch.
const EPOCH_DAYS: i64 = 10_957;

/// A point in time or an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Days since 1970.
    Date(i64),
    /// Microseconds since midnight.
    OfDay(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    Interval {
        months: i32,
        days: i32,
        micros: i64,
    },
}

impl Time {
    /// Reads the value of a row.
    ///
    /// # Errors
    /// If it is out of the range of 64 bits, or not a time.
    pub(super) fn of(values: &ArrayRef, row: usize) -> Result<Self, fmt::Error> {
        let micros = |value: i64, unit: &TimeUnit| match unit {
            TimeUnit::Second => value.checked_mul(SECOND).ok_or(fmt::Error),
            TimeUnit::Millisecond => value.checked_mul(1000).ok_or(fmt::Error),
            TimeUnit::Microsecond => Ok(value),
            TimeUnit::Nanosecond => Ok(value.div_euclid(1000)),
        };
        macro_rules! value {
            ($type:ty) => {
                i64::from(values.as_primitive::<$type>().value(row))
            };
        }
        match values.data_type() {
            DataType::Date32 => Ok(Self::Date(value!(Date32Type))),
            DataType::Date64 => Ok(Self::Date(value!(Date64Type).div_euclid(DAY_SECONDS * 1000))),
            DataType::Time32(unit) | DataType::Time64(unit) => {
                let value = match unit {
                    TimeUnit::Second => value!(Time32SecondType),
                    TimeUnit::Millisecond => value!(Time32MillisecondType),
                    TimeUnit::Microsecond => value!(Time64MicrosecondType),
                    TimeUnit::Nanosecond => value!(Time64NanosecondType),
                };
                micros(value, unit).map(Self::OfDay)
            }
            DataType::Timestamp(unit, _) => {
                let value = match unit {
                    TimeUnit::Second => value!(TimestampSecondType),
                    TimeUnit::Millisecond => value!(TimestampMillisecondType),
                    TimeUnit::Microsecond => value!(TimestampMicrosecondType),
                    TimeUnit::Nanosecond => value!(TimestampNanosecondType),
                };
                micros(value, unit).map(Self::Timestamp)
            }
            DataType::Duration(unit) => {
                let value = match unit {
                    TimeUnit::Second => value!(DurationSecondType),
                    TimeUnit::Millisecond => value!(DurationMillisecondType),
                    TimeUnit::Microsecond => value!(DurationMicrosecondType),
                    TimeUnit::Nanosecond => value!(DurationNanosecondType),
                };
                micros(value, unit).map(|micros| Self::Interval { months: 0, days: 0, micros })
            }
            DataType::Interval(unit) => Ok(interval(values, row, *unit)),
            _ => Err(fmt::Error),
        }
    }

    /// Writes the value as text. With a zone, it is written as local time there.
    ///
    /// # Errors
    /// If the zone has no time at this point.
    pub(super) fn write(self, to: &mut impl Write, zone: Option<Tz>) -> fmt::Result {
        match self {
            Self::Date(days) => {
                let is_bc = write_date(to, days)?;
                write_era(to, is_bc)
            }
            Self::OfDay(micros) => write_clock(to, micros),
            Self::Timestamp(micros) => {
                let utc = micros.div_euclid(SECOND);
                let offset = zone.map(|zone| offset(zone, utc)).transpose()?;
                let local = utc + offset.unwrap_or_default();
                let is_bc = write_date(to, local.div_euclid(DAY_SECONDS))?;
                to.write_char(' ')?;
                let of_day = local.rem_euclid(DAY_SECONDS) * SECOND;
                write_clock(to, of_day + micros.rem_euclid(SECOND))?;
                if let Some(offset) = offset {
                    write_offset(to, offset)?;
                }
                write_era(to, is_bc)
            }
            Self::Interval { months, days, micros } => write_interval(to, months, days, micros),
        }
    }

    /// The bytes of the binary form.
    ///
    /// # Errors
    /// If it is out of the range of that form.
    pub(super) fn to_binary(self) -> Result<Vec<u8>, fmt::Error> {
        Ok(match self {
            Self::Date(days) => {
                let days = i32::try_from(days - EPOCH_DAYS).map_err(|_| fmt::Error)?;
                days.to_be_bytes().to_vec()
            }
            Self::OfDay(micros) => micros.to_be_bytes().to_vec(),
            Self::Timestamp(micros) => {
                let since = micros.checked_sub(EPOCH_DAYS * DAY_SECONDS * SECOND);
                // The ends of the range stand for infinity.
                let since = since.filter(|it| ![i64::MIN, i64::MAX].contains(it));
                since.ok_or(fmt::Error)?.to_be_bytes().to_vec()
            }
            Self::Interval { months, days, micros } => {
                let mut bytes = micros.to_be_bytes().to_vec();
                bytes.extend(days.to_be_bytes());
                bytes.extend(months.to_be_bytes());
                bytes
            }
        })
    }
}

fn interval(values: &ArrayRef, row: usize, unit: IntervalUnit) -> Time {
    match unit {
        IntervalUnit::YearMonth => {
            let months = values.as_primitive::<IntervalYearMonthType>().value(row);
            Time::Interval { months, days: 0, micros: 0 }
        }
        IntervalUnit::DayTime => {
            let value = values.as_primitive::<IntervalDayTimeType>().value(row);
            let micros = i64::from(value.milliseconds) * 1000;
            Time::Interval { months: 0, days: value.days, micros }
        }
        IntervalUnit::MonthDayNano => {
            let value = values.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let micros = value.nanoseconds / 1000;
            Time::Interval { months: value.months, days: value.days, micros }
        }
    }
}

/// The seconds by which a zone is ahead of UTC, at a time in seconds since 1970.
fn offset(zone: Tz, utc: i64) -> Result<i64, fmt::Error> {
    let at = DateTime::from_timestamp(utc, 0).ok_or(fmt::Error)?;
    Ok(i64::from(zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()))
}

/// Writes year, month and day, and returns whether the year is before Christ.
fn write_date(to: &mut impl Write, days: i64) -> Result<bool, fmt::Error> {
    let (year, month, day) = civil(days);
    let is_bc = year <= 0; // There is no year 0: it is 1 BC.
    let year = if is_bc { 1 - year } else { year };
    write!(to, "{year:04}-{month:02}-{day:02}")?;
    Ok(is_bc)
}

fn write_era(to: &mut impl Write, is_bc: bool) -> fmt::Result {
    if is_bc { to.write_str(" BC") } else { Ok(()) }
}

/// The year, month and day of the proleptic Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn write_clock(to: &mut impl Write, micros: i64) -> fmt::Result {
    let seconds = micros / SECOND;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    write!(to, "{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
    let fraction = format!("{:06}", micros % SECOND);
    match fraction.trim_end_matches('0') {
        "" => Ok(()),
        digits => write!(to, ".{digits}"),
    }
}

fn write_offset(to: &mut impl Write, offset: i64) -> fmt::Result {
    let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    write!(to, "{sign}{:02}", offset / 3600)?;
    if offset % 3600 != 0 {
        write!(to, ":{:02}", offset / 60 % 60)?;
    }
    if offset % 60 != 0 {
        write!(to, ":{:02}", offset % 60)?;
    }
    Ok(())
}

/// Writes an interval in the style `postgres`: `1 year 2 mons -3 days +04:05:06`.
fn write_interval(to: &mut impl Write, months: i32, days: i32, micros: i64) -> fmt::Result {
    let (mut is_empty, mut is_negative) = (true, false);
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count == 0 {
            continue;
        }
        let space = if is_empty { "" } else { " " };
        let sign = if is_negative && count > 0 { "+" } else { "" };
        write!(to, "{space}{sign}{count} {unit}{}", if count == 1 { "" } else { "s" })?;
        (is_empty, is_negative) = (false, count < 0);
    }
    if !is_empty && micros == 0 {
        return Ok(());
    }
    let space = if is_empty { "" } else { " " };
    let sign = match micros < 0 {
        true => "-",
        false if is_negative => "+",
        false => "",
    };
    write!(to, "{space}{sign}")?;
    write_clock(to, micros.saturating_abs())
}

/// The zone of a column.
pub(super) fn zone(data_type: &DataType) -> Option<Tz> {
    match data_type {
        DataType::Timestamp(_, Some(zone)) => zone.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
