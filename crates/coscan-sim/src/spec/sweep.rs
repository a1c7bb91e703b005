//! `[[sweep]]`: one case for each value of a key, or for each combination of values of several keys.

use toml::{Table, Value};

use super::document::SweepForm;
use super::error::{SpecError, wrong};

/// The file of one case.
pub(super) struct Variant {
    /// The names of the values, joined with `-`; empty if nothing is swept.
    pub(super) name: String,
    pub(super) document: Table,
}

/// All cases of a file, the last sweep varying fastest.
pub(super) fn variants(document: &Table, sweeps: &[SweepForm]) -> Result<Vec<Variant>, SpecError> {
    let mut variants = vec![Variant { name: String::new(), document: document.clone() }];
    for sweep in sweeps {
        let values = named_values(sweep)?;
        let mut more = Vec::with_capacity(variants.len() * values.len());
        for variant in variants {
            for (name, value) in &values {
                let mut document = variant.document.clone();
                set(&mut document, &sweep.key, value)?;
                let dash = if variant.name.is_empty() { "" } else { "-" };
                more.push(Variant { name: format!("{}{dash}{name}", variant.name), document });
            }
        }
        variants = more;
    }
    Ok(variants)
}

/// The values of a sweep with their names; by default the text of the value.
pub(super) fn named_values(sweep: &SweepForm) -> Result<Vec<(String, Value)>, SpecError> {
    let values: Vec<_> = match &sweep.values {
        Value::Table(values) => values.iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
        Value::Array(values) => values.iter().map(|v| (name_of(v), v.clone())).collect(),
        _ => Vec::new(),
    };
    if values.is_empty() {
        let problem =
            "write `values = [1, 2]`, or `values = { low = 1, high = 2 }` to name the cases";
        return Err(wrong(format!("sweep of {}", sweep.key), problem));
    }
    Ok(values)
}

fn name_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(name_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Sets the value of a key such as `machine.pool`. The last part of the key may be new; the others must exist.
fn set(document: &mut Table, key: &str, value: &Value) -> Result<(), SpecError> {
    let mut parts: Vec<_> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut table = document;
    for part in parts {
        let names = table.keys().cloned().collect::<Vec<_>>().join(", ");
        table = table.get_mut(part).and_then(Value::as_table_mut).ok_or_else(|| {
            let problem = format!("there is no `{part}` to set it in; choose from {names}");
            wrong(format!("sweep of {key}"), problem)
        })?;
    }
    table.insert(last.to_owned(), value.clone());
    Ok(())
}
