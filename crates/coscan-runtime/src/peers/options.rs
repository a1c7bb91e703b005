//! The options of sharing with the managers of other servers.

use coscan_ring::{Config, Sharing};
use coscan_storage::stores::Prefixes;

/// The options of sharing with the managers of other servers.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The prefixes of the files that are shared, such as `s3://bucket/sales/`. All servers MUST see the same files
    /// there. Other files are read by each server alone, and no other server gets any part of them.
    pub stores: Prefixes,
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
}
