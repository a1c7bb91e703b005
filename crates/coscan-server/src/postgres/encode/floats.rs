//! Formats floats as PostgreSQL does, with the fewest digits that distinguish them, in plain form unless they are very
//! large or small.

use std::fmt::LowerExp;

/// The exponents below which the plain form is used.
const PLAIN_BELOW: (i32, i32) = (6, 15);

/// Formats a float of 32 bits.
pub(super) fn text_of_f32(value: f32) -> String {
    text(value, f64::from(value), PLAIN_BELOW.0)
}

/// Formats a float of 64 bits.
pub(super) fn text_of_f64(value: f64) -> String {
    text(value, value, PLAIN_BELOW.1)
}

fn text(value: impl LowerExp, wide: f64, plain_below: i32) -> String {
    if wide.is_nan() {
        return "NaN".to_owned();
    }
    if wide.is_infinite() {
        return if wide > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if !(-4..plain_below).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs());
    }
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = exponent.unsigned_abs() as usize - 1;
        return format!("{sign}0.{}{digits}", "0".repeat(zeros));
    };
    match whole {
        0 => format!("{sign}0.{digits}"),
        whole if whole < digits.len() => {
            format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
        }
        whole => format!("{sign}{digits}{}", "0".repeat(whole - digits.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are answers of PostgreSQL 15.
    #[test]
    fn texts_are_those_of_postgresql() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (123_456.789, "123456.789"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text_of_f64(value), expected);
        }
        for (value, expected) in [
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (0.1, "0.1"),
            (f32::MAX, "3.4028235e+38"),
            (1e-45, "1e-45"),
        ] {
            assert_eq!(text_of_f32(value), expected);
        }
    }
}
