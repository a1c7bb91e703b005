//! The files of a location, in the store that the session or coscan has for it.

use coscan_storage::stores::{Stores, list_files};
use coscan_storage::table::TableFile;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use url::Url;

use crate::error::from_store;

/// How DataFusion's own store of local files, which every session has, calls itself.
const SESSION_LOCAL_STORE: &str = "LocalFileSystem(file:///)";

/// The files of all locations, each file once, in the order of locations and then of paths.
pub(crate) async fn table_files(
    stores: &Stores,
    runtime: Option<&RuntimeEnv>,
    locations: &[String],
) -> Result<Vec<TableFile>> {
    let mut files: Vec<TableFile> = Vec::new();
    for location in locations {
        let stores = runtime
            .filter(|_| !stores.has_options())
            .and_then(|runtime| session_store(runtime, location))
            .unwrap_or_else(|| stores.clone());
        let listing = list_files(&stores, location).await.map_err(from_store)?;
        for meta in listing.files {
            let (store, store_url) = (listing.store.clone(), listing.store_url.clone());
            let file = TableFile { store, store_url, meta };
            refuse_partitions(location, &file)?;
            // Locations may overlap, such as a directory and a file in it.
            if !files.iter().any(|known| known.name() == file.name()) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The store that the session has registered for a URL, as the only one of its kind.
///
/// The local files that every session has do not count: coscan reads them itself, past the operating system's cache.
fn session_store(runtime: &RuntimeEnv, location: &str) -> Option<Stores> {
    let mut root = match Url::parse(location) {
        Ok(url) if location.contains("://") => url,
        _ => Url::parse("file:///").ok()?,
    };
    root.set_path("/");
    root.set_query(None);
    let store = runtime.object_store_registry.get_store(&root).ok()?;
    if root.scheme() == "file" && store.to_string() == SESSION_LOCAL_STORE {
        return None;
    }
    let stores = Stores::new();
    stores.register(&root, store);
    Some(stores)
}

/// The engine's own tables would have a column for each `name=value` on the way to a file. Leaving it out silently
/// would give other answers.
fn refuse_partitions(location: &str, file: &TableFile) -> Result<()> {
    let path = file.meta.location.as_ref();
    let directories = path.rsplit_once('/').map_or("", |(directories, _)| directories);
    let partition = directories
        .split('/')
        .find(|directory| directory.contains('=') && !location.contains(directory));
    match partition {
        None => Ok(()),
        Some(partition) => Err(DataFusionError::NotImplemented(format!(
            "{location} is partitioned: {path} lies in {partition}. coscan does not make columns of directory names \
             yet; name one partition's directory as the location"
        ))),
    }
}
