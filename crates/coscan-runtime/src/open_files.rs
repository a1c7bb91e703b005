//! Files that somebody has open: whoever lists one again, from whatever session, reads nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_storage::table::{FileOptions, FileToOpen, ParquetFile, TableFile};

use crate::driver::Driver;
use crate::error::OpenError;
use crate::metadata_cache::MetadataReservation;
use crate::registry::FileKey;

/// All files that were opened, as long as anybody has them.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    known: Mutex<BTreeMap<FileKey, OpenFile>>,
}

#[derive(Debug)]
struct OpenFile {
    file: Weak<ParquetFile>,
    /// What its footer and page index take of the budget.
    _memory: MetadataReservation,
}

impl OpenFiles {
    /// Opens files, in the order given. Footers are read of those that nobody has open, unless they are given.
    pub(crate) async fn open(
        &self,
        driver: &Driver,
        files: Vec<FileToOpen>,
        options: FileOptions,
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
                *open = Some(self.keep(driver, key, file)?);
            }
        }
        Ok(open.into_iter().flatten().collect())
    }

    /// Whether anybody has a file open.
    pub(crate) fn is_open(&self, file: &TableFile, options: FileOptions) -> bool {
        self.find(&FileKey::new(file, options)).is_some()
    }

    fn find(&self, key: &FileKey) -> Option<Arc<ParquetFile>> {
        self.lock().get(key)?.file.upgrade()
    }

    /// Counts the memory of a file that was opened just now. Another one may have opened it meanwhile: then that is it.
    fn keep(
        &self,
        driver: &Driver,
        key: FileKey,
        file: Arc<ParquetFile>,
    ) -> Result<Arc<ParquetFile>, OpenError> {
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let memory = MetadataReservation::take(driver, file.memory_bytes())?;
        let open = OpenFile { file: Arc::downgrade(&file), _memory: memory };
        let mut known = self.lock();
        let first = known.get(&key).and_then(|open| open.file.upgrade());
        let unused = match first {
            Some(_) => Some(open),
            None => known.insert(key, open),
        };
        drop(known);
        drop(unused); // Not under the lock: that gives memory back.
        Ok(first.unwrap_or(file))
    }

    /// Gives back the memory of files that nobody has any more.
    pub(crate) fn forget_closed(&self) {
        let closed: Vec<_> = {
            let mut known = self.lock();
            known.extract_if(.., |_, open| open.file.strong_count() == 0).collect()
        };
        drop(closed); // Not under the lock: that gives memory back.
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<FileKey, OpenFile>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
