//! What the log of a published table has.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use datafusion::common::{DataFusionError, plan_err};
use datafusion::error::Result;
use delta_kernel::KernelResult;
use delta_kernel::scan::state::ScanFile;
use delta_kernel::snapshot::{Snapshot, SnapshotRef};
use delta_kernel_default_engine::DefaultEngine;
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use object_store::local::LocalFileSystem;
use url::Url;

use crate::error::from_kernel;
use crate::publishing::actions::{CommitOrigin, app_id};
use crate::publishing::directory::TableDirectory;

/// The newest version of a published table.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct LogState {
    pub(super) version: u64,
    /// The number of the table that should be there.
    pub(super) table: u64,
    /// The last commit of the database that this has of it; `None` if it is another table.
    pub(super) lsn: Option<u64>,
    /// The size of each file in bytes.
    pub(super) files: BTreeMap<String, u64>,
}

impl LogState {
    /// Reads the log of a directory; `None` if there is none. `table` is the number of the table that should be there.
    ///
    /// # Errors
    /// If another engine has changed the table, or the log cannot be read.
    pub(super) fn read(directory: &TableDirectory, table: u64) -> Result<Option<Self>> {
        if directory.newest_version()?.is_none() {
            return Ok(None);
        }
        let engine = DefaultEngine::builder(store(directory)?).build();
        let read = || {
            let snapshot = Snapshot::builder_for(root()).build(&engine)?;
            let lsn = snapshot.get_app_id_version(&app_id(table), &engine)?;
            let mut files: Vec<ScanFile> = Vec::new();
            let scan = SnapshotRef::clone(&snapshot).scan_builder().build()?;
            for read in scan.scan_metadata(&engine)? {
                files = read?.visit_scan_files(files, |files, file| files.push(file))?;
            }
            let sizes = files.into_iter().map(|file| (file.path, file.size));
            let sizes = sizes.map(|(path, bytes)| (path, u64::try_from(bytes).unwrap_or(0)));
            let lsn = lsn.and_then(|lsn| u64::try_from(lsn).ok());
            let version = snapshot.version();
            KernelResult::Ok(Self { version, table, lsn, files: sizes.collect() })
        };
        let state = read().map_err(|error| {
            let advice =
                "if it is damaged, move the directory elsewhere, and VACUUM FULL writes it anew";
            from_kernel(&directory.url(), error).context(advice)
        })?;
        check_origin(directory, state.version)?;
        Ok(Some(state))
    }
}

/// Checks that no other engine has changed the table since coscan has written to its log.
///
/// # Errors
/// If one has, or the log cannot be read.
pub(super) fn check_origin(directory: &TableDirectory, newest: u64) -> Result<()> {
    for version in (0..=newest).rev() {
        let content = match directory.commit(version) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return plan_err!(
                    "other engines have written to the Delta table {}, and its log no longer has version {version}. Move the \
                     directory elsewhere, and VACUUM FULL writes the table anew",
                    directory.path().display()
                );
            }
            content => content?,
        };
        let origin = CommitOrigin::of(&content);
        match origin.map_err(|error| DataFusionError::External(Box::new(error)))? {
            CommitOrigin::Coscan => break,
            CommitOrigin::ForeignRewrite => {}
            CommitOrigin::ForeignChange => {
                return plan_err!(
                    "another engine has changed the Delta table {} in its version {version}, and the database does not have that. \
                     Move the directory elsewhere, and VACUUM FULL writes the table anew; INSERT INTO … SELECT copies rows that \
                     are only there",
                    directory.path().display()
                );
            }
        }
    }
    Ok(())
}

/// Writes a checkpoint of the log, so that readers have few commits to read.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_checkpoint(directory: &TableDirectory, version: u64) -> Result<()> {
    // The kernel writes checkpoints on several threads only.
    let executor = TokioMultiThreadExecutor::new_owned_runtime(Some(2), None);
    let executor = executor.map_err(|error| from_kernel(&directory.url(), error))?;
    let engine = DefaultEngine::builder(store(directory)?).with_task_executor(Arc::new(executor));
    let engine = engine.build();
    let snapshot = Snapshot::builder_for(root()).at_version(version).build(&engine);
    let written = snapshot.and_then(|snapshot| snapshot.checkpoint(&engine, None));
    written.map_err(|error| from_kernel(&directory.url(), error))?;
    Ok(directory.sync_checkpoint(version)?)
}

/// A store of the directory alone: paths to it may have any name.
fn store(directory: &TableDirectory) -> Result<Arc<LocalFileSystem>> {
    Ok(Arc::new(LocalFileSystem::new_with_prefix(directory.path())?))
}

/// The root of that store.
fn root() -> Url {
    Url::parse("file:///").expect("a URL")
}
