//! The actions of a node.

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
    /// Whether it goes before loads that are not urgent. An owner decides that again, by the query.
    pub urgent: bool,
    /// The query that it is for.
    pub query: RemoteQuery,
}

/// An action for the caller.
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
    /// Read these pages of a load from the store, because another node was asked for them and does not send them.
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
    /// A request has ended: cancel what was begun for it, and release its pages.
    StopServing {
        /// The request.
        served: Served,
    },
    /// A scan of another node needs these rows of these columns, besides those that it needed before.
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
    /// A scan of another node no longer needs these rows.
    Unwant {
        /// The scan.
        interest: RemoteInterest,
        /// The file.
        file: FileId,
        /// The rows.
        rows: Vec<Range<u64>>,
    },
    /// A scan of another node has ended.
    Forget {
        /// The scan.
        interest: RemoteInterest,
    },
    /// This node has chosen from where to read. The needs of its scans must be [ended](crate::Node::end_need) and
    /// announced [again](crate::Node::need), since other nodes are asked now that were not, or the other way round.
    Choose {
        /// The store whose source was chosen.
        store: StoreId,
        /// Whether its files are read alone from now on.
        reads_alone: bool,
    },
    /// Call [`Node::renew`](crate::Node::renew), in steps, until it returns false.
    Renew,
    /// Pages are read from another source from now on. Pages that were never named are read from the device.
    SetSource {
        /// The file.
        file: FileId,
        /// The pages.
        pages: Range<PageIndex>,
        /// The source that they are read from.
        source: Source,
    },
}
