//! What a manager shares with those of other servers, and within which limits.

use coscan_ring::Config;
use url::Url;

/// What a manager shares with those of other servers.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The prefixes of the files that are shared, such as `s3://bucket/sales/`. All servers MUST see the same files there.
    /// Other files are read by each server alone, and nobody else is given any of them.
    pub stores: Vec<Url>,
    /// What is shared, and the limits of this server.
    pub ring: Config,
}

impl ClusterOptions {
    /// Whether the file of this URL is shared.
    pub(crate) fn is_shared(&self, url: &str) -> bool {
        self.stores.iter().any(|prefix| {
            let rest = url.strip_prefix(prefix.as_str().trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
    }
}
