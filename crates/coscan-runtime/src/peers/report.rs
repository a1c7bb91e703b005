//! What was exchanged with other servers.

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
    /// Bytes of pages that were sent to others.
    pub bytes_sent: u64,
    /// Of these, bytes that were read for others alone, for lack of space in the pool.
    pub bytes_bypassed: u64,
    /// Bytes of pages that others were to send, and that were read from the store after all.
    pub bytes_read_instead: u64,
}
