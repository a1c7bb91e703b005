//! The messages between nodes.
//!
//! A [`FileId`] is a node's own number for a file. On the wire a message names the version of the file and the bytes of
//! its pages instead: [`Message::translate`].

use std::ops::Range;

use coscan_core::{PageIndex, RemoteQuery};
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, GetId};

/// A message from one node to another. Files and pages have the names that the handling node gives them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message<File = FileId, Page = PageIndex> {
    /// A scan of the sender will need these rows of these columns; the receiver keeps them if it can. It causes no read
    /// and gets no answer.
    Need {
        /// The sender's number for the scan. Rows named later are added.
        scan: u64,
        /// The file.
        file: File,
        /// The columns.
        columns: Vec<u32>,
        /// The rows, all in extents that the receiver owns.
        rows: Vec<Range<u64>>,
    },
    /// The scan no longer needs these rows: it has got them, or they were ruled out.
    Unneed {
        /// The sender's number for the scan.
        scan: u64,
        /// The file.
        file: File,
        /// The rows.
        rows: Vec<Range<u64>>,
    },
    /// The scan has ended.
    End {
        /// The sender's number for the scan.
        scan: u64,
    },
    /// A request for these pages. The sender has the space for them.
    Get {
        /// The sender's number for this request.
        get: GetId,
        /// The file.
        file: File,
        /// The pages.
        pages: Vec<Page>,
        /// The query that they are for.
        query: RemoteQuery,
    },
    /// The sender no longer needs the rest of what it asked for.
    Cancel {
        /// The sender's number for the request.
        get: GetId,
    },
    /// Pages that the receiver asked for. Their bytes follow.
    Pages {
        /// The receiver's number for the request.
        get: GetId,
        /// The file.
        file: File,
        /// The pages.
        pages: Vec<Page>,
    },
    /// The pages that the receiver asked for will come, but not yet. The sender is still there.
    Queued {
        /// The receiver's number for the request.
        get: GetId,
    },
    /// The sender has no memory to read the rest of the pages: the receiver reads them itself.
    NoRoom {
        /// The receiver's number for the request.
        get: GetId,
    },
    /// The sender could not read the rest of the pages: the receiver reads them itself, and sees why.
    Failed {
        /// The receiver's number for the request.
        get: GetId,
    },
    /// Pages that the receiver needs and that are in the sender's pool or being read. They cost less than others.
    Have {
        /// The file.
        file: File,
        /// The pages.
        pages: Vec<Page>,
    },
    /// Pages that the sender no longer has.
    Evicted {
        /// The file.
        file: File,
        /// The pages.
        pages: Vec<Page>,
    },
}

impl<File, Page> Message<File, Page> {
    /// The file that it is about, if it names one.
    #[must_use]
    pub fn file(&self) -> Option<&File> {
        match self {
            Self::Need { file, .. }
            | Self::Unneed { file, .. }
            | Self::Get { file, .. }
            | Self::Pages { file, .. }
            | Self::Have { file, .. }
            | Self::Evicted { file, .. } => Some(file),
            Self::End { .. }
            | Self::Cancel { .. }
            | Self::Queued { .. }
            | Self::NoRoom { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// The message with another name for its file and each of its pages; `None` if a page has none.
    pub fn translate<ToFile, ToPage>(
        self,
        to_file: impl FnOnce(File) -> Option<ToFile>,
        to_page: impl FnMut(Page) -> Option<ToPage>,
    ) -> Option<Message<ToFile, ToPage>> {
        let all = |pages: Vec<Page>| pages.into_iter().map(to_page).collect::<Option<Vec<_>>>();
        Some(match self {
            Self::Need { scan, file, columns, rows } => {
                Message::Need { scan, file: to_file(file)?, columns, rows }
            }
            Self::Unneed { scan, file, rows } => {
                Message::Unneed { scan, file: to_file(file)?, rows }
            }
            Self::End { scan } => Message::End { scan },
            Self::Get { get, file, pages, query } => {
                Message::Get { get, file: to_file(file)?, pages: all(pages)?, query }
            }
            Self::Cancel { get } => Message::Cancel { get },
            Self::Pages { get, file, pages } => {
                Message::Pages { get, file: to_file(file)?, pages: all(pages)? }
            }
            Self::Queued { get } => Message::Queued { get },
            Self::NoRoom { get } => Message::NoRoom { get },
            Self::Failed { get } => Message::Failed { get },
            Self::Have { file, pages } => {
                Message::Have { file: to_file(file)?, pages: all(pages)? }
            }
            Self::Evicted { file, pages } => {
                Message::Evicted { file: to_file(file)?, pages: all(pages)? }
            }
        })
    }
}
