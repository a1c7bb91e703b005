//! The device that a file is read from.

use std::fmt;

use object_store::path::Path;
use url::{Position, Url};

use super::local_device::devices;

/// A device with its own queue for the reads of a file: a disk or mount of this machine, or a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// A disk or mount of this machine, by its number (`st_dev`).
    Local(u64),
    /// A store, by its address. The fragment after `#` stands for its options.
    Store(Url),
}

impl Device {
    /// The device of a file in a store. Local files are distinguished by the device of their directory.
    ///
    /// # Errors
    /// If the disk or network mount does not answer.
    pub(crate) async fn of(store: &Url, file: &Path) -> object_store::Result<Self> {
        if store.scheme() != "file" {
            return Ok(Self::Store(store.clone()));
        }
        let mut url = store.clone();
        url.set_path(file.as_ref());
        let Ok(path) = url.to_file_path() else { return Ok(Self::Store(store.clone())) };
        let device = devices().of(&path).await.map_err(|error| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(error),
        })?;
        Ok(Self::Local(device.id()))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(id) => write!(f, "local device {id}"),
            Self::Store(url) => f.write_str(&url[..Position::AfterPath]),
        }
    }
}
