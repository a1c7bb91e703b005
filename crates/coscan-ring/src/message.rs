//! What nodes tell each other.
//!
//! A [`FileId`] is a node's own number for a file. On the wire a message names the version of the file and the bytes of
//! its pages instead: [`Message::translate`].

use std::ops::Range;

use coscan_core::{PageIndex, RemoteQuery};
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, GetId};

/// A message from one node to another, about files and pages as the node that handles it calls them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message<File = FileId, Page = PageIndex> {
    /// A scan of mine will need these rows of these columns: keep them if you can. It causes no read and gets no answer.
    Need {
        /// My number for the scan. Rows named later are added.
        scan: u64,
        /// The file.
        file: File,
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
        file: File,
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
        file: File,
        /// The pages.
        pages: Vec<Page>,
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
        file: File,
        /// The pages.
        pages: Vec<Page>,
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
        file: File,
        /// The pages.
        pages: Vec<Page>,
    },
    /// I no longer have these.
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

    /// The same with another name for its file and each of its pages; `None` if a page has none.
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
