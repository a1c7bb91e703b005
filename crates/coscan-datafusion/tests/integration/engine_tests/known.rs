//! Statements to which the engines may give different answers, with reasons.

use std::collections::HashMap;
use std::sync::LazyLock;

static KNOWN: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("differences.txt").lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("PLACE REASON")).collect()
});

/// The reason why the answers to the statement at a place may differ.
pub(crate) fn reason(place: &str) -> Option<&'static str> {
    KNOWN.get(place).copied()
}
