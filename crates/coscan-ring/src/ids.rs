//! The ids of nodes, files and operations in flight.

use serde::{Deserialize, Serialize};

/// A node: a process that owns extents and runs queries.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// A version of a file: this node's number for it. Other nodes use other numbers.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct FileId(pub u32);

/// A store of files: this node's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StoreId(pub u32);

/// A request for pages, by the number that the asking node has given it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
pub struct GetId(pub u64);

/// A request that this node answers: the node that asks, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Served {
    /// The node that asks.
    pub node: NodeId,
    /// Its number for the request.
    pub get: GetId,
}

/// The needs of a scan of another node, by the node and its number for the scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RemoteInterest {
    /// The node.
    pub node: NodeId,
    /// Its number for the scan.
    pub scan: u64,
}
