//! Limits on clients.

use std::time::Duration;

use serde::Deserialize;

use crate::config::units::{bytes, bytes_option, duration, duration_option};

/// Limits of a server. All have defaults.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The number of queries that run at the same time. Default: 8 for each core.
    pub queries_running: usize,
    /// The number of queries that wait for a slot. More are refused. Default: 1000.
    pub queries_waiting: usize,
    /// The time for which a query waits before it is refused. Default: 5 minutes.
    #[serde(deserialize_with = "duration")]
    pub wait_max: Duration,
    /// The time limit for parsing and planning a statement. Default: 1 minute.
    #[serde(deserialize_with = "duration")]
    pub planning_time_max: Duration,
    /// The time limit for running a query, including the time that its client takes to read the result. Default: no
    /// limit.
    #[serde(deserialize_with = "duration_option")]
    pub query_time_max: Option<Duration>,
    /// The maximum bytes that the operators of a query may hold. Default: half of the server's memory.
    #[serde(deserialize_with = "bytes_option")]
    pub query_memory_max: Option<u64>,
    /// The maximum bytes that the operators of all queries of a user may hold, so that the queries of others always find
    /// some. Default: three quarters of the server's memory; no limit on a server without users.
    #[serde(deserialize_with = "bytes_option")]
    pub user_memory_max: Option<u64>,
    /// The time after which a query is cancelled if its client reads no bytes of the result. Default: 5 minutes.
    #[serde(deserialize_with = "duration")]
    pub result_stall_max: Duration,
    /// The time after which an idle PostgreSQL connection is closed. Default: no limit.
    #[serde(deserialize_with = "duration_option")]
    pub idle_max: Option<Duration>,
    /// The number of simultaneous connections of logged-in users. Default: 1100.
    pub connections_max: usize,
    /// The time limit for logging in. Default: 10 s.
    #[serde(deserialize_with = "duration")]
    pub login_max: Duration,
    /// The time for which an unused token of Flight SQL stays valid. Default: 12 h.
    #[serde(deserialize_with = "duration")]
    pub token_lifetime: Duration,
    /// The maximum length of a client's message, in bytes. A statement is one message. Default: 1 MiB.
    #[serde(deserialize_with = "bytes")]
    pub message_bytes_max: u64,
    /// The time for which running queries may continue when the server is stopped, before they are cancelled. Default:
    /// 30 s.
    #[serde(deserialize_with = "duration")]
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queries_running: 8 * std::thread::available_parallelism().map_or(1, usize::from),
            queries_waiting: 1000,
            wait_max: Duration::from_secs(300),
            planning_time_max: Duration::from_secs(60),
            query_time_max: None,
            query_memory_max: None,
            user_memory_max: None,
            result_stall_max: Duration::from_secs(300),
            idle_max: None,
            connections_max: 1100,
            login_max: Duration::from_secs(10),
            token_lifetime: Duration::from_secs(12 * 3600),
            message_bytes_max: 1 << 20,
            stop_grace: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Describes invalid values, one sentence for each.
    pub(super) fn errors(&self) -> Vec<String> {
        let positive =
            [("queries_running", self.queries_running), ("connections_max", self.connections_max)];
        let mut errors: Vec<_> = positive
            .into_iter()
            .filter(|(_, value)| *value == 0)
            .map(|(name, _)| format!("limits.{name} is 0; it must be at least 1"))
            .collect();
        if !(1024..=1 << 30).contains(&self.message_bytes_max) {
            errors.push("limits.message_bytes_max must be between 1 KiB and 1 GiB".to_owned());
        }
        if self.token_lifetime.is_zero() {
            errors
                .push("limits.token_lifetime is 0; no login would be good for any call".to_owned());
        }
        let times = [
            ("login_max", Some(self.login_max)),
            ("result_stall_max", Some(self.result_stall_max)),
            ("planning_time_max", Some(self.planning_time_max)),
            ("query_time_max", self.query_time_max),
            ("idle_max", self.idle_max),
        ];
        let none = times.into_iter().filter(|(_, time)| time.is_some_and(|time| time.is_zero()));
        errors.extend(
            none.map(|(name, _)| format!("limits.{name} is 0; nothing could be done in it")),
        );
        if self.query_memory_max == Some(0) {
            errors.push("limits.query_memory_max is 0; leave it out for the default".to_owned());
        }
        if self.user_memory_max == Some(0) {
            errors.push("limits.user_memory_max is 0; leave it out for the default".to_owned());
        }
        errors
    }
}
