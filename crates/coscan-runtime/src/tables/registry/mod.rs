//! Files and tables in core: their ids, their holders, and their identity.
//!
//! A file is one version of it, opened in one way: all tables that list it share its pages and decoded columns. A table
//! of core is scheduled as one: all snapshots of one name, or all tables of the same files. Files and tables are
//! removed when their last holder is gone and nothing of them is in use.

mod joint;
pub(super) mod keys;
mod leaving;
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::log::RecordedManager;
use coscan_core::{ChunkIndex, ChunkSpec, DeviceId, GroupIndex, Index, PageId, PageIndex, TableId};
use coscan_storage::stores::Device;
use coscan_storage::table::{PageLayout, ParquetFile, ParquetTable, TableFile};

pub(crate) use joint::joint_groups;
use keys::TableKey;
pub(crate) use keys::{FileId, FileKey, JointKey};
use leaving::PendingRemoval;
pub(crate) use names::TableNames;

use crate::tables::metadata_reservation::MetadataReservation;

/// The number of slices (chunks times column groups) or pages that are added or removed while the lock is held once.
pub(crate) const STEP_SLICES: usize = 4 << 10;

/// The number of chunks of `groups` column groups that are added while the lock is held once.
pub(crate) fn step_chunks(groups: usize) -> usize {
    (STEP_SLICES / groups.max(1)).max(1)
}

#[derive(Debug)]
struct RegisteredFile {
    key: FileKey,
    /// The file. As long as it is held, no other store has the address in the key.
    file: TableFile,
    first_page: PageId,
    page_count: u32,
    layout: PageLayout,
    /// The tables that list it.
    tables: Vec<TableId>,
    holders: usize,
    /// Memory that core uses for its pages.
    memory: MetadataReservation,
}

#[derive(Debug)]
struct OpenTable {
    key: TableKey,
    /// The names of the table and its columns, for reports.
    names: TableNames,
    files: BTreeMap<FileId, Listing>,
    holders: usize,
    /// Memory that core uses for the chunks of a joint table.
    memory: Vec<MetadataReservation>,
}

/// A file in a table.
#[derive(Debug)]
struct Listing {
    /// The chunks of core for its chunks. In a joint table, those that hold them whole.
    chunks: Vec<Option<ChunkIndex>>,
    /// The column of the file in each column group; in a row layout the first column stands for all.
    columns: Vec<Option<usize>>,
    /// The number of snapshots that list it.
    holders: usize,
    /// Memory that core uses for its chunks.
    memory: Vec<MetadataReservation>,
}

/// All open files and tables.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    files: BTreeMap<FileId, RegisteredFile>,
    by_key: BTreeMap<FileKey, FileId>,
    tables: BTreeMap<TableId, OpenTable>,
    by_name: BTreeMap<TableKey, TableId>,
    /// The devices. The key `None` is that of tables without files.
    devices: BTreeMap<Option<Device>, DeviceId>,
    next_file: u64,
    leaving: Vec<PendingRemoval>,
}

impl OpenTable {
    fn new(key: TableKey, names: TableNames) -> Self {
        Self { key, names, files: BTreeMap::new(), holders: 1, memory: Vec::new() }
    }
}

impl Registry {
    /// The columns of a table, on which the pages of a chunk depend: columns that are constant in a file have none.
    pub(crate) fn columns(table: &ParquetTable) -> Arc<str> {
        let fields = table.schema().fields().iter();
        let is_constant =
            |name: &str| table.constants().iter().any(|constant| constant.field.name() == name);
        let columns = fields.map(|field| {
            let place = if is_constant(field.name()) { " of the file" } else { "" };
            format!("{:?} {}{place}", field.name(), field.data_type())
        });
        columns.collect::<Vec<_>>().join(", ").into()
    }

    /// Finds a file. If it is registered, the caller holds it from now on.
    pub(crate) fn hold_known_file(&mut self, file: &ParquetFile) -> Option<(FileId, PageId)> {
        let key = FileKey::new(file.file(), file.options());
        let id = *self.by_key.get(&key)?;
        let open = self.files.get_mut(&id).expect("a version that is known is open");
        open.holders += 1;
        Some((id, open.first_page))
    }

    /// Whether a file is registered.
    pub(crate) fn knows(&self, file: FileId) -> bool {
        self.files.contains_key(&file)
    }

    /// Registers a file whose pages have these sizes, or finds it. The caller holds it from now on.
    pub(crate) fn acquire_file(
        &mut self,
        core: &mut RecordedManager,
        file: &ParquetFile,
        page_bytes: Vec<u64>,
        memory: MetadataReservation,
    ) -> (FileId, PageId) {
        if let Some(known) = self.hold_known_file(file) {
            return known;
        }
        let key = FileKey::new(file.file(), file.options());
        let first_page = core.add_pages(page_bytes);
        let id = FileId(self.next_file);
        self.next_file += 1;
        self.by_key.insert(key.clone(), id);
        let open = RegisteredFile {
            key,
            file: file.file().clone(),
            first_page,
            page_count: PageIndex::from_usize(file.page_count()).0,
            layout: file.options().layout,
            tables: Vec::new(),
            holders: 1,
            memory,
        };
        self.files.insert(id, open);
        (id, first_page)
    }

    /// Registers a table, or finds it: by its name if it has one, else by its files. The caller holds it from now on.
    pub(crate) fn hold_table(
        &mut self,
        core: &mut RecordedManager,
        table: &ParquetTable,
        name: Option<&str>,
        files: Vec<FileId>,
        columns: &Arc<str>,
    ) -> TableId {
        let columns = Arc::clone(columns);
        let key = match name {
            Some(name) => TableKey::Named(name.to_owned(), columns, table.group_count()),
            None => TableKey::Listed(files, columns),
        };
        if let Some(&id) = self.by_name.get(&key) {
            self.tables.get_mut(&id).expect("a name that is known is a table's").holders += 1;
            return id;
        }
        let device = self.device_of([table]);
        let id = core.register_table(table.group_count(), device);
        self.by_name.insert(key.clone(), id);
        let names = TableNames::of(table, name);
        self.tables.insert(id, OpenTable::new(key, names));
        id
    }

    /// The device of some tables: that of their first file.
    fn device_of<'a>(&mut self, tables: impl IntoIterator<Item = &'a ParquetTable>) -> DeviceId {
        let first = tables.into_iter().flat_map(|table| table.parquet_files()).next();
        let device = first.map(|file| file.device().clone());
        let next_device = DeviceId::from_usize(self.devices.len());
        *self.devices.entry(device).or_insert(next_device)
    }

    /// Lists a file in a table. Returns how many of its chunks core has. The caller [adds](Self::add_chunks) the
    /// others, and holds them from now on.
    pub(crate) fn hold_listing(
        &mut self,
        id: TableId,
        file: FileId,
        columns: &[Option<usize>],
    ) -> usize {
        let open = self.tables.get_mut(&id).expect("held by the caller");
        let listing = open.files.entry(file).or_insert_with(|| {
            self.files.get_mut(&file).expect("held by the caller").tables.push(id);
            Listing {
                chunks: Vec::new(),
                columns: columns.to_vec(),
                holders: 0,
                memory: Vec::new(),
            }
        });
        listing.holders += 1;
        listing.chunks.len()
    }

    /// Adds chunks of a file to a table, the first of them at this position in the file, unless others who hold it have
    /// added them meanwhile.
    pub(crate) fn add_chunks(
        &mut self,
        core: &mut RecordedManager,
        id: TableId,
        file: FileId,
        first: usize,
        specs: Vec<ChunkSpec>,
        memory: MetadataReservation,
    ) {
        let open = self.tables.get_mut(&id).expect("held by the caller");
        let listing = open.files.get_mut(&file).expect("held by the caller");
        if listing.chunks.len() == first {
            let chunks = core
                .append_chunks(id, specs)
                .expect("the chunks of a file list its pages, a slice for each column group");
            listing.chunks.extend(chunks.into_iter().map(Some));
            listing.memory.push(memory);
        }
    }

    /// The chunks of core for the chunks of a file in a table.
    pub(crate) fn chunks_of(&self, id: TableId, file: FileId) -> Vec<ChunkIndex> {
        self.tables[&id].files[&file].chunks.iter().flatten().copied().collect()
    }

    /// Releases a file of a snapshot. What is no longer held [is to be removed](Self::remove_unused). The caller drops
    /// its store.
    pub(crate) fn release_file(&mut self, table: TableId, file: FileId) -> Option<TableFile> {
        let open = self.files.get_mut(&file).expect("held by the caller");
        open.holders -= 1;
        let listed = self.tables.get_mut(&table).expect("held by the caller");
        let listing = listed.files.get_mut(&file).expect("held by the caller");
        listing.holders -= 1;
        if listing.holders == 0 {
            let listing = listed.files.remove(&file).expect("found above");
            let chunks = listing.chunks.into_iter().flatten().collect();
            self.leaving.push(PendingRemoval::Chunks { table, chunks, _memory: listing.memory });
            open.tables.retain(|&other| other != table);
        }
        if open.holders > 0 {
            return None;
        }
        let open = self.files.remove(&file).expect("found above");
        let pages = open.first_page..PageId(open.first_page.0 + open.page_count);
        self.leaving.push(PendingRemoval::Pages { pages, _memory: open.memory });
        self.by_key.remove(&open.key);
        Some(open.file)
    }

    /// Releases a snapshot with all its files. What is no longer held [is to be removed](Self::remove_unused).
    pub(crate) fn release_table(&mut self, table: TableId) {
        let open = self.tables.get_mut(&table).expect("held by the caller");
        open.holders -= 1;
        if open.holders == 0 {
            self.by_name.remove(&open.key);
            self.tables.remove(&table);
            self.leaving.push(PendingRemoval::Table(table));
        }
    }

    /// The tables that list a file, each with its chunk for a chunk of the file. A joint table is included only if one
    /// of its chunks holds all of it.
    pub(crate) fn listings(
        &self,
        file: FileId,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = (TableId, ChunkIndex)> + '_ {
        let tables = self.files.get(&file).into_iter().flat_map(|open| &open.tables);
        tables.filter_map(move |&table| {
            // While a file is registered, some of its chunks are still missing.
            let chunk = *self.tables[&table].files[&file].chunks.get(chunk.as_usize())?;
            let chunk = chunk?;
            Some((table, chunk))
        })
    }

    /// The column group of a table that holds a column of a file that it lists.
    pub(crate) fn group(&self, table: TableId, file: FileId, column: usize) -> Option<GroupIndex> {
        let column = match self.files.get(&file)?.layout {
            PageLayout::Column => column,
            PageLayout::Row => 0,
        };
        let columns = &self.tables.get(&table)?.files.get(&file)?.columns;
        columns
            .iter()
            .position(|&file_column| file_column == Some(column))
            .map(GroupIndex::from_usize)
    }
}
