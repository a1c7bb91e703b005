//! What a query computes of each chunk that it needs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{BufferManager, MetadataReservation};
use coscan_storage::table::{ChunkVersion, FileOptions, FileVersion, ParquetTable};
use datafusion::common::ScalarValue;
use object_store::ObjectStore;

use super::fragment::{Fragment, QueryFragment};
use super::proven::{Proven, proven_conjuncts};

/// The most fragments of a query. Chunks of further ones are not shared.
const FRAGMENTS_OF_QUERY_MAX: usize = 64;

/// The least rows of a chunk whose state is shared, as a part of the rows that chunks have at least unless their files are small.
const ROWS_MIN_DIVISOR: u64 = 8;

/// The memory of an entry for a chunk, and for a file, in bytes.
const ENTRY_BYTES: usize = 160;
const FILE_BYTES: usize = 512;

/// The rows that a fragment reads: a version of a file, cut into chunks, and the place of each column of the fragment in it.
/// Its chunks are numbered within the file.
#[derive(Clone, Debug)]
pub(super) struct FileColumns {
    version: FileVersion,
    /// Stores of the same address may be different ones.
    store: Arc<dyn ObjectStore>,
    options: FileOptions,
    columns: Vec<ColumnSource>,
    /// The hash of all but the store.
    hash: u64,
}

/// The source of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ColumnSource {
    /// A column of the file.
    Stored(usize),
    /// The value of all rows.
    Repeated(ScalarValue),
}

impl PartialEq for FileColumns {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && Arc::ptr_eq(&self.store, &other.store)
            && self.options == other.options
            && self.columns == other.columns
            && self.version == other.version
    }
}

impl Eq for FileColumns {}

impl Hash for FileColumns {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// A chunk as a fragment reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChunkKey {
    pub(super) file: Arc<FileColumns>,
    pub(super) chunk: ChunkIndex,
    /// The changes of its rows, if a fragment of these columns sees any.
    changes: Option<ChunkVersion>,
}

impl ChunkKey {
    /// The memory in bytes that the version of the changes takes.
    pub(super) fn changes_bytes(&self) -> usize {
        self.changes.as_ref().map_or(0, ChunkVersion::memory_bytes)
    }
}

/// The fragment of each chunk that a query needs.
#[derive(Debug)]
pub(crate) struct Computations {
    pub(super) fragments: Vec<Arc<Fragment>>,
    /// For chunks whose states can be shared: the fragment, as an index, and the rows that it reads.
    of_chunks: HashMap<ChunkIndex, (usize, ChunkKey)>,
    chunks: HashMap<(usize, ChunkKey), ChunkIndex>,
    _memory: MetadataReservation,
}

impl Computations {
    /// What a query computes of these chunks of a table. If it does not rely on statistics, no condition is proven.
    pub(crate) fn new(
        manager: &BufferManager,
        table: &ParquetTable,
        fragment: &QueryFragment,
        chunks: &[ChunkIndex],
        relies_on_statistics: bool,
    ) -> Self {
        let proven = match relies_on_statistics {
            true => proven_conjuncts(table, fragment.conjuncts(), chunks),
            false => vec![Proven::default(); chunks.len()],
        };
        let mut places = Places::new(table, fragment);
        let place = |(&chunk, proven)| Some((chunk, places.place(chunk, proven)?));
        let of_chunks: HashMap<_, _> = chunks.iter().zip(proven).filter_map(place).collect();
        let chunks: HashMap<_, _> =
            of_chunks.iter().map(|(&chunk, place)| (place.clone(), chunk)).collect();
        let versions: usize = of_chunks.values().map(|(_, key)| key.changes_bytes()).sum();
        let bytes = of_chunks.len() * ENTRY_BYTES + places.files.len() * FILE_BYTES + versions;
        let memory = manager.count_metadata(bytes as u64);
        Self { fragments: places.fragments, of_chunks, chunks, _memory: memory }
    }

    /// The fragment of a chunk, as an index, and the rows that it reads, if its state can be shared.
    pub(super) fn of_chunk(&self, chunk: ChunkIndex) -> Option<(usize, &ChunkKey)> {
        self.of_chunks.get(&chunk).map(|(fragment, key)| (*fragment, key))
    }

    /// The chunk of which a fragment reads these rows.
    pub(super) fn chunk(&self, fragment: usize, key: ChunkKey) -> Option<ChunkIndex> {
        self.chunks.get(&(fragment, key)).copied()
    }

    /// The fragment that most chunks have.
    pub(super) fn most_common(&self) -> Option<usize> {
        let mut counts = vec![0; self.fragments.len()];
        self.of_chunks.values().for_each(|(fragment, _)| counts[*fragment] += 1);
        (0..counts.len()).max_by_key(|&fragment| counts[fragment])
    }
}

/// Finds the fragments of chunks.
struct Places<'a> {
    table: &'a ParquetTable,
    fragment: &'a QueryFragment,
    /// A chunk with fewer rows costs more apart than its state saves.
    rows_min: u64,
    fragments: Vec<Arc<Fragment>>,
    /// The fragment without the conjuncts that are proven, and its columns; `None` if there are too many.
    of_proven: HashMap<Proven, Option<(usize, Vec<usize>)>>,
    files: HashMap<(usize, usize), Option<Arc<FileColumns>>>,
}

impl<'a> Places<'a> {
    fn new(table: &'a ParquetTable, fragment: &'a QueryFragment) -> Self {
        let options = table.parquet_files().first().map(|file| file.options()).unwrap_or_default();
        let rows_min = options.chunk_rows / ROWS_MIN_DIVISOR;
        let (fragments, of_proven, files) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { table, fragment, rows_min, fragments, of_proven, files }
    }

    fn place(&mut self, chunk: ChunkIndex, proven: Proven) -> Option<(usize, ChunkKey)> {
        let Self { table, fragment, fragments, of_proven, files, .. } = self;
        let rows = table.layout().rows(chunk);
        if table.visible_rows(rows) < self.rows_min {
            return None;
        }
        let of_proven = of_proven.entry(proven).or_insert_with(|| {
            let (without, columns) = fragment.without(|conjunct| proven.contains(conjunct));
            // Others may be proven and leave the same.
            let known = fragments.iter().position(|known| **known == without);
            let index = known.unwrap_or(fragments.len());
            if known.is_none() && index < FRAGMENTS_OF_QUERY_MAX {
                fragments.push(Arc::new(without));
            }
            (index < fragments.len()).then_some((index, columns))
        });
        let (index, columns) = of_proven.as_ref()?;
        let (file, chunk_of_file) = table.place_of(chunk);
        let file_columns =
            files.entry((*index, file)).or_insert_with(|| file_columns(table, file, columns));
        let file = Arc::clone(file_columns.as_ref()?);
        let changes = changes(table, chunk, columns);
        Some((*index, ChunkKey { file, chunk: chunk_of_file, changes }))
    }
}

/// The columns of a file, or `None` for one that stands for inserted rows.
fn file_columns(table: &ParquetTable, file: usize, columns: &[usize]) -> Option<Arc<FileColumns>> {
    if table.inserted_file() == Some(file) {
        return None;
    }
    let source = |&column: &usize| match table.file_column(file, column) {
        Some(stored) => Some(ColumnSource::Stored(stored)),
        None => {
            let value = table.repeated_value(file, column);
            ScalarValue::try_from_array(&value, 0).ok().map(ColumnSource::Repeated)
        }
    };
    let columns = columns.iter().map(source).collect::<Option<Vec<_>>>()?;
    let file = &table.parquet_files()[file];
    let (version, options) = (file.version().clone(), file.options());
    let mut hasher = DefaultHasher::new();
    (&version, options, &columns).hash(&mut hasher);
    let (store, hash) = (Arc::clone(&file.file().store), hasher.finish());
    Some(Arc::new(FileColumns { version, store, options, columns, hash }))
}

/// The changes of a chunk in a snapshot, or `None` if it is as its file has it, as far as these columns go.
fn changes(table: &ParquetTable, chunk: ChunkIndex, columns: &[usize]) -> Option<ChunkVersion> {
    if !table.is_changed() {
        return None;
    }
    let rows = table.layout().rows(chunk);
    let is_changed = table.visible_rows(rows.clone()) < rows.end - rows.start
        || columns.iter().any(|&column| table.chunk_has_new_values(chunk, column));
    if is_changed { table.chunk_version(chunk) } else { None }
}
