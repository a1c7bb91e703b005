//! The numbers of servers.

use coscan_runtime::ring::NodeId;
use twox_hash::XxHash64;

/// The number of the server that is known by an address, the same on all servers.
#[must_use]
pub fn node_id(address: &str) -> NodeId {
    NodeId(XxHash64::oneshot(0, address.as_bytes()))
}
