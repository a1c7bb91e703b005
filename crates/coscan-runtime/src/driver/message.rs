//! Messages to the owner of the state: the ends of loads, requests and the like, by name.

use bytes::Bytes;
use coscan_core::{LoadId, PageId, PageIndex, ScanId, TableId, TicketId, WorkerIndex};
use coscan_ring::{NodeId, Served};

use crate::chunks::decode_cache::SliceKey;
use crate::error::ScanError;
use crate::peers::FragmentId;
use crate::tables::registry::FileId;

/// A worker's request for a chunk, and the chunk that answers it. The number is never used again, so a message about a
/// request affects nothing that came after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestId {
    pub(crate) scan: ScanId,
    pub(crate) worker: WorkerIndex,
    pub(crate) serial: u64,
}

/// A page, read or not.
pub(crate) type PageRead = (PageId, Result<Bytes, ScanError>);

/// The end of something. Plain data: no message holds a guard whose destructor posts. Each is applied in a bounded
/// number of commands to core; what takes longer becomes a [walk](super::walk::Walk).
#[derive(Debug)]
pub(crate) enum Message {
    /// Pages of a load, each read or not.
    PagesRead { load: LoadId, pages: Vec<PageRead> },
    /// The runtime has dropped a load before it had reported these pages.
    LoadDropped { load: LoadId, pages: Vec<PageId> },
    /// A worker has opened its chunk: its pages are no longer in use.
    ChunkOpened(RequestId),
    /// A worker cannot open its chunk, which returns to the scan. It will not take these decoded columns.
    ChunkReturned { request: RequestId, untaken: Vec<SliceKey> },
    /// A worker takes nothing any more, even if it has asked for something.
    WorkerGone(RequestId),
    /// A scan is no longer held.
    ScanDropped(ScanId),
    /// This memory is no longer waited for: it was fetched, or is not needed.
    MemoryRequestOver(TicketId),
    /// A column of a chunk is decoded.
    SliceDecoded(SliceKey),
    /// The last worker that expected a decoded column has taken it.
    SliceTaken(SliceKey),
    /// A table is no longer held, nor are its files.
    TableReleased { table: TableId, files: Vec<FileId> },
    /// Pages that were read for another server alone, or could not be.
    PagesBypassed { served: Served, pages: Vec<PageRead> },
    /// The network has taken pages for another server, or lost them.
    PagesTaken { served: Served, pages: Vec<PageIndex> },
    /// The link to the successor on the ring has taken a fragment.
    FragmentSent { to: NodeId, fragment: FragmentId },
    /// A fragment for which there is space does not come.
    FragmentLost,
    /// A joint table is no longer held.
    JointTableReleased(TableId),
}
