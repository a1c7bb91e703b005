//! PostgreSQL settings that have no effect here.

use crate::users::{Granted, User};

/// The version of PostgreSQL that the server resembles, for clients that ask.
pub const SERVER_VERSION: &str = "15.18 (coscan)";

/// Settings with a fixed value. SET to another one is refused.
pub(super) const FIXED: [(&str, &str); 14] = [
    ("server_version", SERVER_VERSION),
    ("server_version_num", "150018"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("bytea_output", "hex"),
    ("is_superuser", "off"),
];

/// Settings that clients commonly set and that have no effect here, with their defaults.
pub(super) const WITHOUT_EFFECT: [(&str, &str); 14] = [
    ("application_name", ""),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_tablespace", ""),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "on"),
    ("extra_float_digits", "1"),
    ("idle_in_transaction_session_timeout", "0"),
    ("intervalstyle", "postgres"),
    ("jit", "off"),
    ("lock_timeout", "0"),
    ("row_security", "on"),
    ("search_path", "public"),
    ("synchronous_commit", "on"),
];

/// The value of a setting with a fixed one. Users who change tables see what holds for their transactions.
pub(super) fn fixed_value(name: &str, user: &User) -> Option<&'static str> {
    let (_, fixed) = FIXED.iter().find(|(known, _)| *known == name)?;
    Some(of_writer(name, user).unwrap_or(fixed))
}

/// The default of a setting that has no effect.
pub(super) fn default_value(name: &str, user: &User) -> Option<&'static str> {
    let (_, default) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name)?;
    Some(of_writer(name, user).unwrap_or(default))
}

fn of_writer(name: &str, user: &User) -> Option<&'static str> {
    match name {
        _ if user.writes == Granted::none() => None,
        "transaction_read_only" | "default_transaction_read_only" => Some("off"),
        "transaction_isolation" | "default_transaction_isolation" => Some("repeatable read"),
        _ => None,
    }
}

/// Whether a client's value equals the fixed value of a setting. Only letters and digits count, as in PostgreSQL's
/// names of encodings, since asyncpg sends `'utf-8'` with the quotes.
pub(super) fn is_fixed_value(name: &str, value: &str, fixed: &str) -> bool {
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(char::is_ascii_alphanumeric);
        kept.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let value = plain(value);
    value == plain(fixed) || name == "client_encoding" && value == "unicode"
}
