//! Names of versions of files, the same on all servers.

use arrow_schema::TimeUnit;
use chrono::DateTime;
use coscan_storage::stores::Stores;
use coscan_storage::table::{ColumnTypes, FileOptions, PageLayout, ParquetFile, TableFile};
use object_store::ObjectMeta;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;
use url::Url;

/// A version of a file and the way in which it is opened, by a name that is the same on all servers. Equal names have
/// equal pages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FileName {
    store: String,
    path: String,
    bytes: u64,
    stamp: Stamp,
    options: Options,
}

/// The property that distinguishes versions of a file besides its size, as the store gives it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum Stamp {
    Tag(String),
    /// The time of modification, since 1970.
    Modified {
        seconds: i64,
        nanoseconds: u32,
    },
}

/// The options on which pages depend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct Options {
    chunk_rows: u64,
    has_row_layout: bool,
    views: bool,
    binary_as_string: bool,
    /// The unit as a negative power of ten of a second: 0, 3, 6, 9.
    int96_unit: Option<u8>,
}

impl FileName {
    /// The name of an open file; `None` if its store was opened with a session's own keys, which no other server has.
    pub(crate) fn of(file: &ParquetFile) -> Option<Self> {
        let TableFile { store_url, meta, .. } = file.file();
        if store_url.fragment().is_some() {
            return None;
        }
        let stamp = match &meta.e_tag {
            Some(tag) => Stamp::Tag(tag.clone()),
            None => Stamp::Modified {
                seconds: meta.last_modified.timestamp(),
                nanoseconds: meta.last_modified.timestamp_subsec_nanos(),
            },
        };
        Some(Self {
            store: store_url.to_string(),
            path: meta.location.to_string(),
            bytes: meta.size,
            stamp,
            options: Options::of(file.options()),
        })
    }

    /// The length of its texts in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        let tag = if let Stamp::Tag(tag) = &self.stamp { tag.len() } else { 0 };
        self.store.len() + self.path.len() + tag
    }

    /// The address of its store.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// The file's full address.
    #[must_use]
    pub fn url(&self) -> String {
        let slash = if self.store.ends_with('/') { "" } else { "/" };
        format!("{}{slash}{}", self.store, self.path)
    }

    /// The identity of the file version, the same on all servers.
    pub(crate) fn identity(&self) -> u64 {
        let Self { store, path, bytes, stamp, options } = self;
        let (tag, modified) = match stamp {
            Stamp::Tag(tag) => (tag.as_str(), None),
            &Stamp::Modified { seconds, nanoseconds } => ("", Some((seconds, nanoseconds))),
        };
        // Each text is preceded by its length, so that no two names give the same bytes.
        let text = format!(
            "{}:{store}{}:{path}{bytes}:{}:{tag}{modified:?}{options:?}",
            store.len(),
            path.len(),
            tag.len()
        );
        XxHash64::oneshot(0, text.as_bytes())
    }

    /// The file, in this server's stores, and the options to open it with; `None` if there can be no such file.
    pub(crate) fn locate(&self, stores: &Stores) -> Option<(TableFile, FileOptions)> {
        let url = Url::parse(&self.store).ok().filter(|url| url.fragment().is_none())?;
        let (store_url, store) = stores.resolve(&url).ok().filter(|(root, _)| *root == url)?;
        let location = Path::parse(&self.path).ok()?;
        // Some stores decode a path once more. It must not leave what is shared even then.
        let goes_up = |segment: &str| segment.to_ascii_lowercase().replace("%2e", ".") == "..";
        if self.path.split('/').any(goes_up) {
            return None;
        }
        let (last_modified, e_tag) = match &self.stamp {
            Stamp::Tag(tag) => (DateTime::UNIX_EPOCH, Some(tag.clone())),
            &Stamp::Modified { seconds, nanoseconds } => {
                (DateTime::from_timestamp(seconds, nanoseconds)?, None)
            }
        };
        let meta = ObjectMeta { location, last_modified, size: self.bytes, e_tag, version: None };
        Some((TableFile { store, store_url, meta }, self.options.to_file_options()?))
    }
}

impl Options {
    fn of(options: FileOptions) -> Self {
        let FileOptions { chunk_rows, layout, types } = options;
        Self {
            chunk_rows,
            has_row_layout: layout == PageLayout::Row,
            views: types.views,
            binary_as_string: types.binary_as_string,
            int96_unit: types.int96_unit.map(|unit| match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            }),
        }
    }

    fn to_file_options(self) -> Option<FileOptions> {
        let int96_unit = match self.int96_unit {
            None => None,
            Some(0) => Some(TimeUnit::Second),
            Some(3) => Some(TimeUnit::Millisecond),
            Some(6) => Some(TimeUnit::Microsecond),
            Some(9) => Some(TimeUnit::Nanosecond),
            Some(_) => return None,
        };
        let Self { chunk_rows, has_row_layout, views, binary_as_string, .. } = self;
        let layout = if has_row_layout { PageLayout::Row } else { PageLayout::Column };
        let types = ColumnTypes { views, binary_as_string, int96_unit };
        (chunk_rows > 0).then_some(FileOptions { chunk_rows, layout, types })
    }
}
