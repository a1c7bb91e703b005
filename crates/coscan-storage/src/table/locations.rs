//! Tables named by paths, directories, patterns and URLs.

use std::sync::Arc;

use super::{FileOptions, ParquetTable, TableError, TableFile};
use crate::stores::{StoreError, Stores, list_files};

/// The reason why a table cannot be opened from locations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// The files cannot be found.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files do not make a table.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl ParquetTable {
    /// Opens the files at these locations, in this order, as one table. A location is a path or URL of a file, a
    /// directory or a pattern, as for [`list_files`].
    ///
    /// # Errors
    /// If files cannot be found, are not Parquet, or a column has no common type in two files.
    pub async fn open_locations<S: AsRef<str>>(
        stores: &Stores,
        locations: &[S],
        options: FileOptions,
    ) -> Result<Self, LocationError> {
        let mut files = Vec::new();
        for location in locations {
            let listing = list_files(stores, location.as_ref()).await?;
            files.extend(listing.files.into_iter().map(|meta| TableFile {
                store: Arc::clone(&listing.store),
                store_url: listing.store_url.clone(),
                meta,
            }));
        }
        Ok(Self::open(files, options).await?)
    }
}
