//! Snapshots of tables whose files are listed: directories, patterns, single files.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_storage::stores::Stores;
use coscan_storage::table::FileOptions;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::tables::hive;
use crate::tables::location::{FileLocator, ListedFile};
use crate::tables::snapshot_source::{SnapshotSource, TableSnapshot};

/// The places where the files of a table are, and how they are found.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) locations: Vec<String>,
    pub(crate) stores: Stores,
    /// The runtime of a session, whose stores take precedence.
    pub(crate) runtime: Option<Arc<RuntimeEnv>>,
    pub(crate) ignores_subdirectories: bool,
    pub(crate) takes_any_name: bool,
    /// The columns of directories.
    pub(crate) partitions: Vec<FieldRef>,
    /// The columns that are read from the files. `None` reads all.
    pub(crate) columns: Option<SchemaRef>,
}

impl Listing {
    /// The current files, in the order of locations and then of paths.
    pub(crate) async fn files(&self) -> Result<Vec<ListedFile>> {
        let locator = FileLocator {
            stores: &self.stores,
            runtime: self.runtime.as_deref(),
            ignores_subdirectories: self.ignores_subdirectories,
            takes_any_name: self.takes_any_name,
        };
        locator.list(&self.locations).await
    }

    /// A snapshot of these files, those that are in directories of the partition columns.
    pub(crate) fn snapshot(&self, files: Vec<ListedFile>) -> Result<TableSnapshot> {
        let (partitions, columns) = (self.partitions.clone(), self.columns.clone());
        let files = hive::with_values(&partitions, files)?;
        Ok(TableSnapshot { files, columns, partitions, ..TableSnapshot::default() })
    }

    /// The identity of the table of these places.
    pub(crate) fn identity(&self, options: FileOptions) -> String {
        let locations = self.locations.iter().map(|location| ListingTableUrl::parse(location).ok());
        match locations.collect::<Option<Vec<_>>>() {
            Some(urls) => identity(&urls, options),
            None => format!("{:?} {options:?}", self.locations),
        }
    }
}

#[async_trait]
impl SnapshotSource for Listing {
    async fn newest(&self, known: Option<&TableSnapshot>) -> Result<Option<TableSnapshot>> {
        let files = self.files().await?;
        if let Some(known) = known {
            let known = known.files.iter().map(|known| known.file.version());
            let listed = files.iter().filter(|listed| hive::is_in(&self.partitions, listed));
            if known.eq(listed.map(|listed| listed.file.version())) {
                return Ok(None);
            }
        }
        self.snapshot(files).map(Some)
    }
}

/// The identity of a table, which consists of the places where its files are listed, and of how they are opened.
/// Snapshots with the same identity are scheduled together.
pub(crate) fn identity(urls: &[ListingTableUrl], options: FileOptions) -> String {
    let pattern = |url: &ListingTableUrl| url.get_glob().as_ref().map(ToString::to_string);
    let locations: Vec<_> = urls.iter().map(|url| (url.as_str(), pattern(url))).collect();
    format!("{locations:?} {options:?}")
}
