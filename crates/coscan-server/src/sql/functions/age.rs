//! `age(later, earlier)`: years, months and days between two points in time, as PostgreSQL counts them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, Timelike};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

pub(super) fn age() -> ScalarUDF {
    let arguments = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    ScalarUDF::new_from_impl(Age(Signature::one_of(arguments, Volatility::Immutable)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Age(Signature);

impl ScalarUDFImpl for Age {
    fn name(&self) -> &str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    /// The age of a transaction is a number. There are no transactions.
    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let is_time = |of: &DataType| of.is_temporal() || of.is_string() || of.is_null();
        match arguments {
            [later, earlier] if !is_time(later) || !is_time(earlier) => {
                let text = format!("age of {later} and {earlier}: it takes two timestamps");
                Err(DataFusionError::Plan(text))
            }
            [_, _] => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            [of] if of.is_temporal() => {
                let text = "age of one argument; write age(now(), …)".to_owned();
                Err(DataFusionError::NotImplemented(text))
            }
            _ => Ok(DataType::Int64),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [later, earlier] = &arrays[..] else {
            let rows = arrays.first().map_or(0, |array| array.len());
            return Ok(ColumnarValue::Array(Arc::new(Int64Array::new_null(rows))));
        };
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let later = cast_with_options(later, &micros, &strict)?;
        let earlier = cast_with_options(earlier, &micros, &strict)?;
        let time = |array: &ArrayRef, row: usize| {
            let array = array.as_primitive::<TimestampMicrosecondType>();
            let micros = array.is_valid(row).then(|| array.value(row))?;
            Some(DateTime::from_timestamp_micros(micros)?.naive_utc())
        };
        let ages = (0..later.len()).map(|row| between(time(&later, row)?, time(&earlier, row)?));
        Ok(ColumnarValue::Array(Arc::new(ages.collect::<IntervalMonthDayNanoArray>())))
    }
}

/// The interval from the earlier time: whole months, then days, then the rest. Remaining days are those of the earlier
/// month.
fn between(later: NaiveDateTime, earlier: NaiveDateTime) -> Option<IntervalMonthDayNano> {
    if later < earlier {
        let IntervalMonthDayNano { months, days, nanoseconds } = between_ordered(earlier, later)?;
        return Some(IntervalMonthDayNanoType::make_value(-months, -days, -nanoseconds));
    }
    between_ordered(later, earlier)
}

fn between_ordered(later: NaiveDateTime, earlier: NaiveDateTime) -> Option<IntervalMonthDayNano> {
    let nanos = |time: NaiveDateTime| {
        i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
    };
    let day = |time: NaiveDateTime| i32::try_from(time.day()).unwrap_or_default();
    let month =
        |time: NaiveDateTime| time.year() * 12 + i32::try_from(time.month0()).unwrap_or_default();
    let mut nanoseconds = nanos(later) - nanos(earlier);
    let mut days = day(later) - day(earlier);
    let mut months = month(later) - month(earlier);
    if nanoseconds < 0 {
        nanoseconds += 86_400_000_000_000;
        days -= 1;
    }
    if days < 0 {
        let first = NaiveDate::from_ymd_opt(earlier.year(), earlier.month(), 1)?;
        let next = first.checked_add_months(Months::new(1))?;
        days += i32::try_from((next - first).num_days()).ok()?;
        months -= 1;
    }
    Some(IntervalMonthDayNanoType::make_value(months, days, nanoseconds))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The expected texts are answers of PostgreSQL 15.
    #[test]
    fn ages_are_those_of_postgresql() {
        let time = |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        for (later, earlier, months, days, hours) in [
            ("2024-01-01 00:00", "2023-01-01 00:00", 12, 0, 0),
            ("2024-03-01 00:00", "2024-01-31 00:00", 1, 1, 0),
            ("2024-03-30 06:00", "2024-02-29 12:00", 1, 0, 18),
            ("2023-01-01 00:00", "2024-01-01 00:00", -12, 0, 0),
            ("2024-05-10 01:00", "2024-05-10 03:00", 0, 0, -2),
        ] {
            let expected =
                IntervalMonthDayNanoType::make_value(months, days, hours * 3_600_000_000_000);
            assert_eq!(between(time(later), time(earlier)), Some(expected), "{later} {earlier}");
        }
    }
}
