//! Data files in their store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use coscan_storage::table::TableFile;
use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

/// The maximum number of concurrent requests for the properties of files.
const REQUESTS_MAX: usize = 32;

/// The data files of a table. Formats with a log never write a file twice, so each is looked up once and its properties
/// are kept.
#[derive(Debug)]
pub(crate) struct DataFiles {
    store: Arc<dyn ObjectStore>,
    store_url: Url,
    known: Mutex<HashMap<Url, ObjectMeta>>,
}

impl DataFiles {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, store_url: Url) -> Self {
        Self { store, store_url, known: Mutex::default() }
    }

    /// The files at these locations, in their order. The properties of all others are forgotten, unless the
    /// files are those of an earlier version.
    ///
    /// # Errors
    /// If a file is not in the store, or its properties cannot be read.
    pub(crate) async fn find(&self, locations: &[Url], is_earlier: bool) -> Result<Vec<TableFile>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let find = async |location: &Url| match known.get(location) {
            Some(meta) => Ok((location.clone(), meta.clone())),
            None => self.look_up(location).await.map(|meta| (location.clone(), meta)),
        };
        let found = stream::iter(locations).map(find).buffered(REQUESTS_MAX);
        let found: Vec<_> = found.try_collect().await?;
        let file = |(_, meta): &(Url, ObjectMeta)| TableFile {
            store: Arc::clone(&self.store),
            store_url: self.store_url.clone(),
            meta: meta.clone(),
        };
        let files = found.iter().map(file).collect();
        if !is_earlier {
            let found = found.into_iter().collect();
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
        Ok(files)
    }

    async fn look_up(&self, location: &Url) -> Result<ObjectMeta> {
        let is_here = location.scheme() == self.store_url.scheme()
            && location.authority() == self.store_url.authority();
        if !is_here {
            return Err(plan_datafusion_err!(
                "the data file {location} is not in the store {} of its table, where coscan looks for it; copy the table \
                 with its files",
                self.store_url
            ));
        }
        let path = Path::from_url_path(location.path())?;
        Ok(self.store.head(&path).await?)
    }
}
