//! Numbers of bytes in the form in which users write and read them.

pub(crate) use coscan_sim::report::draw::numbers::bytes as show_bytes;

/// Parses `200MB`, `1.5 GiB`, `4096`: decimal and binary units, or plain bytes.
///
/// # Errors
/// A sentence that lists the accepted forms.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size::parse_size(text).ok().filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| {
        format!("`{text}` is not a number of bytes; write for example 200MB, 1.5GiB or 4096")
    })
}

/// A limit above the memory of any machine. Sums of several values still fit.
pub(crate) const BYTES_MAX: u64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_all_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("200MB"), Ok(200_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("1_000k"), Ok(1_000_000));
        for wrong in ["", "MB", "12 parsecs", "-1", "1e30", "1.2.3"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
