//! The files of a location, those that the engine's own tables list, in the store that the session or coscan has for it.

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

/// How DataFusion's own store of local files, which every session has, calls itself.
const SESSION_LOCAL_STORE: &str = "LocalFileSystem(file:///)";

/// What a pattern is told by.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// What a directory lists besides its partitions.
const FILE_PATTERN: &str = "*.parquet";

/// Where the files of a table are looked for.
pub(crate) struct Places<'a> {
    /// The stores of coscan.
    pub(crate) stores: &'a Stores,
    /// The session's, if there is a session. They win.
    pub(crate) runtime: Option<&'a RuntimeEnv>,
    /// Whether directories other than those of partitions are left out.
    pub(crate) ignores_subdirectories: bool,
    /// Whether all files of a directory are taken, whatever their names.
    pub(crate) takes_any_name: bool,
}

/// A file, and the location below which it was found.
#[derive(Clone, Debug)]
pub(crate) struct ListedFile {
    pub(crate) file: TableFile,
    pub(crate) location: Arc<ListingTableUrl>,
}

impl Places<'_> {
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
        if let Some(files) = self.as_the_engine_lists(&stores, location).await
            && !files.is_empty()
        {
            return Ok(files);
        }
        // Patterns in URLs and directories without Parquet files of their own, which the engine refuses; or an error
        // that says what is wrong.
        let Listing { store, store_url, files } =
            list_files(&stores, location).await.map_err(from_store)?;
        let url = Arc::new(ListingTableUrl::parse(before_pattern(location))?);
        Ok(listed(&store, &store_url, &url, files))
    }

    /// The files that the engine's own table would have, `None` if it can list none.
    async fn as_the_engine_lists(
        &self,
        stores: &Stores,
        location: &str,
    ) -> Option<Vec<ListedFile>> {
        if location.contains("://") && location.contains(WILDCARDS) {
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
        // Empty files are what some writers leave as marks.
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

/// A location up to the directory in which its pattern begins, if it has one.
fn before_pattern(location: &str) -> &str {
    let Some(wildcard) = location.find(WILDCARDS) else { return location };
    location[..wildcard].rfind('/').map_or(".", |slash| &location[..=slash])
}

/// The store that the engine reads files of a table of the session from, and its address.
///
/// # Errors
/// If no store is known for the URL.
pub(crate) fn store_of(
    runtime: &RuntimeEnv,
    stores: &Stores,
    url: &Url,
) -> Result<(Url, Arc<dyn ObjectStore>), StoresError> {
    match session_root(runtime, url.as_str()) {
        // The engine asks for no more than the root, whatever else is below it.
        Some((root, store)) => match is_of(stores, &root, &store) {
            true => stores.resolve(&root),
            false => only(&root, store).resolve(url),
        },
        None => stores.resolve(url),
    }
}

/// The store that the session has registered for a URL, as the only one of its kind.
fn session_store(runtime: &RuntimeEnv, stores: &Stores, location: &str) -> Option<Stores> {
    let (root, store) = session_root(runtime, location)?;
    (!is_of(stores, &root, &store)).then(|| only(&root, store))
}

/// What the session finds for a URL: a store of its own, or one of coscan. And the root of that store.
///
/// The local files that every session has do not count: coscan reads them itself, past the operating system's cache.
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

/// Whether a session has a store only because coscan has it: then coscan knows better which is for what.
fn is_of(stores: &Stores, root: &Url, store: &Arc<dyn ObjectStore>) -> bool {
    stores.resolve(root).is_ok_and(|(_, own)| Arc::ptr_eq(&own, store))
}

fn only(root: &Url, store: Arc<dyn ObjectStore>) -> Stores {
    let stores = Stores::new();
    stores.register(root, store);
    stores
}
