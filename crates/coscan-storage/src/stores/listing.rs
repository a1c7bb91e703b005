//! The files that a location names.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use super::error::StoreError;
use super::glob_match::{GlobPattern, is_hidden, relative};
use super::local_device::on_device;
use super::location::{Location, not_found, wrong};
use super::registry::Stores;

/// The files of a table, and the store to read them from.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The store that holds the files.
    pub store: Arc<dyn ObjectStore>,
    /// The root of that store, such as `file:///` or `s3://bucket/`. The fragment after `#` stands for its options.
    pub store_url: Url,
    /// At least one file, sorted by path.
    pub files: Vec<ObjectMeta>,
}

/// Finds the files at `location`, a path or a URL of
///
/// - one file of any name and size: the reader reports files that are not Parquet;
/// - a directory, with or without a final slash: all files below it whose names end in `.parquet`,
///   except where a name on the way begins with `.` or `_`;
/// - a pattern with `*`, `?`, `[..]` and `**`: all files that match. `*` and `?` stay within one
///   directory. Names that begin with `.` or `_` must be spelled out.
///
/// Relative paths start at the current directory. A path that exists is never a pattern.
///
/// # Errors
/// [`StoreError`] names the mistake in the location and the remedy.
pub async fn list_files(stores: &Stores, location: &str) -> Result<Listing, StoreError> {
    let parsed = Location::parse(location).await?;
    let (store_url, store) = stores.resolve(&parsed.base)?;
    let base = Path::from_url_path(parsed.base.path())
        .map_err(|error| wrong(location, &error.to_string()))?;
    let place = Place { store: store.as_ref(), text: location, location: &parsed };

    let mut files = if !parsed.pattern.is_empty() {
        place.matching_files(base).await?
    } else if parsed.is_directory || base.as_ref().is_empty() {
        place.files_of_directory(&base).await?
    } else {
        match store.head(&base).await {
            Ok(file) => vec![file],
            Err(Error::NotFound { .. }) => match place.files_of_directory(&base).await {
                // The server answers without such a file, and does not list directories.
                Err(StoreError::NotListable { .. }) => return Err(not_found(location)),
                files => files?,
            },
            Err(cause) => return Err(place.unreachable(cause)),
        }
    };
    files.sort_unstable_by(|left, right| left.location.cmp(&right.location));
    Ok(Listing { store, store_url, files })
}

/// A location and its store, for the errors of one listing.
struct Place<'a> {
    store: &'a dyn ObjectStore,
    text: &'a str,
    location: &'a Location,
}

impl Place<'_> {
    async fn matching_files(&self, base: Path) -> Result<Vec<ObjectMeta>, StoreError> {
        let pattern = GlobPattern::parse(&self.location.pattern).map_err(|error| {
            wrong(self.text, &format!("{}. Use *, ?, [..], or ** between slashes", error.msg))
        })?;
        let files =
            pattern.files(self.store, base).await.map_err(|cause| self.not_listed(cause))?;
        if files.is_empty() {
            return Err(StoreError::NoMatch { location: self.text.to_owned() });
        }
        Ok(files)
    }

    async fn files_of_directory(&self, directory: &Path) -> Result<Vec<ObjectMeta>, StoreError> {
        let mut below = self.store.list(Some(directory));
        let mut files = Vec::new();
        let mut exists = false;
        while let Some(file) = below.try_next().await.map_err(|cause| self.not_listed(cause))? {
            exists = true;
            if relative(&file.location, directory).is_some_and(is_table_file) {
                files.push(file);
            }
        }
        exists = exists || self.is_local_directory().await;
        match (files.is_empty(), exists) {
            (false, _) => Ok(files),
            (true, true) => Err(StoreError::NoParquetFiles { location: self.text.to_owned() }),
            (true, false) => Err(not_found(self.text)),
        }
    }

    /// Whether the location is an existing local directory. Object stores have no empty directories; file systems do.
    async fn is_local_directory(&self) -> bool {
        let base = &self.location.base;
        match base.to_file_path() {
            Ok(path) if base.scheme() == "file" => {
                let is_directory = |path: &std::path::Path| path.is_dir();
                on_device(&path, is_directory).await.unwrap_or(false)
            }
            _ => false,
        }
    }

    fn not_listed(&self, cause: Error) -> StoreError {
        match self.location.base.scheme() {
            "http" | "https" => {
                StoreError::NotListable { location: self.text.to_owned(), cause: Box::new(cause) }
            }
            _ => self.unreachable(cause),
        }
    }

    fn unreachable(&self, cause: Error) -> StoreError {
        StoreError::Unreachable { location: self.text.to_owned(), cause: Box::new(cause) }
    }
}

/// Whether a file of a directory belongs to the table, judged by its path below the directory.
fn is_table_file(path: &str) -> bool {
    path.ends_with(".parquet") && !path.split('/').any(is_hidden)
}
