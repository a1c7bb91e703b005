//! Settings of a session: `SET name = value`, `SHOW name`.

pub(super) mod constants;
pub(super) mod transactional;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use coscan_datafusion::{SessionSettings as SharingSettings, ShareResults};
use coscan_runtime::units::parse_bytes;
use datafusion::prelude::SessionConfig;

use self::constants::{FIXED, WITHOUT_EFFECT, default_value, fixed_value, is_fixed_value};
use self::values::{cut, milliseconds, on_or_off, parse};
use crate::queries::{ErrorKind, QueryError};
use crate::sql::time_zone::arrow_zone;
use crate::users::User;

/// The settings of a session.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    weight: Option<u32>,
    refresh_interval: Option<Duration>,
    sharing: Option<bool>,
    share_results: Option<ShareResults>,
    distribution: Distribution,
    memory_limit: Option<u64>,
    statement_timeout: Option<Duration>,
    time_zone: Option<String>,
    without_effect: BTreeMap<&'static str, String>,
}

/// Whether queries are divided among workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// The server executes them alone.
    #[default]
    Off,
    /// They are divided, where that is possible and their tables are large.
    On,
    /// They are divided if the server does not have the memory for them.
    Retry,
}

impl Settings {
    /// Whether queries are divided among workers.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// The time limit of a statement.
    #[must_use]
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.statement_timeout
    }

    /// The weight of queries.
    #[must_use]
    pub fn weight(&self, user: &User) -> u32 {
        self.weight.unwrap_or(user.weight)
    }

    /// The maximum bytes that the operators of a query may hold.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// Sets a value. `None` sets the default.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have this value.
    pub fn set(&mut self, name: &str, value: Option<&str>, user: &User) -> Result<(), QueryError> {
        let name = canonical(name);
        let wrong = |reason: &str| {
            let value = value.unwrap_or_default();
            QueryError::new(
                ErrorKind::InvalidValue,
                format!("`{value}` is no value of {name}: {reason}"),
            )
        };
        match name.as_str() {
            "coscan.weight" => {
                let weight: Option<u32> = parse(value).map_err(|()| wrong("write a number"))?;
                if weight.is_some_and(|weight| weight == 0 || !user.admin && weight > user.weight) {
                    return Err(wrong(&format!("it is between 1 and {}", user.weight)));
                }
                self.weight = weight;
            }
            "coscan.refresh_interval" => {
                let interval =
                    value.map(|value| humantime::parse_duration(value.trim())).transpose();
                self.refresh_interval = interval.map_err(|_| wrong("write a time such as '5s'"))?;
            }
            "coscan.sharing" => {
                if !user.admin {
                    return Err(wrong(
                        "only administrators set it, since memory limits do not hold without it",
                    ));
                }
                let sharing = value.map(on_or_off).transpose();
                self.sharing = sharing.map_err(|()| wrong("write on or off"))?;
            }
            "coscan.share_results" => {
                let parse = |value| ShareResults::parse(value).ok_or(());
                let share_results = value.map(parse).transpose();
                self.share_results =
                    share_results.map_err(|()| wrong("write on, off or running"))?;
            }
            "coscan.distributed" => {
                self.distribution =
                    match value.map(str::trim).map(str::to_ascii_lowercase).as_deref() {
                        Some("retry") => Distribution::Retry,
                        other => match other.map(on_or_off).transpose() {
                            Ok(Some(true)) => Distribution::On,
                            Ok(Some(false) | None) => Distribution::Off,
                            Err(()) => return Err(wrong("write on, off or retry")),
                        },
                    };
            }
            "coscan.memory_limit" => {
                let bytes = value.map(parse_bytes).transpose();
                self.memory_limit = bytes.map_err(|reason| wrong(&reason))?;
            }
            "statement_timeout" => {
                let timeout = value.map(milliseconds).transpose();
                let timeout = timeout.map_err(|reason| wrong(&reason))?;
                self.statement_timeout = timeout.filter(|timeout| !timeout.is_zero());
            }
            "timezone" => {
                if let Some(zone) = value {
                    arrow_zone(zone).ok_or_else(|| {
                        wrong("use a name such as Europe/Amsterdam, or hours east of UTC such as 2 or -3.5")
                    })?;
                }
                self.time_zone = value.map(str::to_owned);
            }
            name => return self.set_other(name, value, user, wrong),
        }
        Ok(())
    }

    fn set_other(
        &mut self,
        name: &str,
        value: Option<&str>,
        user: &User,
        wrong: impl Fn(&str) -> QueryError,
    ) -> Result<(), QueryError> {
        if let Some(fixed) = fixed_value(name, user) {
            return match value.is_none_or(|value| is_fixed_value(name, value, fixed)) {
                true => Ok(()),
                false => Err(wrong(&format!("it is always {fixed}"))),
            };
        }
        let known = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name);
        let (known, _) = known.ok_or_else(|| unknown(name))?;
        match value {
            Some(value) => self.without_effect.insert(known, cut(value)),
            None => self.without_effect.remove(known),
        };
        Ok(())
    }

    /// The value of a setting.
    ///
    /// # Errors
    /// If there is no such setting.
    pub fn get(&self, name: &str, user: &User) -> Result<String, QueryError> {
        let name = canonical(name);
        Ok(match name.as_str() {
            "coscan.weight" => self.weight(user).to_string(),
            "coscan.refresh_interval" => {
                let text = |interval| humantime::format_duration(interval).to_string();
                self.refresh_interval.map_or_else(String::new, text)
            }
            "coscan.sharing" => if self.sharing.unwrap_or(true) { "on" } else { "off" }.to_owned(),
            "coscan.share_results" => match self.share_results.unwrap_or_default() {
                ShareResults::Kept => "on",
                ShareResults::Never => "off",
                other => other.name(),
            }
            .to_owned(),
            "coscan.distributed" => match self.distribution {
                Distribution::Off => "off",
                Distribution::On => "on",
                Distribution::Retry => "retry",
            }
            .to_owned(),
            "coscan.memory_limit" => {
                self.memory_limit.map_or_else(String::new, |it| it.to_string())
            }
            "statement_timeout" => match self.statement_timeout {
                Some(timeout) => format!("{}ms", timeout.as_millis()),
                None => "0".to_owned(),
            },
            "timezone" => self.time_zone.clone().unwrap_or_else(|| "UTC".to_owned()),
            "session_authorization" => user.name.clone(),
            name => {
                let default = fixed_value(name, user).or_else(|| default_value(name, user));
                let default = default.ok_or_else(|| unknown(name))?;
                self.without_effect.get(name).map_or_else(|| default.to_owned(), Clone::clone)
            }
        })
    }

    /// All settings, by name.
    #[must_use]
    pub fn all(&self, user: &User) -> Vec<(String, String)> {
        let own = [
            "coscan.weight",
            "coscan.refresh_interval",
            "coscan.sharing",
            "coscan.share_results",
            "coscan.distributed",
            "coscan.memory_limit",
            "statement_timeout",
            "timezone",
            "session_authorization",
        ];
        let others = FIXED.iter().chain(&WITHOUT_EFFECT).map(|(name, _)| *name);
        let mut all: Vec<_> = own
            .into_iter()
            .chain(others)
            .filter_map(|name| Some((name.to_owned(), self.get(name, user).ok()?)))
            .collect();
        all.sort();
        all
    }

    /// Applies the settings to a configuration of DataFusion.
    pub(super) fn apply_to(&self, config: &mut SessionConfig, user: &User) {
        let options = config.options_mut();
        let zone = self.time_zone.as_deref().and_then(arrow_zone);
        options.execution.time_zone = Some(zone.unwrap_or_else(|| "UTC".to_owned()));
        if let Some(sharing) = options.extensions.get_mut::<SharingSettings>() {
            sharing.weight = self.weight(user);
            sharing.refresh_interval = self.refresh_interval;
            sharing.sharing = self.sharing.unwrap_or(true);
            sharing.share_results = self.share_results.unwrap_or_default();
        }
    }
}

/// The name of a setting, which may have several.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "time zone" | "time.zone" => "timezone".to_owned(),
        "names" => "client_encoding".to_owned(),
        "transaction.isolation.level" => "transaction_isolation".to_owned(),
        _ => name,
    }
}

fn unknown(name: &str) -> QueryError {
    QueryError::new(
        ErrorKind::UnknownSetting,
        format!("there is no setting {name}; SHOW ALL lists them"),
    )
}

#[cfg(test)]
mod tests;
