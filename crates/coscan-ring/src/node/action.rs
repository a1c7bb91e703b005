//! What a node wants done.

use std::ops::Range;

use coscan_core::{LoadId, PageIndex, RemoteQuery, Source};

use crate::ids::{FileId, NodeId, RemoteInterest, Served, StoreId};
use crate::message::Message;

/// A load of this node's buffer manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The load.
    pub load: LoadId,
    /// The file that it reads.
    pub file: FileId,
    /// The pages that it reads.
    pub pages: Vec<PageIndex>,
    /// Whether it goes before loads that are not urgent. An owner decides that anew, by the query.
    pub urgent: bool,
    /// The query that it is for.
    pub query: RemoteQuery,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send a message. Call [`Node::sent`](crate::Node::sent) when the network has taken a page of it.
    Send {
        /// The node.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Read these pages of a load from the store.
    Read(Load),
    /// The same, for pages that another node was asked for and does not send.
    ReadInstead(Load),
    /// A page of a load has come from another node.
    Arrived {
        /// The load.
        load: LoadId,
        /// The file.
        file: FileId,
        /// The page.
        page: PageIndex,
    },
    /// Get these pages into the pool, for a query of another node: [`Node::ready`](crate::Node::ready),
    /// [`Node::no_space`](crate::Node::no_space) or [`Node::failed`](crate::Node::failed) answers.
    Serve {
        /// The request.
        served: Served,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
        /// The query.
        query: RemoteQuery,
    },
    /// Read pages for another node, not into the pool: [`Node::bypassed`](crate::Node::bypassed) answers for each, or
    /// [`Node::failed`](crate::Node::failed).
    Bypass {
        /// The request.
        served: Served,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
    },
    /// A request has ended: give up what was begun for it, and let go of its pages.
    StopServing {
        /// The request.
        served: Served,
    },
    /// A scan of another node wants these rows of these columns, besides those that it wanted before.
    Want {
        /// The scan.
        interest: RemoteInterest,
        /// The file.
        file: FileId,
        /// The columns.
        columns: Vec<u32>,
        /// The rows.
        rows: Vec<Range<u64>>,
    },
    /// It no longer wants these rows.
    Unwant {
        /// The scan.
        interest: RemoteInterest,
        /// The file.
        file: FileId,
        /// The rows.
        rows: Vec<Range<u64>>,
    },
    /// It has ended.
    Forget {
        /// The scan.
        interest: RemoteInterest,
    },
    /// This node has chosen from where to read. What its scans need is to be [ended](crate::Node::end_need) and said [again](crate::Node::need): other nodes are
    /// asked now that were not, or the other way round.
    Choose {
        /// The store that this is about.
        store: StoreId,
        /// Whether its files are read alone from now on.
        reads_alone: bool,
    },
    /// Call [`Node::renew`](crate::Node::renew), in steps, until it returns false.
    Renew,
    /// Pages are read from somewhere else from now on. Pages of which nothing was said are read from the device.
    SetSource {
        /// The file.
        file: FileId,
        /// The pages.
        pages: Range<PageIndex>,
        /// Where they are read from.
        source: Source,
    },
}
