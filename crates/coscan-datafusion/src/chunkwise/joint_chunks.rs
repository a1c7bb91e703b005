//! Tables that are clustered on one key, and the joint chunks in which they are scanned together [CS11 §5.2].

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use coscan_runtime::core::{ChunkIndex, Index, TableId};
use coscan_runtime::{BufferManager, JointTable, ScanLabel, SharedTable, find_rows};
use coscan_storage::table::{ChunkStatistics, FileVersion, ParquetTable};
use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, make_comparator};
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::error::{DataFusionError, Result};

use crate::error::from_scan;
use crate::planning::nan::may_be_nan;

/// The maximum number of join summaries that a manager keeps, and about the maximum of their bytes.
const SUMMARIES_MAX: usize = 512;
const SUMMARIES_BYTES_MAX: usize = 64 << 20;

/// An estimate of the bytes of a file version, which has a location and a tag.
const VERSION_BYTES: usize = 300;

/// The rows of each table, for each joint chunk.
pub(crate) type JointRanges = Vec<Vec<Range<u64>>>;

/// Tables whose chunks are in the order of one key each. Rows of one value of the key are in one joint chunk.
#[derive(Clone, Debug)]
pub(crate) struct Clustering {
    tables: Vec<ClusteredTable>,
    /// The table of each scan. A table that is joined with itself is read once.
    table_of_scans: Vec<usize>,
    options: SortOptions,
    /// The first key of each joint chunk, except the first joint chunk.
    boundaries: ArrayRef,
}

/// A table whose chunks are in the order of a column without NULLs.
#[derive(Clone, Debug)]
pub(crate) struct ClusteredTable {
    pub(crate) table: SharedTable,
    /// The index of the key column in the table's schema.
    pub(crate) key: usize,
}

impl Clustering {
    /// Clusters the tables of scans by the chunks of the table with the fewest. A joint chunk is one of these chunks,
    /// with the rows of the other tables that have the same keys. Returns `None` if there would be one joint chunk
    /// only, tables have some of their files in common, or rows of a table are deleted.
    pub(crate) fn new(scanned: Vec<ClusteredTable>, options: SortOptions) -> Result<Option<Self>> {
        let mut tables: Vec<ClusteredTable> = Vec::new();
        let mut table_of_scans = Vec::with_capacity(scanned.len());
        for table in scanned {
            let same = tables.iter().position(|other| other.is_same(&table));
            table_of_scans.push(same.unwrap_or(tables.len()));
            if same.is_none() {
                tables.push(table);
            }
        }
        // The rows at which keys begin are found by position in the stored rows. Inserted rows are in no joint chunk.
        if tables.iter().any(|table| table.parquet().is_changed()) {
            return Ok(None);
        }
        let files = tables.iter().flat_map(|table| table.parquet().parquet_files());
        let mut files: Vec<_> = files.map(|file| file.version()).collect();
        let count = files.len();
        files.sort_unstable();
        files.dedup();
        if files.len() < count {
            return Ok(None);
        }
        let coarse = tables.iter().min_by_key(|table| table.parquet().layout().chunk_count());
        let Some(coarse) = coarse else { return Ok(None) };
        let (first, _) = coarse.bounds(options)?;
        let compare = make_comparator(&first, &first, options)?;
        let starts = (1..first.len()).filter(|&chunk| compare(chunk - 1, chunk).is_lt());
        let starts: UInt32Array = starts.map(|chunk| u32::try_from(chunk).ok()).collect();
        if starts.is_empty() || starts.null_count() > 0 {
            return Ok(None);
        }
        let boundaries = take(&first, &starts, None)?;
        Ok(Some(Self { tables, table_of_scans, options, boundaries }))
    }

    /// Whether the rows of the joint chunks are known, so that nothing has to be read to find them.
    pub(crate) fn is_known(&self, manager: &BufferManager) -> bool {
        manager.extension(JoinIndexes::default).of(self).initialized()
    }

    /// The number of joint chunks.
    pub(crate) fn joint_chunks(&self) -> usize {
        self.boundaries.len() + 1
    }

    pub(crate) fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Whether the rows of a chunk of a table were found not to be in the order of the key. The rows at which a key
    /// begins cannot be found in it.
    pub(crate) fn is_unordered(&self, table: usize, chunk: usize) -> bool {
        let ClusteredTable { table, key } = &self.tables[table];
        let file = table.table().chunk_file(ChunkIndex::from_usize(chunk));
        table.table().is_unordered(file, *key, self.options.descending)
    }

    /// The index of the table of each scan.
    pub(crate) fn table_of_scans(&self) -> &[usize] {
        &self.table_of_scans
    }

    /// The chunks of each table that may have rows of each joint chunk, according to statistics.
    pub(crate) fn chunks(&self) -> Result<Vec<Vec<Range<usize>>>> {
        self.tables.iter().map(|table| self.chunks_of(table)).collect()
    }

    fn chunks_of(&self, table: &ClusteredTable) -> Result<Vec<Range<usize>>> {
        let (first, last) = table.bounds(self.options)?;
        let to_first = make_comparator(&first, &self.boundaries, self.options)?;
        let to_last = make_comparator(&last, &self.boundaries, self.options)?;
        let all: Vec<_> = (0..first.len()).collect();
        let chunks = |joint: usize| {
            let start = joint.checked_sub(1).map_or(0, |boundary| {
                all.partition_point(|&chunk| to_last(chunk, boundary).is_lt())
            });
            let end = match joint < self.boundaries.len() {
                true => all.partition_point(|&chunk| to_first(chunk, joint).is_lt()),
                false => all.len(),
            };
            start..end.max(start)
        };
        Ok((0..self.joint_chunks()).map(chunks).collect())
    }

    /// The rows of each joint chunk. `None` if the rows of a table are not in the order of its key where they have to
    /// be; its files then keep that finding. The rows at which keys begin are found once for the same files, as the
    /// join index summary [CS11 §2.6.2].
    pub(crate) async fn rows(
        &self,
        manager: &BufferManager,
        label: &ScanLabel,
    ) -> Result<Option<Arc<JointRanges>>> {
        let summary = manager.extension(JoinIndexes::default).of(self);
        let find = async || {
            let found = self.find_rows(manager, label).await.map_err(Some)?;
            found.map(Arc::new).ok_or(None::<DataFusionError>)
        };
        match summary.get_or_try_init(find).await {
            Ok(rows) => Ok(Some(Arc::clone(rows))),
            Err(error) => error.map_or(Ok(None), Err),
        }
    }

    async fn find_rows(
        &self,
        manager: &BufferManager,
        label: &ScanLabel,
    ) -> Result<Option<JointRanges>> {
        let mut joint = vec![Vec::with_capacity(self.tables.len()); self.joint_chunks()];
        let mut is_clustered = true;
        // Continues after a table was found not to be in order, so that no plan is made in vain for
        // each of the others.
        for ClusteredTable { table, key } in &self.tables {
            let (options, boundaries) = (self.options, &self.boundaries);
            let found = find_rows(manager, table, *key, options, boundaries, label.clone()).await;
            let Some(starts) = found.map_err(from_scan)? else {
                is_clustered = false;
                continue;
            };
            let row_count = table.table().layout().row_count();
            let ends = starts.iter().copied().chain([row_count]);
            let starts = std::iter::once(0).chain(starts.iter().copied());
            joint.iter_mut().zip(starts.zip(ends)).for_each(|(rows, (start, end))| {
                rows.push(start..end);
            });
        }
        Ok(is_clustered.then_some(joint))
    }

    /// Registers the tables as one joint table with these joint chunks.
    pub(crate) fn register(
        &self,
        manager: &BufferManager,
        rows: &JointRanges,
    ) -> Result<JointTable> {
        let tables: Vec<_> = self.tables.iter().map(|table| table.table.clone()).collect();
        let registered = manager.register_joint(&tables, rows.clone());
        registered.map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

impl ClusteredTable {
    fn parquet(&self) -> &ParquetTable {
        self.table.table()
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.table.table(), other.table.table()) && self.key == other.key
    }

    /// The bounds of the key in each chunk, which are those of the first and of the last row.
    fn bounds(&self, options: SortOptions) -> Result<(ArrayRef, ArrayRef)> {
        let statistics = self.parquet().statistics(self.key).map_err(crate::error::from_table)?;
        let ChunkStatistics { min, max, .. } = statistics;
        Ok(if options.descending { (max, min) } else { (min, max) })
    }

    /// The order in which the bounds of chunks follow each other without an overlap. `None` if they do not, if bounds
    /// are unknown, or if a key is NULL. Bounds do not determine the order of rows within a chunk.
    pub(crate) fn order(&self) -> Result<Option<SortOptions>> {
        let data_type = self.parquet().schema().field(self.key).data_type();
        if data_type.is_nested() || may_be_nan(data_type) {
            return Ok(None);
        }
        // A table whose statistics cannot be decoded is read without them.
        let Ok(statistics) = self.parquet().statistics(self.key) else { return Ok(None) };
        let ChunkStatistics { min, max, null_count, .. } = statistics;
        let is_known = min.null_count() + max.null_count() == 0
            && null_count.iter().all(|count| count == Some(0));
        if !is_known {
            return Ok(None);
        }
        for descending in [false, true] {
            let options = SortOptions { descending, nulls_first: false };
            let (first, last) = self.bounds(options)?;
            let compare = make_comparator(&last, &first, options)?;
            if (1..first.len()).all(|chunk| compare(chunk - 1, chunk).is_le()) {
                return Ok(Some(options));
            }
        }
        Ok(None)
    }
}

/// Join index summaries: the rows of joint chunks for clustered files. They are plain data and keep nothing open.
#[derive(Debug, Default)]
struct JoinIndexes {
    /// The least recently used one is first.
    known: Mutex<Vec<(SummaryKey, Arc<Summary>)>>,
}

/// The ranges of a join, which are set once they are found.
type Summary = tokio::sync::OnceCell<Arc<JointRanges>>;

/// For each table its id (which stands for its columns and stores), its files, and the key column; then the order. The
/// boundaries follow from these.
type SummaryKey = (Vec<(TableId, Vec<FileVersion>, usize)>, SortOptions);

impl JoinIndexes {
    fn of(&self, clustering: &Clustering) -> Arc<Summary> {
        let files = |table: &ClusteredTable| {
            let files = table.parquet().parquet_files().iter();
            (table.table.id(), files.map(|file| file.version().clone()).collect(), table.key)
        };
        let key = (clustering.tables.iter().map(files).collect(), clustering.options);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(other, _)| *other == key);
        let summary = found.map(|found| known.remove(found).1).unwrap_or_default();
        known.push((key, Arc::clone(&summary)));
        let mut bytes = known.iter().map(summary_bytes).sum::<usize>();
        while known.len() > SUMMARIES_MAX || bytes > SUMMARIES_BYTES_MAX && known.len() > 1 {
            bytes -= summary_bytes(&known.remove(0));
        }
        summary
    }
}

fn summary_bytes((key, summary): &(SummaryKey, Arc<Summary>)) -> usize {
    let files: usize = key.0.iter().map(|(_, files, _)| files.len()).sum();
    let ranges: usize = summary.get().map_or(0, |chunks| chunks.iter().map(Vec::len).sum());
    files * VERSION_BYTES + ranges * size_of::<Range<u64>>()
}
