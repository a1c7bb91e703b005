//! The machines of a Data Cyclotron and its workload.

use coscan_ring::{CirculateConfig, NodeId, owners_of};

use crate::disk::transfer_ns;

/// A ring of nodes that are alike, the network between them, and the queries.
///
/// Sizes are in bytes, rates in bytes per second, times in nanoseconds. All fragments have the same size, and a buffer
/// holds one fragment.
#[derive(Clone, PartialEq, Debug)]
pub struct Cyclotron {
    /// Nodes at each switch, clockwise. A node's link to its successor crosses switches where a switch ends.
    pub switches: Vec<usize>,
    /// Bytes per second between neighbours at one switch.
    pub link_bytes_per_second: u64,
    /// Bytes per second between neighbours at two switches.
    pub crossing_bytes_per_second: u64,
    /// Nanoseconds that any message takes to a neighbour.
    pub latency_ns: u64,
    /// The ownership of the fragments.
    pub ownership: Ownership,
    /// Bytes per second of an owner's disk.
    pub disk_bytes_per_second: u64,
    /// Buffers of a node, for transit and application together. [DC §5.4]
    pub buffers: usize,
    /// Buffers that are always left for transit. Not stated in `[DC]`.
    pub transit_buffers_min: usize,
    /// Buffers that are always left for the application. Not stated in `[DC]`.
    pub application_buffers_min: usize,
    /// Workers of a node: cores less one [DC §5.4.4].
    pub workers: usize,
    /// The protocol; its transit buffers follow from the above.
    pub protocol: CirculateConfig,
    /// The queries.
    pub queries: Queries,
}

/// The ownership of fragments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ownership {
    /// All nodes, by rendezvous hashing.
    Hash,
    /// The first nodes, in turn. [DC §5.4] has 16.
    First(usize),
}

/// Queries over one table: each selects on some random columns, joins them and projects three [DC §5.4].
#[derive(Clone, PartialEq, Debug)]
pub struct Queries {
    /// The number of queries. A node's pickers take them one after another.
    pub count: usize,
    /// Columns that any query touches.
    pub columns: usize,
    /// Partitions of a column; each is a fragment.
    pub partitions: usize,
    /// Bytes of a fragment.
    pub fragment_bytes: u64,
    /// Columns of a query.
    pub columns_per_query: usize,
    /// Joins of a query, each behind packs of its columns. A join runs when all of them are there.
    pub joins: usize,
    /// Columns that are projected at the end.
    pub projected: usize,
    /// The least and the largest part of its fragments that a query keeps pinned until the operator that they are for has
    /// run. The others are unpinned after the select.
    pub kept: (f64, f64),
    /// Requests of a query that are eligible at once: X of [DC §5.4.4].
    pub eligible: usize,
    /// The most queries that a node runs at once.
    pub pickers: usize,
    /// Whether a node begins with one picker, gets another while it waits for data and has buffers for all that one
    /// more query can pin, and loses one while its workers are short [DC §5.4.4]. We assume that it waits if less than
    /// half of its workers are busy.
    pub adapts_pickers: bool,
    /// Nanoseconds of a worker for a select on a fragment. Not stated in `[DC]`.
    pub select_ns: u64,
    /// Nanoseconds of a worker for a join, or the projection. Not stated in `[DC]`. It does not grow with the partitions of a
    /// column, on which MonetDB works in parallel.
    pub operator_ns: u64,
}

impl Cyclotron {
    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.switches.iter().sum()
    }

    /// Bytes that any query touches.
    #[must_use]
    pub fn hot_set_bytes(&self) -> u64 {
        self.fragments() as u64 * self.queries.fragment_bytes
    }

    /// The number of fragments that any query touches. Those of a column follow each other.
    #[must_use]
    pub fn fragments(&self) -> usize {
        self.queries.columns * self.queries.partitions
    }

    /// Nanoseconds of a fragment on the link from a node to its successor.
    pub(super) fn link_ns(&self, node: usize) -> u64 {
        let mut end = 0;
        let crosses = self.switches.iter().any(|nodes| {
            end += nodes;
            node + 1 == end
        });
        let rate = match crosses && self.switches.len() > 1 {
            true => self.crossing_bytes_per_second,
            false => self.link_bytes_per_second,
        };
        transfer_ns(self.queries.fragment_bytes, rate)
    }

    /// Nanoseconds of a read.
    pub(super) fn read_ns(&self) -> u64 {
        transfer_ns(self.queries.fragment_bytes, self.disk_bytes_per_second)
    }

    /// The owner of a fragment.
    pub(super) fn owner(&self, fragment: u32) -> NodeId {
        match self.ownership {
            Ownership::First(owners) => NodeId(u64::from(fragment) % owners as u64),
            Ownership::Hash => {
                let nodes = (0..self.nodes() as u64).map(NodeId);
                owners_of(nodes, 0, fragment as usize).expect("a ring has nodes").owner
            }
        }
    }
}
