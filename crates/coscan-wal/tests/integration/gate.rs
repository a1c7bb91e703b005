//! A disk of which each sync waits until the test lets it go on.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coscan_wal::*;

use super::support::options;

#[derive(Debug)]
struct GatedDisk {
    disk: SimulatedDisk,
    gate: Arc<Mutex<Option<Gate>>>,
}

#[derive(Debug)]
struct Gate {
    arrived: Sender<()>,
    open: Receiver<()>,
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn DiskFile>,
    gate: Arc<Mutex<Option<Gate>>>,
}

impl Disk for GatedDisk {
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.create(path)?;
        Ok(Box::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(path)
    }
    fn open_writable(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open_writable(path)
    }
    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.disk.create_directory(path)
    }
    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.disk.sync_directory(path)
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.link(from, to)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }
}

impl DiskFile for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn preallocate(&self, length: u64) -> io::Result<()> {
        self.file.preallocate(length)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }
    fn sync(&self) -> io::Result<()> {
        if let Some(gate) = &*self.gate.lock().unwrap() {
            // A test that has failed opens no gate.
            gate.arrived.send(()).map_err(io::Error::other)?;
            gate.open.recv().map_err(io::Error::other)?;
        }
        self.file.sync()
    }
}

/// A log whose syncs say that they begin, and then wait for a word.
pub(super) struct Gated {
    pub(super) disk: SimulatedDisk,
    pub(super) log: Log,
    pub(super) syncs: Syncs,
}

pub(super) struct Syncs {
    arrived: Receiver<()>,
    open: Sender<()>,
}

impl Syncs {
    /// Waits until a sync begins. So long that only a log that never syncs is not waited for.
    pub(super) fn begun(&self) {
        self.arrived.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    /// Lets a sync end.
    pub(super) fn end(&self) {
        self.open.send(()).unwrap();
    }
}

pub(super) fn gated() -> Gated {
    let disk = SimulatedDisk::new(0);
    let gate = Arc::new(Mutex::new(None));
    let gated = GatedDisk { disk: disk.clone(), gate: Arc::clone(&gate) };
    let (log, _) = Log::open(Arc::new(gated), options(1 << 14)).unwrap();
    let (arrived_sender, arrived) = channel();
    let (open, open_receiver) = channel();
    *gate.lock().unwrap() = Some(Gate { arrived: arrived_sender, open: open_receiver });
    Gated { disk, log, syncs: Syncs { arrived, open } }
}
