//! The state of a simulated disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use coscan_core::SplitMix64;

use super::cached_file::CachedFile;
use super::faults::{Faults, Operation, Refused};
use super::names::{Names, Node};

#[derive(Debug)]
pub(super) struct World {
    files: BTreeMap<u64, CachedFile>,
    next_file: u64,
    names: Names,
    locks: BTreeSet<String>,
    random: SplitMix64,
    pub(super) faults: Faults,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            next_file: 0,
            names: Names::default(),
            locks: BTreeSet::new(),
            random: SplitMix64(seed),
            faults: Faults::default(),
        }
    }

    pub(super) fn duplicate(&self) -> Self {
        Self {
            files: self.files.clone(),
            next_file: self.next_file,
            names: self.names.clone(),
            random: self.random.clone(),
            ..Self::new(0)
        }
    }

    pub(super) fn crash(&mut self, seed: u64) -> Self {
        let mut world = self.end(seed);
        world.names.crash(&mut world.random);
        let World { files, names, random, .. } = &mut world;
        files.retain(|file, _| names.has_file(*file));
        files.values_mut().for_each(|file| file.crash(random));
        world
    }

    pub(super) fn restart(&mut self, seed: u64) -> Self {
        let mut world = self.end(seed);
        for file in world.files.values_mut() {
            if world.random.below(2) == 0 {
                file.evict();
            }
        }
        world
    }

    /// Ends this life of the disk and begins another with a seed.
    fn end(&mut self, seed: u64) -> Self {
        self.faults.power_off_after(0);
        Self { random: SplitMix64(seed), ..self.duplicate() }
    }

    pub(super) fn flip_bit(&mut self, path: &str, byte: u64, bit: u8) -> io::Result<()> {
        let file = self.names.file(path)?;
        self.cached(file)?.flip_bit(index(byte)?, bit);
        Ok(())
    }

    /// Counts an operation that fails without having done anything.
    fn step(&mut self, operation: Operation) -> io::Result<()> {
        self.faults
            .step(operation)
            .map_err(|(Refused::Entirely(error) | Refused::Midway(error))| error)
    }

    fn cached(&mut self, file: u64) -> io::Result<&mut CachedFile> {
        self.files.get_mut(&file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Refuses to let a file grow beyond the size of the disk.
    fn check_space(&mut self, file: u64, length: u64) -> io::Result<()> {
        let Some(max) = self.faults.bytes_max else { return Ok(()) };
        let own = self.cached(file)?.content().len() as u64;
        let all: u64 = self.files.values().map(|file| file.content().len() as u64).sum();
        if length > own && all - own + length > max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<u64> {
        self.step(Operation::Create)?;
        if let Some(Node::File(file)) = self.names.get(path) {
            self.cached(file)?.set_length(0);
            return Ok(file);
        }
        let file = self.next_file;
        self.names.change(vec![(path.into(), Some(Node::File(file)))])?;
        self.next_file += 1;
        self.files.insert(file, CachedFile::default());
        Ok(file)
    }

    pub(super) fn open(&mut self, path: &str) -> io::Result<u64> {
        self.step(Operation::Open)?;
        self.names.file(path)
    }

    pub(super) fn create_directory(&mut self, path: &str) -> io::Result<()> {
        self.step(Operation::CreateDirectory)?;
        match self.names.get(path) {
            None => self.names.change(vec![(path.into(), Some(Node::Directory))]),
            Some(_) => self.names.directory(path),
        }
    }

    pub(super) fn sync_directory(&mut self, path: &str) -> io::Result<()> {
        self.step(Operation::SyncDirectory)?;
        self.names.directory(path)?;
        self.names.sync(path);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.step(Operation::Link)?;
        let file = self.names.file(from)?;
        if self.names.get(to).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.names.change(vec![(to.into(), Some(Node::File(file)))])
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.step(Operation::Rename)?;
        let file = self.names.file(from)?;
        if self.names.get(to) == Some(Node::Directory) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from == to {
            return Ok(());
        }
        self.names.change(vec![(to.into(), Some(Node::File(file))), (from.into(), None)])
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.step(Operation::Remove)?;
        self.names.file(path)?;
        self.names.change(vec![(path.into(), None)])
    }

    pub(super) fn list(&mut self, path: &str) -> io::Result<Vec<String>> {
        self.step(Operation::List)?;
        self.names.directory(path)?;
        Ok(self.names.list(path))
    }

    pub(super) fn lock(&mut self, path: &str) -> io::Result<()> {
        self.step(Operation::Lock)?;
        if self.locks.contains(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.names.get(path).is_none() {
            let file = self.next_file;
            self.names.change(vec![(path.into(), Some(Node::File(file)))])?;
            self.next_file += 1;
            self.files.insert(file, CachedFile::default());
        }
        self.locks.insert(path.into());
        Ok(())
    }

    pub(super) fn unlock(&mut self, path: &str) {
        self.locks.remove(path);
    }

    pub(super) fn read_at(&mut self, file: u64, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.step(Operation::Read)?;
        let content = self.cached(file)?.content();
        let rest = content.get(index(offset)?..).unwrap_or(&[]);
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    pub(super) fn length(&mut self, file: u64) -> io::Result<u64> {
        self.step(Operation::Read)?;
        Ok(self.cached(file)?.content().len() as u64)
    }

    pub(super) fn write_at(&mut self, file: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (written, result) = match self.faults.step(Operation::Write) {
            Ok(()) => (bytes.len(), Ok(())),
            Err(Refused::Entirely(error)) => (0, Err(error)),
            Err(Refused::Midway(error)) => {
                (self.random.below(bytes.len() as u64 + 1) as usize, Err(error))
            }
        };
        self.check_space(file, offset + written as u64)?;
        self.cached(file)?.write(index(offset)?, &bytes[..written]);
        result
    }

    pub(super) fn preallocate(&mut self, file: u64, length: u64) -> io::Result<()> {
        self.step(Operation::SetLength)?;
        self.check_space(file, length)?;
        let cached = self.cached(file)?;
        if cached.content().len() < index(length)? {
            cached.set_length(index(length)?);
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, file: u64, length: u64) -> io::Result<()> {
        self.step(Operation::SetLength)?;
        self.cached(file)?.set_length(index(length)?);
        Ok(())
    }

    pub(super) fn sync(&mut self, file: u64) -> io::Result<()> {
        match self.faults.step(Operation::Sync) {
            Ok(()) => self.cached(file)?.sync(),
            Err(Refused::Entirely(error)) => return Err(error),
            Err(Refused::Midway(error)) => {
                let mut random = self.random.clone();
                self.random.next_u64();
                self.cached(file)?.fail_sync(&mut random);
                return Err(error);
            }
        }
        Ok(())
    }
}

fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}
