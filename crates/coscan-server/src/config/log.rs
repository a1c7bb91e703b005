//! Settings of the log.

use log::LevelFilter;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Settings of the log. The embedding program writes it. `coscan serve` writes it to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The level: `off`, `error`, `warn`, `info` (the default), `debug`, `trace`.
    #[serde(deserialize_with = "level")]
    pub level: LevelFilter,
    /// The format of lines.
    pub format: LogFormat,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LevelFilter::Info, format: LogFormat::Text }
    }
}

fn level<'de, D: Deserializer<'de>>(from: D) -> Result<LevelFilter, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || format!("`{text}` is no level; write off, error, warn, info, debug or trace");
    text.parse().map_err(|_| D::Error::custom(wrong()))
}
