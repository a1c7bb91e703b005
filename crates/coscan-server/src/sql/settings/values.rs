//! The texts of values of settings.

use std::time::Duration;

use coscan_runtime::units::parse_duration;

/// Cuts off a value, since longer ones are of no use.
pub(super) fn cut(value: &str) -> String {
    value[..value.floor_char_boundary(256)].to_owned()
}

/// Parses a number.
pub(super) fn parse<T: std::str::FromStr>(value: Option<&str>) -> Result<Option<T>, ()> {
    value.map(|value| value.trim().parse().map_err(|_| ())).transpose()
}

/// Parses a switch, as PostgreSQL writes it.
pub(super) fn on_or_off(value: &str) -> Result<bool, ()> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(()),
    }
}

/// Parses a time. Plain numbers are milliseconds, as in PostgreSQL.
pub(super) fn milliseconds(value: &str) -> Result<Duration, String> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_duration(&format!("{value}ms"));
    }
    parse_duration(value)
}
