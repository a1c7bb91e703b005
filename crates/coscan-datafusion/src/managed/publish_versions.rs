//! Which versions of tables are published, and when.

use std::collections::BTreeSet;
use std::sync::Arc;

use coscan_database::{Lsn, TableId, TableVersion};
use coscan_storage::table::Value;
use datafusion::common::{DataFusionError, internal_err};
use datafusion::error::Result;

use crate::managed::checkpoint_due::Extent;
use crate::managed::data_files::used_files;
use crate::managed::database::ManagedDatabase;
use crate::managed::publisher::{PublishedFile, PublishedVersion};
use crate::managed::table::ManagedTable;

impl ManagedDatabase {
    /// Publishes a version of a table, if all of its rows are in files. The caller has a transaction that keeps the files. One that
    /// cannot be published until somebody decides something is tried again with [`Extent::All`] only.
    ///
    /// # Errors
    /// Those of the publisher.
    pub(crate) async fn publish(
        &self,
        table: &ManagedTable,
        version: &TableVersion<Value>,
        lsn: Lsn,
        extent: Extent,
    ) -> Result<()> {
        let Some(publishing) = self.publishing() else { return Ok(()) };
        if !version.is_in_files() {
            return Ok(());
        }
        let id = table.id();
        let ids: Vec<_> = version.files().iter().map(|file| file.id).collect();
        let mut last = publishing.last.lock().await;
        if extent == Extent::Due && last.files.get(&id) == Some(&ids)
            || !self.versions().tables().iter().any(|table| table.id == id)
        {
            return Ok(());
        }
        last.files.remove(&id);
        // The newest version keeps its links until there is this one.
        last.cleaned = None;
        let files = version
            .files()
            .iter()
            .map(|file| PublishedFile { path: Arc::clone(&file.file.path), rows: file.file.rows });
        let version = PublishedVersion {
            name: table.name().to_owned(),
            table: id.0,
            columns: Arc::clone(table.columns()),
            lsn: lsn.0,
            files: files.collect(),
        };
        let published = publishing
            .run(move |publisher, directory| publisher.publish(directory, &version))
            .await;
        let is_final = match &published {
            Ok(()) => true,
            Err(error) => matches!(error.find_root(), DataFusionError::Plan(_)),
        };
        if is_final {
            last.files.insert(id, ids);
        }
        let context =
            || format!("other engines do not see the newest rows of table {}", table.name());
        published.map_err(|error| error.context(context()))
    }

    /// Removes what was published of tables that were dropped and of files that were removed.
    ///
    /// # Errors
    /// Those of the publisher.
    pub(crate) async fn clean_published(&self) -> Result<()> {
        let Some(publishing) = self.publishing() else { return Ok(()) };
        let mut last = publishing.last.lock().await;
        let database = self.clone();
        let used = tokio::task::spawn_blocking(move || {
            let tables = database.versions().tables();
            (tables, used_files(database.versions()))
        });
        let Ok((tables, files)) = used.await else { return internal_err!("cleaning ended") };
        let ids: BTreeSet<_> = tables.iter().map(|table| table.id).collect();
        let is_gone = |cleaned: &(BTreeSet<TableId>, BTreeSet<Arc<str>>)| {
            !cleaned.0.is_subset(&ids) || !cleaned.1.is_subset(&files)
        };
        if last.cleaned.as_ref().is_some_and(|cleaned| !is_gone(cleaned)) {
            last.cleaned = Some((ids, files));
            return Ok(());
        }
        last.files.retain(|id, _| ids.contains(id));
        let names: BTreeSet<_> = tables.into_iter().map(|table| table.name).collect();
        let kept = files.clone();
        publishing
            .run(move |publisher, directory| publisher.clean(directory, &names, &kept))
            .await?;
        last.cleaned = Some((ids, files));
        Ok(())
    }
}
