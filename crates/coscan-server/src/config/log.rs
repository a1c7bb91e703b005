//! What is logged.

use log::LevelFilter;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// Lines on what the server does. The program writes them; `coscan serve` does, to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least important ones: `off`, `error`, `warn`, `info` (the default), `debug`, `trace`.
    #[serde(deserialize_with = "level")]
    pub level: LevelFilter,
    /// Their form.
    pub format: LogFormat,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON.
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
