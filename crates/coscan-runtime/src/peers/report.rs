//! What was exchanged with other servers, and what is shared with them.

use std::ops::Range;
use std::sync::Arc;

use coscan_ring::NodeId;

/// What was exchanged with other servers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// Files that are shared now.
    pub files: usize,
    /// Requests that this server has made.
    pub requests_made: u64,
    /// Requests of others.
    pub requests_served: u64,
    /// Bytes of pages that came from others.
    pub bytes_received: u64,
    /// Of these, bytes that a load here waited for. The rest came in vain, or only passed.
    pub bytes_taken: u64,
    /// Bytes of pages that were sent to others.
    pub bytes_sent: u64,
    /// Of these, bytes that were read for others alone, for lack of space in the pool.
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
    /// Its rows in the file.
    pub rows: Range<u64>,
    /// The server that reads it from the store for all.
    pub owner: NodeId,
    /// Who takes over when the owner is gone; `None` if there is no other server.
    pub runner_up: Option<NodeId>,
    /// Its pages.
    pub pages: u64,
    /// Their bytes, as stored.
    pub bytes: u64,
    /// Those of its pages that are in this server's pool.
    pub pages_in_pool: u64,
    /// Their bytes.
    pub bytes_in_pool: u64,
    /// Those that the owner is known to have. Another server says so of pages that scans here want.
    pub pages_at_owner: u64,
    /// Other servers whose scans want some of it. Those whose scans are short do not say so.
    pub wanted_by: usize,
}
