//! Tables that are clustered alike, to be scanned together, so that the rows of one range of keys come together [CS11
//! §5.2].

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, TableId};

use crate::driver::{Driver, Message};
use crate::error::JointTableError;
use crate::sync::destructor::InDestructor;
use crate::tables::joint_layout::JointLayout;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::registry::{JointKey, joint_groups, step_chunks};
use crate::tables::snapshot::Snapshot;
use crate::tables::table::SharedTable;

/// Tables that are scanned together, and the rows of each that belong together. Cheap to clone.
///
/// The scheduler sees a joint table as one table, whose column groups are those of all its tables. A *joint chunk*
/// holds a range of rows of each table. Its bounds do not depend on the tables' own chunks. Pages are those of the
/// tables: all scans of them share them. Two joint tables of the same files and ranges are the same to the scheduler.
#[derive(Clone, Debug)]
pub struct JointTable {
    open: Arc<OpenJoint>,
}

#[derive(Debug)]
struct OpenJoint {
    driver: Arc<Driver>,
    id: TableId,
    tables: Vec<SharedTable>,
    layout: Arc<JointLayout>,
    /// The memory of the layout.
    _memory: MetadataReservation,
}

impl JointTable {
    pub(crate) fn register(
        driver: &Arc<Driver>,
        tables: &[SharedTable],
        chunks: &[Vec<Range<u64>>],
    ) -> Result<Self, JointTableError> {
        check(tables, chunks)?;
        let snapshots: Vec<_> = tables.iter().map(|table| Arc::clone(table.snapshot())).collect();
        let layout = Arc::new(JointLayout::new(&snapshots, chunks));
        // On a manager that has panicked no scan starts, so any id will do.
        let id = place(driver, &snapshots, chunks, &layout).unwrap_or(TableId(0));
        let open = OpenJoint {
            _memory: MetadataReservation::of_held(driver.memory(), layout.memory_bytes()),
            driver: Arc::clone(driver),
            id,
            tables: tables.to_vec(),
            layout,
        };
        Ok(Self { open: Arc::new(open) })
    }

    /// The tables, in the order in which they were given.
    #[must_use]
    pub fn tables(&self) -> &[SharedTable] {
        &self.open.tables
    }

    /// The number of joint chunks.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.open.layout.joint_chunks()
    }

    /// Its id with the scheduler.
    #[must_use]
    pub fn id(&self) -> TableId {
        self.open.id
    }

    /// The stored bytes of these columns of the largest joint chunk, which the pool must be able to hold. Columns are
    /// indexes into the fields of each table's schema.
    ///
    /// # Panics
    /// If there is no such table or column.
    #[must_use]
    pub fn bytes_max(&self, columns: &[Vec<usize>]) -> u64 {
        let groups = |(table, columns): (&SharedTable, &Vec<usize>)| -> Vec<GroupIndex> {
            columns.iter().map(|&column| table.table().group_of_column(column)).collect()
        };
        assert_eq!(columns.len(), self.tables().len(), "columns are given for every table");
        let groups: Vec<_> = self.tables().iter().zip(columns).map(groups).collect();
        self.open.layout.bytes_max(&self.snapshots(), &groups)
    }

    pub(crate) fn layout(&self) -> &Arc<JointLayout> {
        &self.open.layout
    }

    fn snapshots(&self) -> Vec<Arc<Snapshot>> {
        self.tables().iter().map(|table| Arc::clone(table.snapshot())).collect()
    }
}

/// Registers a joint table step by step, so that the lock is not held for all its chunks; `None` if the manager has
/// panicked.
///
/// Others may register the same joint table meanwhile. Steps that one of them has made are made for all.
fn place(
    driver: &Arc<Driver>,
    tables: &[Arc<Snapshot>],
    chunks: &[Vec<Range<u64>>],
    layout: &JointLayout,
) -> Option<TableId> {
    let key = JointKey::new(tables, chunks);
    let (id, known) =
        driver.registering(|registry, core| registry.hold_joint(core, key, tables))?;
    let step = step_chunks(joint_groups(tables));
    for first in (0..layout.chunk_count()).step_by(step) {
        let end = layout.chunk_count().min(first + step);
        if end > known {
            let specs = layout.specs(tables, first..end);
            let memory = driver.reserve_for_chunks(&specs);
            driver.registering(|registry, core| {
                registry.add_joint_chunks(core, id, first, specs, memory);
            })?;
        }
    }
    let whole: Vec<_> = layout.whole_chunks(tables).collect();
    driver.registering(|registry, _| registry.list_joint_files(id, tables, &whole))?;
    Some(id)
}

/// Checks that the ranges of each table ascend within it, and that no file is listed twice, since a chunk lists a page
/// once.
fn check(tables: &[SharedTable], chunks: &[Vec<Range<u64>>]) -> Result<(), JointTableError> {
    if tables.is_empty() {
        return Err(JointTableError::NoTables);
    }
    for (chunk, ranges) in chunks.iter().enumerate() {
        if ranges.len() != tables.len() {
            let (ranges, tables) = (ranges.len(), tables.len());
            return Err(JointTableError::RangeCount { chunk, ranges, tables });
        }
    }
    for (table, shared) in tables.iter().enumerate() {
        let (mut before, rows) = (0, shared.table().layout().row_count());
        for (chunk, ranges) in chunks.iter().enumerate() {
            let Range { start, end } = ranges[table];
            if start < before || end < start || end > rows {
                return Err(JointTableError::Rows { chunk, table, start, end, before, rows });
            }
            before = end;
        }
    }
    let listed = tables.iter().flat_map(|table| {
        let files = table.snapshot().files().iter().map(|file| file.id);
        files.zip(table.table().parquet_files())
    });
    let mut files: Vec<_> = listed.collect();
    files.sort_by_key(|(id, _)| *id);
    match files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(JointTableError::FileTwice { file: pair[0].1.file().name() }),
        None => Ok(()),
    }
}

impl Drop for OpenJoint {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        // This precedes the drop of its tables, so that nothing lists their pages any more by then.
        self.driver.post(Message::JointTableReleased(self.id));
    }
}
