//! Numbers of bytes and times, as users write them: `200MB`, `1.5 GiB`, `4096`; `30s`, `5min`, `2.5`.

use std::time::Duration;

/// A limit above the memory of any machine. Sums of several values still fit.
pub const BYTES_MAX: u64 = 1 << 60;

/// A limit of some centuries, which clocks can add to the current time.
const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Parses a number of bytes, with decimal or binary units or without a unit.
///
/// # Errors
/// A sentence that lists the accepted forms.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size::parse_size(text).ok().filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| {
        format!("`{text}` is not a number of bytes; write for example 200MB, 1.5GiB or 4096")
    })
}

/// Parses a time with its unit, or plain seconds.
///
/// # Errors
/// A sentence that lists the accepted forms.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let time = match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    time.filter(|&time| time <= DURATION_MAX).ok_or_else(|| {
        format!("`{text}` is not a time; write for example 500ms, 30s, 5min, 1h or 1h 30min")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_times_are_read_in_all_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("200MB"), Ok(200_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("1_000k"), Ok(1_000_000));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(parse_duration("5min"), Ok(Duration::from_secs(300)));
        for wrong in ["", "MB", "12 parsecs", "-1", "1e30", "1.2.3", "30s"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "s", "-1s", "1 parsec", "5MB", "99999999999999999999s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
