//! Numbers as text, the same way in every report.

/// Seconds or ratios: two decimals.
#[must_use]
pub fn decimal(value: f64) -> String {
    format!("{value:.2}")
}

/// Whole numbers with commas between thousands.
#[must_use]
pub fn count(value: u64) -> String {
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
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    if bytes < 99_950_000 {
        format!("{:.1}", bytes as f64 / 1e6)
    } else {
        count((bytes + 500_000) / 1_000_000)
    }
}

/// A number in little space: two or three digits.
#[must_use]
pub fn short(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A number without needless zeros, for the ticks of an axis.
#[must_use]
pub fn tick(value: f64) -> String {
    if value >= 1000.0 {
        return count(value.round() as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Bytes in decimal units with three significant digits: `12.3 MB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Whether each value is the lowest; all false if all are equal.
#[must_use]
pub fn lowest(values: impl IntoIterator<Item = f64>) -> Vec<bool> {
    let values: Vec<f64> = values.into_iter().collect();
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let differ = values.iter().any(|value| *value != lowest);
    values.iter().map(|value| differ && *value == lowest).collect()
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

    #[test]
    fn bytes_are_written_short() {
        let shown = [0, 999, 1000, 12_345, 999_600, 200_000_000].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "200 MB"]);
    }

    #[test]
    fn only_a_value_below_another_is_lowest() {
        assert_eq!(lowest([2.0, 1.0, 1.0]), [false, true, true]);
        assert_eq!(lowest([1.0, 1.0]), [false, false]);
    }
}
