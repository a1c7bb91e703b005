//! The files of a location, which are those that the engine's own tables would list. They are in the session's store
//! for the location, or else in coscan's.

use std::collections::HashSet;
use std::sync::Arc;

use coscan_storage::stores::{Listing, StoreError as StoresError, Stores, list_files};
use coscan_storage::table::{FileVersion, TableFile};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::TryStreamExt;
use log::debug;
use object_store::{Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::error::from_store;
use crate::tables::source::short_name;

/// The display name of DataFusion's store of local files, which every session has.
const SESSION_LOCAL_STORE: &str = "LocalFileSystem(file:///)";

/// Characters that make a location a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The files that are listed in directories.
const FILE_PATTERN: &str = "*.parquet";

/// The stores and options for finding the files of a table.
pub(crate) struct FileLocator<'a> {
    /// The stores of coscan.
    pub(crate) stores: &'a Stores,
    /// The runtime of the session, if there is one, whose stores take precedence.
    pub(crate) runtime: Option<&'a RuntimeEnv>,
    /// Whether subdirectories are ignored, except those of partitions.
    pub(crate) ignores_subdirectories: bool,
    /// Whether the files of a directory may have any extension.
    pub(crate) takes_any_name: bool,
}

/// A file, and the location in which it was found.
#[derive(Clone, Debug)]
pub(crate) struct ListedFile {
    pub(crate) file: TableFile,
    pub(crate) location: Arc<ListingTableUrl>,
}

impl FileLocator<'_> {
    /// The files of all locations, each file once, in the order of locations and then of paths.
    pub(crate) async fn list(&self, locations: &[String]) -> Result<Vec<ListedFile>> {
        let mut files: Vec<ListedFile> = Vec::new();
        let mut known: HashSet<FileVersion> = HashSet::new();
        for location in locations {
            let listed = self.list_one(location).await?;
            // Locations may overlap, such as a directory and a file in it.
            files.extend(listed.into_iter().filter(|listed| known.insert(listed.file.version())));
        }
        Ok(files)
    }

    async fn list_one(&self, location: &str) -> Result<Vec<ListedFile>> {
        let stores = self.runtime.and_then(|runtime| session_store(runtime, self.stores, location));
        let stores = stores.unwrap_or_else(|| self.stores.clone());
        // The engine treats a path with these characters as a pattern, even if it exists.
        let exists = existing_path(location).await.is_some();
        if !exists
            && let Some(files) = self.as_the_engine_lists(&stores, location).await
            && !files.is_empty()
        {
            return Ok(files);
        }
        // The engine refuses patterns in URLs, and directories without Parquet files directly in
        // them. Otherwise this returns the error that explains what is wrong.
        let Listing { store, store_url, files } =
            list_files(&stores, location).await.map_err(from_store)?;
        let url = Arc::new(ListingTableUrl::parse(before_pattern(location))?);
        Ok(listed(&store, &store_url, &url, files))
    }

    /// The files that the engine's own table would have, or `None` if it cannot list them.
    async fn as_the_engine_lists(
        &self,
        stores: &Stores,
        location: &str,
    ) -> Option<Vec<ListedFile>> {
        if location.contains("://") && wildcard_of(location).is_some() {
            return None;
        }
        let found = self.try_as_the_engine_lists(stores, location).await;
        found.inspect_err(|error| debug!("{location} is listed by coscan's rules: {error}")).ok()
    }

    async fn try_as_the_engine_lists(
        &self,
        stores: &Stores,
        location: &str,
    ) -> Result<Vec<ListedFile>> {
        let mut url = ListingTableUrl::parse(location)?;
        let (store_url, store) = stores.resolve(url.get_url()).map_err(from_store)?;
        if url.is_folder() && url.get_glob().is_none() && !self.takes_any_name {
            url = url.with_glob(FILE_PATTERN)?;
        }
        let single = match url.is_collection() {
            true => None,
            false => match store.head(url.prefix()).await {
                Ok(meta) => Some(meta),
                Err(StoreError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let mut metas: Vec<_> = match single {
            Some(meta) => vec![meta],
            None => {
                let listed = store.list(Some(url.prefix()));
                let belongs = |meta: &ObjectMeta| {
                    let belongs = url.contains(&meta.location, self.ignores_subdirectories);
                    std::future::ready(belongs)
                };
                listed.try_filter(belongs).try_collect().await?
            }
        };
        // Some writers leave empty files as markers.
        metas.retain(|meta| meta.size > 0);
        metas.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        Ok(listed(&store, &store_url, &Arc::new(url), metas))
    }
}

fn listed(
    store: &Arc<dyn ObjectStore>,
    store_url: &Url,
    location: &Arc<ListingTableUrl>,
    metas: Vec<ObjectMeta>,
) -> Vec<ListedFile> {
    let listed = |meta| ListedFile {
        file: TableFile { store: Arc::clone(store), store_url: store_url.clone(), meta },
        location: Arc::clone(location),
    };
    metas.into_iter().map(listed).collect()
}

/// The index at which the pattern of a location begins, if it has one. The host of a URL may be in brackets (IPv6).
pub(crate) fn wildcard_of(location: &str) -> Option<usize> {
    let host_start = location.find("://").map(|scheme_end| scheme_end + "://".len());
    let path_start = match host_start {
        Some(host_start) => host_start + location[host_start..].find('/')?,
        None => 0,
    };
    location[path_start..].find(WILDCARDS).map(|wildcard| path_start + wildcard)
}

/// The URL of a local file or directory that exists although its path looks like a pattern.
pub(crate) async fn existing_path(location: &str) -> Option<Url> {
    if location.contains("://") || wildcard_of(location).is_none() {
        return None;
    }
    let metadata = tokio::fs::metadata(location).await.ok()?;
    let path = std::path::absolute(location).ok()?;
    match metadata.is_dir() {
        true => Url::from_directory_path(path).ok(),
        false => Url::from_file_path(path).ok(),
    }
}

/// A name for a table at a location: the last part before a pattern.
pub(crate) fn name_of(location: &str) -> String {
    match before_pattern(location) {
        "." => short_name(location),
        directory => short_name(directory),
    }
}

/// The part of a location up to the directory in which its pattern begins, or the whole location.
fn before_pattern(location: &str) -> &str {
    let Some(wildcard) = wildcard_of(location) else { return location };
    location[..wildcard].rfind('/').map_or(".", |slash| &location[..=slash])
}

/// The store from which the engine reads files of a table of the session, and its URL.
///
/// # Errors
/// If no store is known for the URL.
pub(crate) fn store_of(
    runtime: &RuntimeEnv,
    stores: &Stores,
    url: &Url,
) -> Result<(Url, Arc<dyn ObjectStore>), StoresError> {
    match session_root(runtime, url.as_str()) {
        // The engine looks up the root only, whatever else is below it.
        Some((root, store)) => match is_of(stores, &root, &store) {
            true => stores.resolve(&root),
            false => only(&root, store).resolve(url),
        },
        None => stores.resolve(url),
    }
}

/// The store that the session has registered for a URL, as the only store.
fn session_store(runtime: &RuntimeEnv, stores: &Stores, location: &str) -> Option<Stores> {
    let (root, store) = session_root(runtime, location)?;
    (!is_of(stores, &root, &store)).then(|| only(&root, store))
}

/// The store that the session finds for a URL, its own or coscan's, and the root of that store.
///
/// The store of local files that every session has does not count, since coscan reads local files itself, past the
/// operating system's cache.
fn session_root(runtime: &RuntimeEnv, location: &str) -> Option<(Url, Arc<dyn ObjectStore>)> {
    let mut root = match Url::parse(location) {
        Ok(url) if location.contains("://") => url,
        _ => Url::parse("file:///").ok()?,
    };
    root.set_path("/");
    root.set_query(None);
    let store = runtime.object_store_registry.get_store(&root).ok()?;
    let is_usual = root.scheme() == "file" && store.to_string() == SESSION_LOCAL_STORE;
    (!is_usual).then_some((root, store))
}

/// Whether a session has a store only because coscan has it. Coscan then resolves URLs itself.
fn is_of(stores: &Stores, root: &Url, store: &Arc<dyn ObjectStore>) -> bool {
    stores.resolve(root).is_ok_and(|(_, own)| Arc::ptr_eq(&own, store))
}

fn only(root: &Url, store: Arc<dyn ObjectStore>) -> Stores {
    let stores = Stores::new();
    stores.register(root, store);
    stores
}
