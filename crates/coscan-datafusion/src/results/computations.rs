//! What a query computes of each chunk that it needs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use coscan_runtime::core::{ChunkIndex, Index};
use coscan_storage::table::{FileOptions, FileVersion, ParquetTable};
use datafusion::common::ScalarValue;
use object_store::ObjectStore;

use super::fragment::{Fragment, QueryFragment};
use super::proven::{Proven, proven_conjuncts};

/// The most fragments of a query. Chunks of further ones are not shared.
const FRAGMENTS_MAX: usize = 64;

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
}

/// The fragment of each chunk that a query needs.
#[derive(Debug)]
pub(crate) struct Computations {
    pub(super) fragments: Vec<Arc<Fragment>>,
    /// For chunks whose states can be shared: the fragment, as an index, and the rows that it reads.
    of_chunks: HashMap<ChunkIndex, (usize, ChunkKey)>,
    chunks: HashMap<(usize, ChunkKey), ChunkIndex>,
}

impl Computations {
    /// What a query computes of these chunks of a table.
    pub(crate) fn new(
        table: &ParquetTable,
        fragment: &QueryFragment,
        chunks: &[ChunkIndex],
    ) -> Self {
        let proven = proven_conjuncts(table, fragment.conjuncts());
        let mut of_proven: HashMap<Proven, (usize, Vec<usize>)> = HashMap::new();
        let mut fragments = Vec::new();
        let mut files: HashMap<(usize, usize), Option<Arc<FileColumns>>> = HashMap::new();
        let mut keys = HashMap::with_capacity(chunks.len());
        for &chunk in chunks {
            let met = proven[chunk.as_usize()];
            if !of_proven.contains_key(&met) && fragments.len() < FRAGMENTS_MAX {
                let (without, columns) = fragment.without(|conjunct| met.contains(conjunct));
                of_proven.insert(met, (fragments.len(), columns));
                fragments.push(Arc::new(without));
            }
            let Some((index, columns)) = of_proven.get(&met) else { continue };
            let (file, chunk_of_file) = table.place_of(chunk);
            let file =
                files.entry((*index, file)).or_insert_with(|| file_columns(table, file, columns));
            if let Some(file) = file
                && is_unchanged(table, chunk, columns)
            {
                let key = ChunkKey { file: Arc::clone(file), chunk: chunk_of_file };
                keys.insert(chunk, (*index, key));
            }
        }
        let chunks = keys.iter().map(|(&chunk, place)| (place.clone(), chunk)).collect();
        Self { fragments, of_chunks: keys, chunks }
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

/// Whether a snapshot has a chunk as its file does, as far as these columns go.
fn is_unchanged(table: &ParquetTable, chunk: ChunkIndex, columns: &[usize]) -> bool {
    if !table.is_changed() {
        return true;
    }
    let rows = table.layout().rows(chunk);
    table.visible_rows(rows.clone()) == rows.end - rows.start
        && !columns.iter().any(|&column| table.chunk_has_new_values(chunk, column))
}
