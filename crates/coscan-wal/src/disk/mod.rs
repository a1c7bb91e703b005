//! The disk: what durable storage needs of a directory tree.
//!
//! The trait says what survives a crash, and when. Nothing written survives before [`DiskFile::sync`], and no name before
//! [`Disk::sync_directory`]; without them it may survive, in part and in any order.

mod local;
mod path;
mod simulated;

use std::fmt;
use std::io;

pub use local::LocalDisk;
pub use simulated::{Operation, SECTOR_BYTES, SimulatedDisk};

pub(crate) use path::parent;

/// A directory tree on durable storage. Paths are relative to its root, with `/` between their parts; the root itself is
/// the empty path.
///
/// Errors are those of the system. Paths that lead out of the tree are `InvalidInput`.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file for reading and writing; a file that has this name loses its content.
    ///
    /// # Errors
    /// If the disk refuses or its directory does not exist.
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or if the disk refuses.
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or if the disk refuses.
    fn open_writable(&self, path: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a directory. It may exist; its parent must.
    ///
    /// # Errors
    /// If the disk refuses.
    fn create_directory(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a directory durable: what was created, linked, renamed and removed there.
    ///
    /// # Errors
    /// If the disk fails. The changes may then be durable or not.
    fn sync_directory(&self, path: &str) -> io::Result<()>;

    /// Gives a file a second name, at once or not at all.
    ///
    /// # Errors
    /// `AlreadyExists` if something has that name, or if the disk refuses.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// Gives a file another name, at once or not at all; a file that had it loses it.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or if the disk refuses.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes the name of a file. Whoever has it open can still read it.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or if the disk refuses.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Lists the names in a directory, sorted.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory, or if the disk refuses.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Locks a file, which is created if it does not exist, until the lock is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// `WouldBlock` if it is locked already, `Unsupported` on a file system whose locks are not to be trusted, or if the
    /// disk refuses.
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>>;

    /// Reads a whole file.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`DiskFile::read_at`].
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// An open file.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads from a place on, and returns how many bytes were read: fewer than asked for only at the end of the file.
    ///
    /// # Errors
    /// If the disk fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at a place. A gap after the end of the file becomes zeros.
    ///
    /// # Errors
    /// If the disk fails or is full. Some of the bytes may then be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// If the disk fails.
    fn length(&self) -> io::Result<u64>;

    /// Makes the file at least this long, with zeros, and reserves the space where the file system can.
    ///
    /// # Errors
    /// If the disk fails or is full.
    fn preallocate(&self, length: u64) -> io::Result<()>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// If the disk fails.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes the content and the length of the file durable.
    ///
    /// # Errors
    /// If the disk fails. What was written since the last sync may then be lost although it is still read, **and the next
    /// sync may succeed without it**: only writing it again helps.
    fn sync(&self) -> io::Result<()>;
}

/// A lock that is held until it is dropped.
pub trait DiskLock: fmt::Debug + Send + Sync {}
