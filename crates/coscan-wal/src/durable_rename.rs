//! Publishing: a file gets its name when all of it is durable.

use std::io;

use crate::disk::{Disk, DiskFile, parent};

/// The end of the names of files that are not published yet.
const TEMPORARY: &str = ".temporary";

/// A file that is written under a temporary name, until [`publish`](Self::publish) gives it its own. A crash leaves either
/// the whole file with its name or, at most, a temporary one, which [`remove_temporaries`] removes.
///
/// A file that is dropped without being published stays a temporary one. No two files are published under the same name
/// at the same time.
#[derive(Debug)]
pub struct Publication {
    path: String,
    temporary: String,
    file: Box<dyn DiskFile>,
}

impl Publication {
    /// Creates the file under its temporary name.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn create(disk: &dyn Disk, path: &str) -> io::Result<Self> {
        let temporary = format!("{path}{TEMPORARY}");
        // It may be a second name of a published file, which creating it would empty.
        match disk.remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(&temporary)?;
        Ok(Self { path: path.into(), temporary, file })
    }

    /// Returns the file, to be written.
    #[must_use]
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// Makes the file durable and gives it its name, durably, on the disk that it was created on. The file stays open.
    ///
    /// # Errors
    /// `AlreadyExists` if something has the name: it stays as it is. Or if the disk fails: then the file may have the name or
    /// not, and after a crash, too; but if it has the name, it is whole.
    pub fn publish(self, disk: &dyn Disk) -> io::Result<Box<dyn DiskFile>> {
        let linked = self.file.sync().and_then(|()| disk.link(&self.temporary, &self.path));
        let removed = disk.remove(&self.temporary);
        linked.and(removed)?;
        disk.sync_directory(parent(&self.path))?;
        Ok(self.file)
    }

    /// Removes the file.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn abandon(self, disk: &dyn Disk) -> io::Result<()> {
        disk.remove(&self.temporary)
    }
}

/// Publishes a file with this content: after a crash it is there as a whole or not at all.
///
/// # Errors
/// `AlreadyExists` if something has the name, or if the disk fails, as of [`Publication::publish`].
pub fn publish(disk: &dyn Disk, path: &str, content: &[u8]) -> io::Result<()> {
    let publication = Publication::create(disk, path)?;
    publication.file().write_at(content, 0)?;
    publication.publish(disk).map(drop)
}

/// Removes the files of a directory that were not published before a crash, and returns how many there were. Nothing must
/// be being published there.
///
/// # Errors
/// If the disk fails.
pub fn remove_temporaries(disk: &dyn Disk, directory: &str) -> io::Result<usize> {
    let names = disk.list(directory)?;
    let temporaries = names.iter().filter(|name| name.ends_with(TEMPORARY));
    temporaries.map(|name| disk.remove(&join(directory, name)).map(|()| 1)).sum()
}

/// Joins a directory and a name.
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.into() } else { format!("{directory}/{name}") }
}
