//! A disk in memory that can crash.

mod cached_file;
mod faults;
mod handles;
mod names;
mod world;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use cached_file::SECTOR_BYTES;
pub use faults::Operation;
use handles::{SimulatedFile, SimulatedLock};
use world::World;

use super::path::check;
use super::{Disk, DiskFile, DiskLock};

/// A disk in memory that loses, tears and reorders what was not synced, and fails when a test says so. All that it does
/// follows from its seeds.
///
/// Clones are the same disk. A test takes the power away ([`power_off_after`](Self::power_off_after)) or lets an operation
/// fail, and then goes on with what a restarted process sees: [`crash`](Self::crash) if the machine was restarted,
/// [`restart`](Self::restart) if only the process was. The disk of before then refuses everything.
///
/// - Each dirty sector of [`SECTOR_BYTES`] has, after a crash, the content of any moment since the last sync.
/// - Names are durable when their directory was synced. Until then each change of names is kept or lost.
/// - A sync that fails leaves its sectors clean: they are still read, but no later sync writes them.
/// - A directory whose sync fails keeps its changes for the next sync: file systems have them in a journal.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    world: Arc<Mutex<World>>,
}

impl SimulatedDisk {
    /// Makes an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of(World::new(seed))
    }

    fn of(world: World) -> Self {
        Self { world: Arc::new(Mutex::new(world)) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the operations so far, of one kind or of all.
    #[must_use]
    pub fn operations(&self, operation: Option<Operation>) -> u64 {
        self.world().faults.count(operation)
    }

    /// Lets this many more operations succeed; then the power is off.
    pub fn power_off_after(&self, operations: u64) {
        self.world().faults.power_off_after(operations);
    }

    /// Lets one operation fail, of this kind or of any, after this many of them were carried out. A write that fails has
    /// written some of its bytes, a sync has made some of them durable.
    pub fn fail(&self, operation: Option<Operation>, after: u64) {
        self.world().faults.fail(operation, after);
    }

    /// Makes the disk full when its files have this many bytes; never if `None`.
    pub fn limit_bytes(&self, bytes_max: Option<u64>) {
        self.world().faults.bytes_max = bytes_max;
    }

    /// Refuses all changes, or takes them again.
    pub fn set_read_only(&self, read_only: bool) {
        self.world().faults.read_only = read_only;
    }

    /// Changes one bit of a file on the medium. Nothing happens after the end of the file.
    ///
    /// # Errors
    /// `NotFound` if there is no such file.
    pub fn flip_bit(&self, path: &str, byte: u64, bit: u8) -> io::Result<()> {
        self.world().flip_bit(path, byte, bit)
    }

    /// Takes the power away and returns the disk that is there when it is back. It has no faults and no locks.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        Self::of(self.world().crash(seed))
    }

    /// Kills the process and returns the disk that the next one sees. Nothing is lost, but what a failed sync has left clean
    /// may be read from the medium again.
    #[must_use]
    pub fn restart(&self, seed: u64) -> Self {
        Self::of(self.world().restart(seed))
    }

    /// Returns another disk with the same content and no faults or locks. This one goes on.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self::of(self.world().duplicate())
    }

    fn handle(&self, file: u64) -> Box<dyn DiskFile> {
        Box::new(SimulatedFile { disk: self.clone(), file })
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        check(path)?;
        let file = self.world().create(path)?;
        Ok(self.handle(file))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        check(path)?;
        let file = self.world().open(path)?;
        Ok(self.handle(file))
    }

    fn open_writable(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.open(path)?;
        if self.world().faults.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(file)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        self.world().create_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        check(path)?;
        self.world().sync_directory(path)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        check(from)?;
        check(to)?;
        self.world().link(from, to)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check(from)?;
        check(to)?;
        self.world().rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        check(path)?;
        self.world().remove(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        check(path)?;
        self.world().list(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        check(path)?;
        self.world().lock(path)?;
        Ok(Box::new(SimulatedLock { disk: self.clone(), path: path.into() }))
    }
}
