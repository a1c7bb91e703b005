//! Versions of files: the identity of everything that is read from them.

use std::fmt;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use parquet::file::metadata::ParquetMetaData;
use url::{Position, Url};

/// One Parquet file, as listed.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// The store that holds the file.
    pub store: Arc<dyn ObjectStore>,
    /// The store's address, such as `file:///` or `s3://bucket`; it names the file in errors. The fragment after `#`
    /// distinguishes stores with different options and is not shown.
    pub store_url: Url,
    /// Path, size and identity (entity tag, time of modification) of the file.
    pub meta: ObjectMeta,
}

impl TableFile {
    /// The file's full address.
    #[must_use]
    pub fn name(&self) -> String {
        self.version().to_string()
    }

    /// The identity of the file and its version.
    #[must_use]
    pub fn version(&self) -> FileVersion {
        let modified = self.meta.last_modified;
        let stamp = match &self.meta.e_tag {
            Some(tag) => Stamp::Tag(tag.clone()),
            None => Stamp::Modified {
                seconds: modified.timestamp(),
                nanoseconds: modified.timestamp_subsec_nanos(),
            },
        };
        FileVersion {
            store_url: self.store_url.clone(),
            path: self.meta.location.clone(),
            size: self.meta.size,
            stamp,
        }
    }
}

/// A file, with its footer if that is known.
#[derive(Clone, Debug)]
pub struct FileToOpen {
    /// The file.
    pub file: TableFile,
    /// The footer of this version, as the engine has read it. It is not used if it lacks the page index that the file
    /// has.
    pub footer: Option<Arc<ParquetMetaData>>,
}

impl From<TableFile> for FileToOpen {
    fn from(file: TableFile) -> Self {
        Self { file, footer: None }
    }
}

/// A version of a file: the same version has the same bytes. It displays as the file's full address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileVersion {
    store_url: Url,
    path: Path,
    size: u64,
    stamp: Stamp,
}

/// The property that distinguishes versions of a file besides its size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stamp {
    /// The store's entity tag.
    Tag(String),
    /// The time of the last modification, since 1970, where the store has no entity tags.
    Modified { seconds: i64, nanoseconds: u32 },
}

impl FileVersion {
    /// The address of the store that holds the file.
    #[must_use]
    pub fn store_url(&self) -> &Url {
        &self.store_url
    }

    /// The path of the file in its store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl fmt::Display for FileVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = &self.store_url[..Position::AfterPath];
        let slash = if store.ends_with('/') { "" } else { "/" };
        write!(f, "{store}{slash}{}", self.path)
    }
}
