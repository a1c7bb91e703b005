//! Reports on the exchange with other servers, and on what is shared with them.

use std::ops::Range;
use std::sync::Arc;

use coscan_ring::NodeId;

/// Counts of the exchange with other servers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// The number of files that are shared now.
    pub files: usize,
    /// The number of requests that this server has made.
    pub requests_made: u64,
    /// The number of requests of others that this server has answered.
    pub requests_served: u64,
    /// Bytes of pages that came from others.
    pub bytes_received: u64,
    /// The part of `bytes_received` that a load here waited for. The rest came in vain, or only passed.
    pub bytes_taken: u64,
    /// Bytes of pages that were sent to others.
    pub bytes_sent: u64,
    /// The part of `bytes_sent` that was read for others alone, for lack of space in the pool.
    pub bytes_bypassed: u64,
    /// Bytes of pages that others were to send, and that were read from the store after all.
    pub bytes_read_instead: u64,
}

/// A version of a file that is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFileReport {
    /// Its full address.
    pub url: Arc<str>,
    /// Its extents, in order.
    pub extents: Vec<ExtentReport>,
}

/// An extent of a shared file, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentReport {
    /// Its range of rows in the file.
    pub rows: Range<u64>,
    /// The server that reads it from the store for all.
    pub owner: NodeId,
    /// The server that takes over when the owner is gone; `None` if there is no other server.
    pub runner_up: Option<NodeId>,
    /// The number of its pages.
    pub pages: u64,
    /// The bytes of its pages, as stored.
    pub bytes: u64,
    /// The number of its pages that are in this server's pool.
    pub pages_in_pool: u64,
    /// The bytes of its pages that are in this server's pool.
    pub bytes_in_pool: u64,
    /// The number of its pages that the owner is known to have. Another server announces only pages that scans here
    /// need.
    pub pages_at_owner: u64,
    /// The number of other servers whose scans need some of it. Servers whose scans are short do not announce it.
    pub wanted_by: usize,
}
