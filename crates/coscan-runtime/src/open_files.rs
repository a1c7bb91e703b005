//! Open files: a file that is listed again, from whatever session, is not opened again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_storage::table::{FileOptions, FileToOpen, ParquetFile, TableFile};

use crate::error::{OpenError, ScanError};
use crate::memory::MemoryBudget;
use crate::metadata_cache::MetadataReservation;
use crate::registry::FileKey;

/// All files that were opened, as long as they are in use.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    known: Mutex<BTreeMap<FileKey, OpenFile>>,
}

#[derive(Debug)]
struct OpenFile {
    file: Weak<ParquetFile>,
    /// For its footer and page index.
    _memory: MetadataReservation,
}

impl OpenFiles {
    /// Opens files, in the order given. Of those that are not open yet footers are read, unless they are given; `reserve`
    /// takes memory for them.
    pub(crate) async fn open(
        &self,
        files: Vec<FileToOpen>,
        options: FileOptions,
        reserve: impl Fn(u64) -> Result<MetadataReservation, ScanError>,
    ) -> Result<Vec<Arc<ParquetFile>>, OpenError> {
        self.forget_closed();
        let keys: Vec<_> = files.iter().map(|open| FileKey::new(&open.file, options)).collect();
        let mut open: Vec<_> = keys.iter().map(|key| self.find(key)).collect();
        let missing = files.into_iter().zip(&open).filter(|(_, open)| open.is_none());
        let missing = missing.map(|(file, _)| file).collect();
        let mut opened = ParquetFile::open_all(missing, options).await?.into_iter();
        for (key, open) in keys.into_iter().zip(&mut open) {
            if open.is_none() {
                let file = opened.next().expect("a file is opened or an error");
                *open = Some(self.keep(key, file, &reserve)?);
            }
        }
        Ok(open.into_iter().flatten().collect())
    }

    /// Whether a file is open.
    pub(crate) fn is_open(&self, file: &TableFile, options: FileOptions) -> bool {
        self.find(&FileKey::new(file, options)).is_some()
    }

    fn find(&self, key: &FileKey) -> Option<Arc<ParquetFile>> {
        self.lock().get(key)?.file.upgrade()
    }

    /// Counts the memory of a file that was just opened. If it was opened a second time meanwhile, that one is shared.
    fn keep(
        &self,
        key: FileKey,
        file: Arc<ParquetFile>,
        reserve: &impl Fn(u64) -> Result<MetadataReservation, ScanError>,
    ) -> Result<Arc<ParquetFile>, OpenError> {
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let memory = reserve(file.memory_bytes())?;
        Ok(self.add(key, file, memory))
    }

    /// Counts the memory of a file that the program itself has opened, and shares it, unless it is open here already.
    pub(crate) fn adopt(&self, memory: &Arc<MemoryBudget>, file: &Arc<ParquetFile>) {
        let key = FileKey::new(file.file(), file.options());
        if self.find(&key).is_none() {
            let memory = MetadataReservation::of_held(memory, file.memory_bytes());
            self.add(key, Arc::clone(file), memory);
        }
    }

    /// The file, or the same one if it was added meanwhile.
    fn add(
        &self,
        key: FileKey,
        file: Arc<ParquetFile>,
        memory: MetadataReservation,
    ) -> Arc<ParquetFile> {
        let open = OpenFile { file: Arc::downgrade(&file), _memory: memory };
        let mut known = self.lock();
        let first = known.get(&key).and_then(|open| open.file.upgrade());
        let unused = match first {
            Some(_) => Some(open),
            None => known.insert(key, open),
        };
        drop(known);
        drop(unused); // Not under the lock: that returns memory.
        first.unwrap_or(file)
    }

    /// Returns the memory of files that are no longer in use; false if there are none.
    pub(crate) fn forget_closed(&self) -> bool {
        let closed: Vec<_> = {
            let mut known = self.lock();
            known.extract_if(.., |_, open| open.file.strong_count() == 0).collect()
        };
        // They are dropped after the lock is released: that returns memory.
        !closed.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<FileKey, OpenFile>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
