//! Numbers of bytes, as users write and read them.

pub(crate) use coscan_sim::report::draw::numbers::bytes as show_bytes;

/// Reads `200MB`, `1.5 GiB`, `4096`: decimal and binary units, or plain bytes.
///
/// # Errors
/// A sentence that says what is accepted.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits_end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0_f64.powi(4),
        _ => return Err(wrong(text)),
    };
    let number: f64 = number.replace('_', "").parse().map_err(|_| wrong(text))?;
    let bytes = number * factor;
    // A float holds every whole number up to here, more than any machine has bytes.
    if (0.0..=9e15).contains(&bytes) { Ok(bytes.round() as u64) } else { Err(wrong(text)) }
}

fn wrong(text: &str) -> String {
    format!("`{text}` is not a number of bytes; write for example 200MB, 1.5GiB or 4096")
}

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
