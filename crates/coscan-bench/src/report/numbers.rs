//! Numbers as text, the same way in every report.

/// Seconds or ratios: two decimals.
pub(super) fn decimal(value: f64) -> String {
    format!("{value:.2}")
}

/// Whole numbers with commas between thousands.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in units of a million, without the unit: one decimal below 100.
pub(super) fn megabytes(bytes: u64) -> String {
    if bytes < 99_950_000 {
        format!("{:.1}", bytes as f64 / 1e6)
    } else {
        count((bytes + 500_000) / 1_000_000)
    }
}

/// A number in little space: two or three digits.
pub(super) fn short(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A number without needless zeros, for the ticks of an axis.
pub(super) fn tick(value: f64) -> String {
    if value >= 1000.0 {
        return count(value.round() as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(megabytes(99_949_999), "99.9");
        assert_eq!(megabytes(99_950_000), "100");
        assert_eq!(megabytes(12_345_678_901), "12,346");
        assert_eq!((short(9.94), short(9.96)), ("9.9".to_string(), "10".to_string()));
        assert_eq!([tick(0.5), tick(20.0), tick(2000.0)], ["0.5", "20", "2,000"]);
    }
}
