//! A local disk on which every operation is two steps.

use std::io;
use std::sync::Arc;

use coscan_database::wal::{Disk, DiskFile, DiskLock, LocalDisk};

use super::process::fail;
use super::steps::Steps;

/// A local disk that counts steps, and at one of them is the end of the process.
#[derive(Debug)]
pub(super) struct KillingDisk {
    disk: LocalDisk,
    steps: Arc<Steps>,
}

/// What a path is, but for whether it is a temporary one.
fn what(path: &str) -> &str {
    let directories = [("wal/", "segment"), ("files/", "file"), ("state-", "state")];
    let named = directories.into_iter().find(|(prefix, _)| path.starts_with(prefix));
    match named {
        Some((_, what)) => what,
        None if path.is_empty() => "root",
        None => path,
    }
}

fn between<T>(
    steps: &Steps,
    (operation, what): (&str, &str),
    run: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    steps.reach(&format!("before {operation} {what}"));
    let result = run();
    steps.reach(&format!("after {operation} {what}"));
    result
}

impl KillingDisk {
    pub(super) fn new(disk: LocalDisk, steps: Arc<Steps>) -> Self {
        Self { disk, steps }
    }

    fn between<T>(
        &self,
        operation: &str,
        path: &str,
        run: impl FnOnce(&LocalDisk) -> io::Result<T>,
    ) -> io::Result<T> {
        between(&self.steps, (operation, what(path)), || run(&self.disk))
    }

    fn file(&self, path: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let (steps, what) = (Arc::clone(&self.steps), what(path).to_owned());
        Box::new(KillingFile { file, steps, what })
    }
}

impl Disk for KillingDisk {
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.between("create", path, |disk| disk.create(path))?;
        Ok(self.file(path, file))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(path)
    }

    fn open_writable(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(path, self.disk.open_writable(path)?))
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.between("create directory", path, |disk| disk.create_directory(path))
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.between("sync directory", path, |disk| disk.sync_directory(path))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.between("link", to, |disk| disk.link(from, to))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.between("rename", to, |disk| disk.rename(from, to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let operation = if path.ends_with(".temporary") { "remove temporary" } else { "remove" };
        self.between(operation, path, |disk| disk.remove(path))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }
}

#[derive(Debug)]
struct KillingFile {
    file: Box<dyn DiskFile>,
    steps: Arc<Steps>,
    what: String,
}

impl KillingFile {
    fn between<T>(&self, operation: &str, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        between(&self.steps, (operation, &self.what), run)
    }
}

impl DiskFile for KillingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.between("write", || {
            self.steps.reach_and(&format!("amid write {}", self.what), || {
                if let Err(error) = self.file.write_at(&bytes[..bytes.len() / 2], offset) {
                    fail(format_args!("half of a write failed: {error}"));
                }
            });
            self.file.write_at(bytes, offset)
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        self.between("preallocate", || self.file.preallocate(length))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.between("truncate", || self.file.truncate(length))
    }

    fn sync(&self) -> io::Result<()> {
        self.between("sync", || {
            // A sync in memory takes no time, in which others would submit their commits.
            std::thread::yield_now();
            self.file.sync()
        })
    }
}
