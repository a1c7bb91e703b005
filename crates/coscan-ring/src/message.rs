//! What nodes tell each other.
//!
//! A [`FileId`] is a node's own number for a file: whoever writes a message to the wire puts the name of the version there.

use std::ops::Range;

use coscan_core::{PageIndex, RemoteQuery};
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, GetId};

/// A message from one node to another. Pages of a file are numbered in the order of their first bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A scan of mine will need these rows of these columns: keep them if you can. It causes no read and gets no answer.
    Need {
        /// My number for the scan. Rows named later are added.
        scan: u64,
        /// The file.
        file: FileId,
        /// The columns.
        columns: Vec<u32>,
        /// The rows, all in extents that you own.
        rows: Vec<Range<u64>>,
    },
    /// It no longer wants these rows: it has got them, or they were ruled out.
    Unneed {
        /// My number for the scan.
        scan: u64,
        /// The file.
        file: FileId,
        /// The rows.
        rows: Vec<Range<u64>>,
    },
    /// The scan has ended.
    End {
        /// My number for the scan.
        scan: u64,
    },
    /// Send me these pages. I have the space for them.
    Get {
        /// My number for this request.
        get: GetId,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
        /// The query that they are for.
        query: RemoteQuery,
    },
    /// I do not want the rest of what I asked for any more.
    Cancel {
        /// My number for the request.
        get: GetId,
    },
    /// Pages that you asked for. Their bytes follow.
    Pages {
        /// Your number for the request.
        get: GetId,
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
    },
    /// What you asked for will come, but not yet. I am still there.
    Queued {
        /// Your number for the request.
        get: GetId,
    },
    /// I have no memory to read the rest of what you asked for: read it yourself.
    NoRoom {
        /// Your number for the request.
        get: GetId,
    },
    /// I could not read the rest of what you asked for: read it yourself, and see why.
    Failed {
        /// Your number for the request.
        get: GetId,
    },
    /// Pages you need that are in my pool or being read: they cost less than others.
    Have {
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
    },
    /// I no longer have these.
    Evicted {
        /// The file.
        file: FileId,
        /// The pages.
        pages: Vec<PageIndex>,
    },
}
