//! Reads of one open local file, on the threads of its device.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{Error, ObjectMeta, Result};

use super::direct_file::{DirectAccess, DirectFile};
use super::local_device::{LocalDevice, blocking};

/// The error of an operation of the operating system.
pub(super) fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: STORE_NAME, source: source.into() }
}

/// The name of the store in errors.
pub(super) const STORE_NAME: &str = "DirectFileStore";

/// Reads of a file that was opened and checked.
#[derive(Clone)]
pub(super) struct Reads {
    pub(super) file: Arc<DirectFile>,
    pub(super) path: PathBuf,
    pub(super) access: Arc<DirectAccess>,
    pub(super) device: Arc<LocalDevice>,
    /// The metadata as it was checked, if there was a condition.
    pub(super) meta: Option<ObjectMeta>,
}

impl Reads {
    pub(super) async fn read(self, range: Range<u64>) -> Result<Bytes> {
        let Self { file, path, access, device, meta } = self;
        let answering = Arc::clone(&device);
        let read = move || {
            let bytes = file.read(range, &access, &|| answering.answers()).map_err(generic)?;
            // It may have been overwritten in place since it was checked.
            match meta {
                Some(meta) => {
                    let modified = meta.last_modified.into();
                    let is_unchanged = file.is_unchanged(meta.size, modified).map_err(generic)?;
                    is_unchanged.then_some(bytes).ok_or_else(|| changed(&meta))
                }
                None => Ok(bytes),
            }
        };
        let read = async move { blocking(read).await? };
        device.run(&path, read).await.map_err(generic)?
    }
}

fn changed(meta: &ObjectMeta) -> Error {
    let path = meta.location.to_string();
    Error::Precondition { path, source: "it was overwritten while it was read".into() }
}
