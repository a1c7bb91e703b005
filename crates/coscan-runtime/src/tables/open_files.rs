//! Open files: a file that is listed again, by whichever session, is not opened again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_storage::table::{FileOptions, FileToOpen, ParquetFile, TableFile};
use futures::future::{BoxFuture, WeakShared};
use futures::{FutureExt, StreamExt, stream};

use crate::error::OpenError;
use crate::memory::MemoryBudget;
use crate::tables::footer_reader::FooterReader;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::registry::FileKey;

/// The most footers that are read at a time for one call: the number that object stores answer without slowing down.
const FOOTERS_AT_A_TIME: usize = 32;

/// All files that were opened, as long as they are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFiles {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<FileKey, OpenFile>,
    /// Files that are being opened, for other callers that ask for them meanwhile.
    opening: BTreeMap<FileKey, WeakShared<Opening>>,
    /// Files that were opened in vain, because another one could not be. They stay until the next attempt, or until
    /// memory is short.
    unclaimed: BTreeMap<FileKey, Arc<ParquetFile>>,
}

type Opening = BoxFuture<'static, Result<Arc<ParquetFile>, OpenError>>;

#[derive(Debug)]
struct OpenFile {
    file: Weak<ParquetFile>,
    /// The memory of its footer and page index, and of the values made from them.
    _memory: Arc<Mutex<Vec<MetadataReservation>>>,
}

impl OpenFiles {
    /// Opens files, in the order given. Footers are read for files that are not open yet, unless they are given. Each
    /// is read once, however many callers ask for it meanwhile.
    pub(crate) async fn open(
        &self,
        files: Vec<FileToOpen>,
        options: FileOptions,
        reader: &Arc<FooterReader>,
    ) -> Result<Vec<Arc<ParquetFile>>, OpenError> {
        self.remove_closed();
        let keys: Vec<_> = files.iter().map(|open| FileKey::new(&open.file, options)).collect();
        let opening = files.into_iter().zip(keys.clone()).map(|(file, key)| {
            let (open_files, reader) = (self.clone(), Arc::clone(reader));
            async move { open_files.open_one(key, file, options, reader).await }
        });
        let mut opening = stream::iter(opening).buffered(FOOTERS_AT_A_TIME);
        let mut opened = Vec::new();
        while let Some(file) = opening.next().await {
            match file {
                Ok(file) => opened.push(file),
                Err(error) => {
                    self.lock().unclaimed.extend(keys.iter().cloned().zip(opened));
                    return Err(error);
                }
            }
        }
        let mut state = self.lock();
        let claimed: Vec<_> = keys.iter().map(|key| state.unclaimed.remove(key)).collect();
        drop(state);
        drop(claimed);
        Ok(opened)
    }

    async fn open_one(
        &self,
        key: FileKey,
        file: FileToOpen,
        options: FileOptions,
        reader: Arc<FooterReader>,
    ) -> Result<Arc<ParquetFile>, OpenError> {
        // These outlive the lock, since the last reference to a read must not be dropped under it.
        let mut others = Vec::new();
        let opening = {
            let mut state = self.lock();
            if let Some(open) = state.known.get(&key).and_then(|open| open.file.upgrade()) {
                return Ok(open);
            }
            match state.opening.get(&key).and_then(WeakShared::upgrade) {
                Some(opening) => opening,
                None => {
                    state.opening.retain(|_, opening| {
                        let read = opening.upgrade();
                        let is_read = read.is_some();
                        others.extend(read);
                        is_read
                    });
                    let (open_files, known) = (self.clone(), key.clone());
                    let opening = async move {
                        let metadata_reader = Arc::clone(&reader) as _;
                        let file = ParquetFile::open_with(file, options, metadata_reader).await;
                        let file = file.map_err(OpenError::from)?;
                        let memory = reader.reserve_metadata(file.memory_bytes())?;
                        Ok(open_files.add(reader.memory(), known, file, memory))
                    };
                    let opening = opening.boxed().shared();
                    let weak = opening.downgrade().expect("it has not ended");
                    state.opening.insert(key.clone(), weak);
                    opening
                }
            }
        };
        drop(others);
        let result = opening.clone().await;
        let mut state = self.lock();
        let current = state.opening.get(&key).and_then(WeakShared::upgrade);
        if current.as_ref().is_some_and(|current| current.ptr_eq(&opening)) {
            state.opening.remove(&key);
        }
        drop(state);
        result
    }

    /// Whether a file is open.
    pub(crate) fn is_open(&self, file: &TableFile, options: FileOptions) -> bool {
        self.find(&FileKey::new(file, options)).is_some()
    }

    fn find(&self, key: &FileKey) -> Option<Arc<ParquetFile>> {
        self.lock().known.get(key)?.file.upgrade()
    }

    /// Counts the memory of a file that the program itself has opened, and shares it, unless it is open here already.
    pub(crate) fn adopt(&self, memory: &Arc<MemoryBudget>, file: &Arc<ParquetFile>) {
        let key = FileKey::new(file.file(), file.options());
        if self.find(&key).is_none() {
            let held = MetadataReservation::of_held(memory, file.memory_bytes());
            self.add(memory, key, Arc::clone(file), held);
        }
    }

    /// Adds a file, and returns it, or the same one if it was added meanwhile.
    fn add(
        &self,
        budget: &Arc<MemoryBudget>,
        key: FileKey,
        file: Arc<ParquetFile>,
        memory: MetadataReservation,
    ) -> Arc<ParquetFile> {
        let memory = Arc::new(Mutex::new(vec![memory]));
        let (budget, growing) = (Arc::clone(budget), Arc::downgrade(&memory));
        file.on_growth(move |bytes| {
            if let Some(memory) = growing.upgrade() {
                let more = MetadataReservation::of_held(&budget, bytes);
                memory.lock().unwrap_or_else(PoisonError::into_inner).push(more);
            }
        });
        let open = OpenFile { file: Arc::downgrade(&file), _memory: memory };
        let mut state = self.lock();
        let first = state.known.get(&key).and_then(|open| open.file.upgrade());
        let unused = match first {
            Some(_) => Some(open),
            None => state.known.insert(key, open),
        };
        drop(state);
        drop(unused); // Not under the lock: that returns memory.
        first.unwrap_or(file)
    }

    /// Returns the memory of files that are no longer in use. Returns false if there are none.
    pub(crate) fn forget_closed(&self) -> bool {
        let unclaimed = std::mem::take(&mut self.lock().unclaimed);
        drop(unclaimed); // Not under the lock, like all files.
        self.remove_closed()
    }

    fn remove_closed(&self) -> bool {
        let closed: Vec<_> = {
            let mut state = self.lock();
            state.known.extract_if(.., |_, open| open.file.strong_count() == 0).collect()
        };
        // They are dropped after the lock is released, since that returns memory.
        !closed.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
