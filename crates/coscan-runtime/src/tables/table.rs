//! A table that scans share. It is registered with a manager as long as it is held.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use coscan_core::{ChunkIndex, ChunkSpec, GroupIndex, Index, PageId, PageIndex, TableId};
use coscan_storage::table::{ParquetFile, ParquetTable, TableChanges, TableError};

use crate::driver::{Driver, Message};
use crate::sync::destructor::InDestructor;
use crate::tables::registry::{FileId, Registry, step_chunks};
use crate::tables::snapshot::{Snapshot, SnapshotFile};

/// A table that scans can share: a snapshot of its files. Cheap to clone.
///
/// Tables that list the same version of a file share its pages and decoded columns, whatever else they list. Scans of
/// tables of the same files, or of snapshots of one name, are scheduled together.
#[derive(Clone, Debug)]
pub struct SharedTable {
    open: Arc<OpenTable>,
}

#[derive(Debug)]
struct OpenTable {
    registration: Registration,
    snapshot: Arc<Snapshot>,
    /// The table of the same files for scans in order, if core has their chunks in another order.
    in_order: OnceLock<SharedTable>,
}

/// Keeps a table registered with its pages, but without its footers. Cheap to clone.
///
/// A table of the same name and files that is registered meanwhile finds the pages in the pool.
#[derive(Clone, Debug)]
pub struct Registration {
    registered: Arc<Registered>,
}

#[derive(Debug)]
struct Registered {
    driver: Arc<Driver>,
    name: Option<String>,
    id: TableId,
    files: Vec<FileId>,
}

impl Registration {
    /// Registers a table under the same name, if this registration has one.
    #[must_use]
    pub fn register(&self, table: Arc<ParquetTable>) -> SharedTable {
        let Registered { driver, name, .. } = &*self.registered;
        SharedTable::register(driver, name.as_deref(), table)
    }
}

impl SharedTable {
    pub(crate) fn register(
        driver: &Arc<Driver>,
        name: Option<&str>,
        table: Arc<ParquetTable>,
    ) -> Self {
        // On a manager that has panicked no scan starts, so any ids will do.
        let Places { id, files, chunks } =
            Places::register(driver, name, &table).unwrap_or_else(|| Places::unregistered(&table));
        let ids = files.iter().map(|file| file.id).collect();
        let snapshot = Arc::new(Snapshot::new(driver.memory(), id, table, files, chunks));
        let (driver, name) = (Arc::clone(driver), name.map(str::to_owned));
        let registered = Arc::new(Registered { driver, name, id, files: ids });
        let registration = Registration { registered };
        let in_order = OnceLock::new();
        Self { open: Arc::new(OpenTable { registration, snapshot, in_order }) }
    }

    /// The table itself.
    #[must_use]
    pub fn table(&self) -> &Arc<ParquetTable> {
        &self.open.snapshot.table
    }

    /// The same table with other changes, scheduled together with this one. Nothing is read or registered. Versions share
    /// the memory of changes, so the caller counts it ([`BufferManager::count_metadata`]).
    ///
    /// # Errors
    /// If a row is changed that its file does not have.
    ///
    /// # Panics
    /// As [`ParquetTable::with_changes`].
    ///
    /// [`BufferManager::count_metadata`]: crate::BufferManager::count_metadata
    pub fn with_changes(&self, changes: TableChanges) -> Result<Self, TableError> {
        let table = Arc::new(self.table().with_changes(changes)?);
        let snapshot = Arc::new(self.open.snapshot.with_changes(table));
        let registration = self.registration();
        let in_order = OnceLock::new();
        Ok(Self { open: Arc::new(OpenTable { registration, snapshot, in_order }) })
    }

    /// Its id with the scheduler. Tables of the same files have the same, and so have snapshots of one name.
    #[must_use]
    pub fn id(&self) -> TableId {
        self.open.snapshot.id
    }

    /// Sets its name in reports, until a scan uses another: names of snapshots need not be for people.
    pub fn set_title(&self, title: &str) {
        self.open.registration.registered.driver.name_table(self.id(), &title.into());
    }

    /// Keeps it registered after this is dropped, to be found again by its name.
    #[must_use]
    pub fn registration(&self) -> Registration {
        self.open.registration.clone()
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.open.snapshot
    }

    /// The table for scans in order: itself, unless files that were added later come before others in its list.
    pub(crate) fn in_order(&self) -> Self {
        let OpenTable { registration, snapshot, in_order } = &*self.open;
        if snapshot.is_in_order() {
            return self.clone();
        }
        let register = || {
            // The name is unique, so that no files are added to it.
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let name = format!("in order {}", NEXT.fetch_add(1, Ordering::Relaxed));
            let driver = &registration.registered.driver;
            Self::register(driver, Some(&name), Arc::clone(&snapshot.table))
        };
        in_order.get_or_init(register).clone()
    }
}

/// The ids of a table, its files and chunks in core.
struct Places {
    id: TableId,
    files: Vec<SnapshotFile>,
    chunks: Vec<ChunkIndex>,
}

impl Places {
    /// Registers a table step by step, so that the lock is not held for all files, nor for all chunks of one; `None` if
    /// the manager has panicked.
    fn register(driver: &Arc<Driver>, name: Option<&str>, table: &ParquetTable) -> Option<Self> {
        let columns = Registry::columns(table);
        let files = table.parquet_files().iter().map(|file| register_file(driver, file));
        let files = files.collect::<Option<Vec<_>>>()?;
        let id = driver.registering(|registry, core| {
            let files = files.iter().map(|(id, _)| *id).collect();
            registry.hold_table(core, table, name, files, &columns)
        })?;
        let mut chunks = Vec::new();
        for (position, &file) in files.iter().enumerate() {
            chunks.extend(register_chunks(driver, id, file, table, position)?);
        }
        let placed = |(id, first_page)| SnapshotFile { id, first_page };
        Some(Self { id, files: files.into_iter().map(placed).collect(), chunks })
    }

    /// The places of a table that is not registered.
    fn unregistered(table: &ParquetTable) -> Self {
        let nowhere = SnapshotFile { id: FileId(0), first_page: PageId(0) };
        Self {
            id: TableId(0),
            files: vec![nowhere; table.parquet_files().len()],
            chunks: table.layout().chunks().collect(),
        }
    }
}

fn register_file(driver: &Arc<Driver>, file: &ParquetFile) -> Option<(FileId, PageId)> {
    let known = driver.registering(|registry, _| registry.hold_known_file(file))?;
    if known.is_some() {
        return known;
    }
    let pages = (0..file.page_count()).map(PageIndex::from_usize);
    let page_bytes = pages.map(|page| file.page_bytes(page)).collect();
    let memory = driver.reserve_for_pages(file.page_count());
    let held = driver
        .registering(|registry, core| registry.acquire_file(core, file, page_bytes, memory))?;
    driver.share_file(file, held.0, held.1);
    Some(held)
}

/// The chunks of core for those of a file in a table. They are registered if they are not yet.
fn register_chunks(
    driver: &Arc<Driver>,
    table_id: TableId,
    (file, first_page): (FileId, PageId),
    table: &ParquetTable,
    position: usize,
) -> Option<Vec<ChunkIndex>> {
    let groups = (0..table.group_count()).map(GroupIndex::from_usize);
    let columns: Vec<_> = groups.map(|group| table.column_of_group(position, group)).collect();
    let parquet_file = &table.parquet_files()[position];
    let count = parquet_file.chunk_count();
    let known =
        driver.registering(|registry, _| registry.hold_listing(table_id, file, &columns))?;
    let step = step_chunks(columns.len());
    for first in (known..count).step_by(step) {
        let specs = chunk_specs(parquet_file, first..count.min(first + step), &columns, first_page);
        let memory = driver.reserve_for_chunks(&specs);
        driver.registering(|registry, core| {
            registry.add_chunks(core, table_id, file, first, specs, memory);
        })?;
    }
    driver.registering(|registry, _| registry.chunks_of(table_id, file))
}

impl Drop for Registered {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let files = std::mem::take(&mut self.files);
        self.driver.post(Message::TableReleased { table: self.id, files });
    }
}

/// Chunks of a file as core knows them, in a table whose column groups hold these columns of the file.
fn chunk_specs(
    file: &ParquetFile,
    chunks: Range<usize>,
    columns: &[Option<usize>],
    first_page: PageId,
) -> Vec<ChunkSpec> {
    let slice = |chunk, column: Option<usize>| {
        let pages = column.map_or(&[][..], |column| file.slice(chunk, column));
        pages.iter().map(|page| PageId(first_page.0 + page.0)).collect()
    };
    let spec = |chunk| ChunkSpec {
        rows: file.chunk_rows(chunk),
        slices: columns.iter().map(|&column| slice(chunk, column)).collect(),
    };
    chunks.map(ChunkIndex::from_usize).map(spec).collect()
}
