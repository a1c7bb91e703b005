//! The settings of a coordinator's session and the description of the query, which travel with each task: workers start from
//! defaults otherwise, which can give other rows.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use coscan_datafusion::SessionSettings;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;

use crate::query_description::QueryDescription;
use crate::wire::FORMAT;

/// The name of the header.
const NAME: &str = "coscan-session";

/// The prefix of settings that the engine itself sends.
const SENT_BY_ENGINE: &str = "distributed.";

/// The settings of a session that are not the defaults, the description of the query, and the version of the server.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SessionHeader {
    /// The version of the coordinator: that of coscan, of the engine, and of the form of scans.
    #[prost(string, tag = "1")]
    version: String,
    #[prost(message, required, tag = "2")]
    pub(crate) description: QueryDescription,
    #[prost(message, repeated, tag = "3")]
    settings: Vec<Setting>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Setting {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// The version that servers of a cluster have in common.
pub(crate) fn version() -> String {
    format!(
        "coscan {} DataFusion {} format {FORMAT}",
        env!("CARGO_PKG_VERSION"),
        datafusion::DATAFUSION_VERSION
    )
}

impl SessionHeader {
    /// The header of a session.
    pub(crate) fn of(config: &SessionConfig, description: QueryDescription) -> Self {
        let mut defaults = SessionConfig::new();
        SessionSettings::add_to(&mut defaults);
        let defaults: BTreeMap<_, _> = entries(&defaults).collect();
        let settings = entries(config).filter(|(key, value)| defaults.get(key) != Some(value));
        // No known setting has a default and can be unset.
        let settings = settings.filter_map(|(key, value)| Some(Setting { key, value: value? }));
        Self { version: version(), description, settings: settings.collect() }
    }

    /// The headers that travel with each task.
    pub(crate) fn to_headers(&self) -> Result<HeaderMap> {
        let value = BASE64_STANDARD.encode(self.encode_to_vec());
        let value =
            HeaderValue::try_from(value).map_err(|error| exec_datafusion_err!("{error}"))?;
        Ok(HeaderMap::from_iter([(HeaderName::from_static(NAME), value)]))
    }

    /// The header of a task.
    ///
    /// # Errors
    /// If there is none, or it is from a server of another version.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let Some(value) = headers.get(NAME) else {
            return exec_err!(
                "a task came without the settings of its session: start all servers with the same version of coscan"
            );
        };
        let bytes = BASE64_STANDARD.decode(value.as_bytes());
        let header = bytes.ok().and_then(|bytes| Self::decode(bytes.as_slice()).ok());
        let Some(header) = header else {
            return exec_err!(
                "the settings of a task's session are malformed: start all servers with the same version of coscan"
            );
        };
        let own = version();
        if header.version != own {
            return exec_err!(
                "a task came from a server of another version ({}), and this is {own}: start all servers with the same \
                 version",
                header.version
            );
        }
        Ok(header)
    }

    /// Applies the settings to the session of a task.
    ///
    /// # Errors
    /// If there is no such setting here, or it has no such value.
    pub(crate) fn apply_to(&self, config: &mut SessionConfig) -> Result<()> {
        for Setting { key, value } in &self.settings {
            config.options_mut().set(key, value)?;
        }
        Ok(())
    }
}

/// The settings that travel.
fn entries(config: &SessionConfig) -> impl Iterator<Item = (String, Option<String>)> {
    let entries = config.options().entries().into_iter();
    entries
        .map(|entry| (entry.key, entry.value))
        .filter(|(key, _)| !key.starts_with(SENT_BY_ENGINE))
}
