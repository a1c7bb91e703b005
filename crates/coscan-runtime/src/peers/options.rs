//! The options of sharing with the managers of other servers.

use coscan_ring::{Config, Sharing};
use object_store::path::Path;
use url::{Position, Url};

/// The options of sharing with the managers of other servers.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The prefixes of the files that are shared, such as `s3://bucket/sales/`. All servers MUST see the same files
    /// there. Other files are read by each server alone, and no other server gets any part of them.
    pub stores: Vec<Url>,
    /// The extent of sharing, and the limits of this server.
    pub ring: Config,
    /// Whether pages go round a ring of the servers, each as long as enough of them take it, instead of being requested
    /// one by one, after the Data Cyclotron. Servers that circulate share nothing with those that do not. It reserves
    /// another [`Config::transit_bytes_max`] of memory; pages above 1/32 of that are requested. Servers announce to
    /// each other neither the needs of their scans nor their pages.
    pub circulates: bool,
}

impl ClusterOptions {
    /// The configuration of the node, which shares beside what goes round.
    pub(crate) fn node_config(&self) -> Config {
        let most = if self.circulates { Sharing::Reads } else { Sharing::All };
        Config { sharing: self.ring.sharing.min(most), ..self.ring }
    }

    /// Whether the file of this URL is shared.
    pub(crate) fn is_shared(&self, url: &str) -> bool {
        self.stores.iter().any(|prefix| {
            let rest = url.strip_prefix(decoded(prefix).trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// A prefix in the form of file names: with a space where the URL has `%20`.
fn decoded(prefix: &Url) -> String {
    match Path::from_url_path(prefix.path()) {
        Ok(path) => format!("{}/{path}", &prefix[..Position::BeforePath]),
        Err(_) => prefix.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_a_prefix_are_shared_whatever_characters_it_has() {
        let options = |prefix: &str| ClusterOptions {
            stores: vec![Url::parse(prefix).expect("a URL")],
            ring: Config::default(),
            circulates: false,
        };
        for (prefix, url) in [
            ("file:///data/my%20tables/", "file:///data/my tables/t.parquet"),
            ("file:///data/f%C3%BCr/", "file:///data/für/t.parquet"),
            ("file:///data", "file:///data/t.parquet"),
            ("s3://bucket", "s3://bucket/t.parquet"),
            ("s3://bucket/sales/", "s3://bucket/sales/2026/t.parquet"),
        ] {
            assert!(options(prefix).is_shared(url), "{prefix} {url}");
        }
        for (prefix, url) in [
            ("file:///data/", "file:///database/t.parquet"),
            ("s3://bucket/sales/", "s3://bucket/t.parquet"),
            ("s3://bucket", "s3://bucket2/t.parquet"),
        ] {
            assert!(!options(prefix).is_shared(url), "{prefix} {url}");
        }
    }
}
