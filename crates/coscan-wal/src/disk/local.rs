//! A directory of a local file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::path::check;
use super::{Disk, DiskFile, DiskLock};

/// A directory of a local file system.
#[derive(Clone, Debug)]
pub struct LocalDisk {
    root: PathBuf,
}

impl LocalDisk {
    /// Opens a directory, which is created durably if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = std::path::absolute(root.into())?;
        let existed = root.ancestors().find(|directory| directory.is_dir()).map(Path::to_path_buf);
        fs::create_dir_all(&root)?;
        // The parent always: who created the root may have crashed before this.
        for directory in root.ancestors().skip(1) {
            match sync_directory(directory) {
                // Who may not read it has not created anything there.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
            if existed.as_deref().is_some_and(|existed| existed.starts_with(directory)) {
                break;
            }
        }
        Ok(Self { root })
    }

    fn path(&self, path: &str) -> io::Result<PathBuf> {
        check(path)?;
        Ok(self.root.join(path))
    }

    fn file(&self, path: &str, options: &OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        let file = options.open(self.path(path)?)?;
        Ok(Box::new(LocalFile { file }))
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

impl Disk for LocalDisk {
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(path, OpenOptions::new().read(true).write(true).create(true).truncate(true))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(path, OpenOptions::new().read(true))
    }

    fn open_writable(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.file(path, OpenOptions::new().read(true).write(true))
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        let path = self.path(path)?;
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            created => created,
        }
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        sync_directory(&self.path(path)?)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.path(from)?, self.path(to)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from)?, self.path(to)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path)?)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path)?)? {
            // Other names cannot be ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        let path = self.path(path)?;
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        refuse_network(&file)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(LocalLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct LocalFile {
    file: File,
}

impl DiskFile for LocalFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        if self.length()? >= length || reserve(&self.file, length)? {
            return Ok(());
        }
        self.file.set_len(length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The system drops the lock with the file, also that of a process that was killed.
#[derive(Debug)]
struct LocalLock {
    _file: File,
}

impl DiskLock for LocalLock {}

/// Reserves space, and returns whether the file system can.
#[cfg(target_os = "linux")]
fn reserve(file: &File, length: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Refuses file systems across a network: their locks may be lost with a connection, and so may what was synced.
#[cfg(target_os = "linux")]
fn refuse_network(file: &File) -> io::Result<()> {
    // From linux/magic.h and the sources of the file systems: NFS, SMB, CIFS, SMB2, AFS, Coda, Ceph.
    const NETWORK: [u32; 7] =
        [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x5346_414F, 0x7375_7245, 0x00C3_6400];
    let kind = rustix::fs::fstatfs(file)?.f_type;
    // Signed and of other widths on some machines; the numbers have 32 bits.
    if NETWORK.contains(&(kind as u32)) {
        let text = "this is a network file system: put the database on a local disk";
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &File) -> io::Result<()> {
    Ok(())
}
