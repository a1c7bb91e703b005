//! A Delta table as a source of snapshots.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, SnapshotFile, SnapshotSource, SnapshotTime, TableSnapshot};
use coscan_storage::stores::Stores;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, ScalarValue, plan_datafusion_err};
use datafusion::error::Result;
use url::Url;

use crate::error::from_join;
use crate::files::DataFiles;
use crate::log::{Log, LoggedVersion};

/// The versions of a Delta table.
#[derive(Debug)]
pub struct DeltaTable {
    log: Arc<Log>,
    files: DataFiles,
}

impl DeltaTable {
    /// The table in a directory of one of these stores. Nothing is read.
    ///
    /// # Errors
    /// If the stores do not know the location.
    pub fn new(coscan: &CoscanOptions, stores: &Stores, mut root: Url) -> Result<Self> {
        if !root.path().ends_with('/') {
            root.set_path(&format!("{}/", root.path()));
        }
        let (store_url, store) =
            stores.resolve(&root).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let log = Log::new(root, Arc::clone(&store), coscan.table_options().types);
        Ok(Self { log: Arc::new(log), files: DataFiles::new(store, store_url) })
    }

    /// The directory of the table.
    #[must_use]
    pub fn root(&self) -> &Url {
        self.log.root()
    }

    /// Reads from the log on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Log) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let log = Arc::clone(&self.log);
        let read = tokio::task::spawn_blocking(move || read(&log)).await;
        read.map_err(|error| from_join(self.root(), &error))?
    }

    async fn snapshot(&self, version: LoggedVersion, is_earlier: bool) -> Result<TableSnapshot> {
        let LoggedVersion { version, columns, files: logged } = version;
        let locations: Vec<_> = logged.iter().map(|file| file.location.clone()).collect();
        let found = self.files.find(&locations, is_earlier).await?;
        let mut files = Vec::with_capacity(found.len());
        for (file, logged) in found.into_iter().zip(logged) {
            let values = columns.partitions.iter().zip(&logged.partition_values);
            let mut file = SnapshotFile::from(file);
            file.partition_values =
                values.map(|(field, text)| value(field, text.as_deref())).collect::<Result<_>>()?;
            file.changes = logged.deleted_rows;
            files.push(file);
        }
        Ok(TableSnapshot {
            files,
            columns: Some(columns.stored),
            mapping: columns.mapping,
            partitions: columns.partitions,
            version: Some(version),
        })
    }
}

/// A partition value from its text in the log.
fn value(field: &FieldRef, text: Option<&str>) -> Result<ScalarValue> {
    let Some(text) = text else { return ScalarValue::try_new_null(field.data_type()) };
    let value = match field.data_type() {
        DataType::Binary | DataType::BinaryView => {
            ScalarValue::Binary(Some(text.as_bytes().to_vec())).cast_to(field.data_type())
        }
        data_type => ScalarValue::try_from_string(text.to_owned(), data_type),
    };
    value.map_err(|error| {
        plan_datafusion_err!(
            "'{text}' is not a value of partition column {}: {error}",
            field.name()
        )
    })
}

#[async_trait]
impl SnapshotSource for DeltaTable {
    async fn newest(&self, known: Option<&TableSnapshot>) -> Result<Option<TableSnapshot>> {
        let known = known.and_then(|known| known.version);
        match self.read(move |log| log.newest(known)).await? {
            Some(version) => self.snapshot(version, false).await.map(Some),
            None => Ok(None),
        }
    }

    async fn at(&self, moment: SnapshotTime) -> Result<TableSnapshot> {
        let version = self.read(move |log| match moment {
            SnapshotTime::Version(version) => log.version(version),
            SnapshotTime::Timestamp(milliseconds) => log.version_at(milliseconds),
        });
        self.snapshot(version.await?, true).await
    }

    fn may_change_columns(&self) -> bool {
        true
    }
}
