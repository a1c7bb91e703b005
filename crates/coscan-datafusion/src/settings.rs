//! Settings that users make in SQL: `SET coscan.weight = 4`.

use std::any::Any;
use std::time::Duration;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::config_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

/// Settings of a session, under the prefix `coscan`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Whether scans share reads and decoding with other queries. If false, each query reads and decodes for itself, as
    /// in plain DataFusion, so that both can be compared on the same tables. Tables with files in several stores are
    /// shared even then.
    pub sharing: bool,
    /// The weight of the queries of this session, at least 1. A query of weight 2 is served as if it had half as much
    /// left to read.
    pub weight: u32,
    /// The time for which a list of a table's files is used. A query that is planned later lists the files again. Zero
    /// lists them for each mention in a query. If listing fails, the query sees the files of the last list, and the
    /// reason is logged. Without this setting only [`refresh`](crate::refresh) lists files again, unless the session's
    /// runtime has no cache of lists (`SET datafusion.runtime.list_files_cache_limit = '0K'`), which has the effect of
    /// zero.
    pub refresh_interval: Option<Duration>,
    /// Whether aggregations share the results of chunks with other queries.
    pub share_results: ShareResults,
}

/// Whether aggregations share the results of chunks with other queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareResults {
    /// With running queries and with later ones.
    #[default]
    Kept,
    /// With running queries. Results stay only as long as a query with the same aggregation runs, unless other sessions keep them.
    Running,
    /// With none.
    Never,
}

impl ShareResults {
    /// The value that a user writes as `true`, `false` or `running`, or as `on` or `off`. `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Some(Self::Kept),
            "running" => Some(Self::Running),
            "false" | "off" | "no" | "0" => Some(Self::Never),
            _ => None,
        }
    }

    /// The text of the value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "true",
            Self::Running => "running",
            Self::Never => "false",
        }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { sharing: true, weight: 1, refresh_interval: None, share_results: ShareResults::Kept }
    }
}

impl ConfigExtension for SessionSettings {
    const PREFIX: &'static str = "coscan";
}

impl ExtensionOptions for SessionSettings {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let valid = match key {
            "sharing" => parsed(&value.to_lowercase()).map(|sharing| self.sharing = sharing),
            "weight" => {
                parsed(value).filter(|weight| *weight > 0).map(|weight| self.weight = weight)
            }
            "refresh_interval" => {
                let interval = humantime::parse_duration(value.trim()).ok();
                interval.map(|interval| self.refresh_interval = Some(interval))
            }
            "share_results" => {
                ShareResults::parse(value).map(|share_results| self.share_results = share_results)
            }
            _ => return unknown(key),
        };
        match (valid, key) {
            (Some(()), _) => Ok(()),
            (None, "sharing") => config_err!("coscan.sharing is true or false, not `{value}`"),
            (None, "weight") => {
                config_err!("coscan.weight is a number of at least 1, not `{value}`")
            }
            (None, "share_results") => config_err!(
                "coscan.share_results is true, false, or running (no results are kept for later queries), not \
                 `{value}`"
            ),
            (None, _) => config_err!(
                "coscan.refresh_interval is a time with its unit, such as '5s', not `{value}`"
            ),
        }
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value, description| {
            let key = format!("{}.{key}", Self::PREFIX);
            ConfigEntry { key, value, description }
        };
        vec![
            entry(
                "refresh_interval",
                self.refresh_interval
                    .map(|interval| humantime::format_duration(interval).to_string()),
                "How long the list of a table's files is used; unset, only REFRESH lists files again",
            ),
            entry(
                "share_results",
                Some(self.share_results.name().to_owned()),
                "Whether aggregations share the results of chunks with other queries: true, false, or running to keep none \
                 for later ones",
            ),
            entry(
                "sharing",
                Some(self.sharing.to_string()),
                "Whether scans share reads and decoding with other queries",
            ),
            entry(
                "weight",
                Some(self.weight.to_string()),
                "The weight of the queries of this session, at least 1: a query of weight 2 is served as if it had half \
                 as much left to read",
            ),
        ]
    }
}

/// The reason why the scans of a query are not shared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotShared {
    /// It calls a function that only the engine's own scans support.
    Function(&'static str),
    /// The session shares nothing.
    Setting,
}

impl NotShared {
    /// The reason as EXPLAIN shows it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Function(name) => name,
            Self::Setting => "coscan.sharing is false",
        }
    }

    /// Returns `None` if the scans are shared.
    pub(crate) fn of(config: &SessionConfig) -> Option<Self> {
        let of_query = config.get_extension::<Self>().map(|not_shared| *not_shared);
        let sharing = SessionSettings::of(config).sharing;
        of_query.or_else(|| (!sharing).then_some(Self::Setting))
    }
}

impl SessionSettings {
    /// The settings of a session, or the defaults if coscan is not installed in it.
    #[must_use]
    pub fn of(config: &SessionConfig) -> Self {
        config.options().extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Resets a setting to its default. (DataFusion's `RESET` supports only its own settings.)
    ///
    /// # Errors
    /// If there is no setting of this name, which is without the prefix.
    pub fn reset(&mut self, key: &str) -> Result<()> {
        let Self { sharing, weight, refresh_interval, share_results } = Self::default();
        match key {
            "sharing" => self.sharing = sharing,
            "weight" => self.weight = weight,
            "refresh_interval" => self.refresh_interval = refresh_interval,
            "share_results" => self.share_results = share_results,
            _ => return unknown(key),
        }
        Ok(())
    }

    /// Adds the settings to a session that does not have them yet.
    pub fn add_to(config: &mut SessionConfig) {
        let extensions = &mut config.options_mut().extensions;
        if extensions.get::<Self>().is_none() {
            extensions.insert(Self::default());
        }
    }
}

fn parsed<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.trim().parse().ok()
}

fn unknown(key: &str) -> Result<()> {
    config_err!(
        "there is no setting coscan.{key}; there are coscan.refresh_interval, share_results, sharing and weight"
    )
}
