//! `extends = "cs07-table2"`: the workload and machine of another experiment, except for the parts that the file
//! overrides.

use toml::{Table, Value};

use super::error::{SpecError, wrong};
use crate::library;

/// The key that names the other experiment.
pub(super) const KEY: &str = "extends";

/// The sections that are inherited. Texts about an experiment are not.
const SECTIONS: [&str; 4] = ["machine", "table", "query", "streams"];

/// A file with the sections inherited from the experiment that it extends, if any. An entry of the file, such as
/// `machine.disk`, `query.F` or `streams.all`, replaces the inherited one of that name.
pub(super) fn extended(file: Table) -> Result<Table, SpecError> {
    let Some(name) = file.get(KEY) else { return Ok(file) };
    let text = name.as_str().and_then(library::file).ok_or_else(|| {
        let names = library::names().collect::<Vec<_>>().join(", ");
        let name = name.as_str().unwrap_or_default();
        wrong(KEY, format!("there is no experiment `{name}`; choose from {names}"))
    })?;
    let base: Table = toml::from_str(text).map_err(|error| SpecError::Form(error.to_string()))?;
    let base = extended(base)?;
    let mut file = file;
    for (key, section) in base.into_iter().filter(|(key, _)| SECTIONS.contains(&key.as_str())) {
        match (section, file.remove(&key)) {
            (Value::Table(mut merged), Some(Value::Table(replacing))) => {
                merged.extend(replacing);
                file.insert(key, Value::Table(merged));
            }
            (_, Some(replacing)) => drop(file.insert(key, replacing)),
            (section, None) => drop(file.insert(key, section)),
        }
    }
    Ok(file)
}
