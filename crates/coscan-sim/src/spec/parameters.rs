//! The workload and machine of a file, in a few lines for reports.

use toml::{Table, Value};

/// A line for each part of the file: its key and its content.
pub(super) fn parameters(document: &Table) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for key in ["machine", "table", "query", "streams"] {
        match document.get(key) {
            Some(Value::Table(named)) if key != "machine" => {
                let each = named.iter().map(|(name, value)| (format!("{key} {name}"), text(value)));
                lines.extend(each);
            }
            Some(value) => lines.push((key.to_owned(), text(value))),
            None => {}
        }
    }
    lines
}

/// A value as text, such as `cores 2, disk (perfect (chunk 100 ms))`, without the outer brackets.
fn text(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let inner = |value: &Value| match value {
                Value::Table(_) => format!("({})", text(value)),
                _ => text(value),
            };
            let parts = table.iter().map(|(key, value)| format!("{key} {}", inner(value)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
