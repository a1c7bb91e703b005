//! Joint tables: tables of core whose chunks hold rows of several tables.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::log::RecordedManager;
use coscan_core::{ChunkIndex, ChunkSpec, GroupIndex, Index, TableId};

use super::keys::{FileId, JointKey, TableKey};
use super::{Listing, OpenTable, PendingRemoval, Registry, TableNames};
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::snapshot::Snapshot;

impl JointKey {
    /// The key of a joint table. `chunks[u][t]` are the rows of table `t` in joint chunk `u`.
    pub(crate) fn new(tables: &[Arc<Snapshot>], chunks: &[Vec<Range<u64>>]) -> Self {
        let table = |snapshot: &Arc<Snapshot>| {
            let files = snapshot.files().iter().map(|file| file.id).collect();
            (files, Registry::columns(&snapshot.table))
        };
        let rows = chunks.iter().flatten().map(|rows| (rows.start, rows.end));
        Self { tables: tables.iter().map(table).collect(), rows: rows.collect() }
    }
}

/// The number of column groups of a joint table of these tables.
pub(crate) fn joint_groups(tables: &[Arc<Snapshot>]) -> usize {
    tables.iter().map(|snapshot| snapshot.table.group_count()).sum()
}

impl Registry {
    /// Registers a joint table without chunks, or finds it. Returns its id and the number of chunks that it has. The
    /// caller holds it and its tables from now on.
    pub(crate) fn hold_joint(
        &mut self,
        core: &mut RecordedManager,
        key: JointKey,
        tables: &[Arc<Snapshot>],
    ) -> (TableId, usize) {
        let key = TableKey::Joint(key);
        if let Some(&id) = self.by_name.get(&key) {
            self.tables.get_mut(&id).expect("a name that is known is a table's").holders += 1;
            return (id, core.state().table(id).chunk_count());
        }
        let device = self.device_of(tables.iter().map(|snapshot| &*snapshot.table));
        let id = core.register_table(joint_groups(tables), device);
        self.by_name.insert(key.clone(), id);
        let titled = tables.iter().map(|snapshot| (self.name_of(snapshot.id), &*snapshot.table));
        let names = TableNames::joint(titled);
        self.tables.insert(id, OpenTable::new(key, names));
        (id, 0)
    }

    /// Adds chunks to a joint table, the first of them at this index, unless the table has them.
    pub(crate) fn add_joint_chunks(
        &mut self,
        core: &mut RecordedManager,
        id: TableId,
        first: usize,
        specs: Vec<ChunkSpec>,
        memory: MetadataReservation,
    ) {
        if core.state().table(id).chunk_count() > first {
            return;
        }
        let added = core.append_chunks(id, specs);
        let added = added.expect("joint chunks have rows, and each page of their files once");
        assert_eq!(added.first().map(|chunk| chunk.as_usize()), Some(first), "none was retired");
        let open = self.tables.get_mut(&id).expect("held by the caller");
        open.memory.push(memory);
    }

    /// Lists the files of a joint table, if it has all its chunks. `whole` are the chunks of files that one of its
    /// chunks holds whole, each with that chunk.
    pub(crate) fn list_joint_files(
        &mut self,
        id: TableId,
        tables: &[Arc<Snapshot>],
        whole: &[(FileId, ChunkIndex, ChunkIndex)],
    ) {
        let open = self.tables.get_mut(&id).expect("held by the caller");
        if !open.files.is_empty() {
            return;
        }
        let all = joint_groups(tables);
        let mut first_group = 0;
        for snapshot in tables {
            let table = &snapshot.table;
            for (position, file) in snapshot.files().iter().enumerate() {
                let mut columns = vec![None; all];
                for group in 0..table.group_count() {
                    columns[first_group + group] =
                        table.column_of_group(position, GroupIndex::from_usize(group));
                }
                let chunks = vec![None; table.parquet_files()[position].chunk_count()];
                open.files
                    .insert(file.id, Listing { chunks, columns, holders: 1, memory: Vec::new() });
                self.files.get_mut(&file.id).expect("held by the caller").tables.push(id);
            }
            first_group += table.group_count();
        }
        for &(file, in_file, chunk) in whole {
            let listing = open.files.get_mut(&file).expect("the table has the file");
            listing.chunks[in_file.as_usize()] = Some(chunk);
        }
    }

    /// Releases a joint table by one holder. Its tables are still held. After the last holder it is not found any more,
    /// and it [is to be removed](Self::remove_unused).
    pub(crate) fn release_joint(&mut self, core: &RecordedManager, id: TableId) {
        let open = self.tables.get_mut(&id).expect("held by the caller");
        open.holders -= 1;
        if open.holders > 0 {
            return;
        }
        let open = self.tables.remove(&id).expect("found above");
        self.by_name.remove(&open.key);
        for file in open.files.keys() {
            let file = self.files.get_mut(file).expect("held by its tables");
            file.tables.retain(|&table| table != id);
        }
        let chunks = core.state().table(id).chunks().collect();
        self.leaving.push(PendingRemoval::Chunks { table: id, chunks, _memory: open.memory });
        self.leaving.push(PendingRemoval::Table(id));
    }
}
