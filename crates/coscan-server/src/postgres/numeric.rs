//! The binary form of NUMERIC, which has digits of base 10,000 ([PostgreSQL, `numeric_send`]).
//!
//! [PostgreSQL, `numeric_send`]:
//! https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/numeric.c

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::ScalarValue;

use crate::postgres::reader::{ProtocolError, Reader};
use crate::sql::decimal_digits;

const NEGATIVE: i16 = 0x4000;

/// The number of decimal digits in one digit of base 10,000.
const DIGITS: usize = 4;

/// The maximum number of decimal digits of a value that is read. PostgreSQL has up to 147,454.
const LENGTH_MAX: usize = 1000;

/// The binary form of a number written as `-12.50`.
pub(super) fn to_binary(text: &str) -> Vec<u8> {
    let (sign, text) = text.strip_prefix('-').map_or((0, text), |text| (NEGATIVE, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    // Both parts are padded to whole digits of base 10,000.
    let padding = (DIGITS - whole.len() % DIGITS) % DIGITS;
    let mut decimals = vec![b'0'; padding];
    decimals.extend(whole.bytes().chain(fraction.bytes()));
    decimals.resize(decimals.len().next_multiple_of(DIGITS), b'0');
    let value = |digit: &[u8]| digit.iter().fold(0, |sum, byte| sum * 10 + i16::from(byte - b'0'));
    let digits: Vec<i16> = decimals.chunks(DIGITS).map(value).collect();
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let end = digits.iter().rposition(|digit| *digit != 0).map_or(leading, |last| last + 1);
    let short = |number: usize| i16::try_from(number).unwrap_or(i16::MAX);
    let weight = short((padding + whole.len()) / DIGITS) - 1 - short(leading);
    let (weight, sign) = if leading == end { (0, 0) } else { (weight, sign) };
    let header = [short(end - leading), weight, sign, short(fraction.len())];
    header.iter().chain(&digits[leading..end]).flat_map(|number| number.to_be_bytes()).collect()
}

/// The text of a number in binary form.
pub(super) fn from_binary(bytes: bytes::Bytes) -> Result<String, ProtocolError> {
    let mut reader = Reader(bytes);
    let (count, weight, sign, scale) = (reader.i16()?, reader.i16()?, reader.i16()?, reader.i16()?);
    let count = usize::try_from(count).map_err(|_| ProtocolError("a number has no length"))?;
    let scale = usize::try_from(scale).map_err(|_| ProtocolError("a number has no scale"))?;
    if ![0, NEGATIVE].contains(&sign) {
        return Err(ProtocolError("a number is not finite"));
    }
    let before = usize::try_from(i32::from(weight) + 1).unwrap_or(0);
    let zeros = usize::try_from(-1 - i32::from(weight)).unwrap_or(0);
    if (before + zeros + count) * DIGITS + scale > LENGTH_MAX {
        return Err(ProtocolError("a number has too many digits"));
    }
    let mut decimals = "0".repeat(zeros * DIGITS);
    for _ in 0..count {
        let digit = reader.i16()?;
        if !(0..10_000).contains(&digit) {
            return Err(ProtocolError("a number has a digit out of range"));
        }
        decimals.push_str(&format!("{digit:04}"));
    }
    let decimals = format!("{decimals:0<width$}", width = before * DIGITS + scale);
    let (whole, fraction) = decimals.split_at(before * DIGITS);
    let whole = whole.trim_start_matches('0');
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale == 0 { "" } else { "." };
    reader.end(format!("{sign}{whole}{point}{}", &fraction[..scale]))
}

/// Converts a number written as `-12.50`, with all its digits, to be compared with decimals of a type. Returns `None`
/// if they have too many digits together, or the number has an exponent.
pub(super) fn to_decimal(text: &str, compared_with: &DataType) -> Option<ScalarValue> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches(['+', '-']);
    let is_plain = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    let digits = whole.len() + fraction.len();
    let (whole_digits, scale) = decimal_digits(compared_with)?;
    let own_scale = i8::try_from(fraction.len()).ok()?;
    let whole_digits = i16::try_from(whole.len()).ok()?.max(whole_digits);
    let digits_together = whole_digits + i16::from(own_scale.max(scale));
    let own_precision = u8::try_from(digits.max(1)).ok()?;
    let data_type = if digits_together <= i16::from(DECIMAL128_MAX_PRECISION) {
        DataType::Decimal128(own_precision, own_scale)
    } else if digits_together <= i16::from(DECIMAL256_MAX_PRECISION) {
        DataType::Decimal256(own_precision, own_scale)
    } else {
        return None;
    };
    let value = ScalarValue::from(text);
    (is_plain && digits > 0).then(|| value.cast_to(&data_type).ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_have_all_digits() {
        let money = DataType::Decimal128(15, 2);
        for (text, shown) in [
            ("-1234.495", "-1234.495"),
            ("0", "0"),
            (".5", "0.5"),
            ("+007.10", "7.10"),
            (
                "99999999999999999999999999999999999999999.5",
                "99999999999999999999999999999999999999999.5",
            ),
        ] {
            assert_eq!(to_decimal(text, &money).unwrap().to_string(), shown);
        }
        for text in ["1e5", "", "-", ".", "1.2.3", "5-3", &"9".repeat(77)] {
            assert_eq!(to_decimal(text, &money), None, "{text}");
        }
        // There is room for the digits of both.
        let third = to_decimal("0.3333333333333333333333333333", &DataType::Decimal128(25, 2));
        assert!(matches!(third, Some(ScalarValue::Decimal256(Some(_), 29, 28))), "{third:?}");
        let tenth = format!("0.{}", "1".repeat(55));
        assert_eq!(to_decimal(&tenth, &DataType::Decimal128(25, 2)), None);
    }

    #[test]
    fn numbers_have_the_form_of_postgresql() {
        for (text, form) in [
            ("0", [0_i16, 0, 0, 0].as_slice()),
            ("0.00", &[0, 0, 0, 2]),
            ("1", &[1, 0, 0, 0, 1]),
            ("-1.50", &[2, 0, NEGATIVE, 2, 1, 5000]),
            ("12345.678", &[3, 1, 0, 3, 1, 2345, 6780]),
            ("10000", &[1, 1, 0, 0, 1]),
            ("0.00001", &[1, -2, 0, 5, 1000]),
        ] {
            let expected: Vec<u8> = form.iter().flat_map(|number| number.to_be_bytes()).collect();
            assert_eq!(to_binary(text), expected, "{text}");
            assert_eq!(from_binary(Bytes::from(expected)).unwrap(), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_are_written(value in any::<i128>(), scale in 0_usize..38) {
            let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            let sign = if value < 0 { "-" } else { "" };
            let point = if scale == 0 { "" } else { "." };
            let text = format!("{sign}{whole}{point}{fraction}");
            prop_assert_eq!(from_binary(Bytes::from(to_binary(&text))).unwrap(), text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = from_binary(Bytes::from(bytes));
        }
    }
}
