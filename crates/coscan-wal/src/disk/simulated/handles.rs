//! Open files and locks of a simulated disk.

use std::io;

use super::SimulatedDisk;
use crate::disk::{DiskFile, DiskLock};

#[derive(Debug)]
pub(super) struct SimulatedFile {
    pub(super) disk: SimulatedDisk,
    pub(super) file: u64,
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.world().read_at(self.file, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.world().write_at(self.file, bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.world().length(self.file)
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        self.disk.world().preallocate(self.file, length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.disk.world().truncate(self.file, length)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.world().sync(self.file)
    }
}

#[derive(Debug)]
pub(super) struct SimulatedLock {
    pub(super) disk: SimulatedDisk,
    pub(super) path: String,
}

impl DiskLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.disk.world().unlock(&self.path);
    }
}
