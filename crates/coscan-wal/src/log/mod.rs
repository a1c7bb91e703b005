//! The log: records are appended to segments, which are cut when they are not needed any more.

mod active;
mod open;
pub(crate) mod segments;
mod tail;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::disk::{Disk, DiskLock};
use crate::error::LogError;
use crate::format::{SegmentHeader, encode, stored_bytes};
use crate::lsn::Lsn;
use crate::recovery::Recovery;
use active::Active;
use segments::Segment;

/// The largest payload of a record, in bytes.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// What is gathered before it is written, in bytes.
const WRITE_BYTES: usize = 1 << 20;

/// The settings of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// The directory of the segments, relative to the root of the disk. It is created if it does not exist; its parent must.
    pub directory: String,
    /// The size of a segment in bytes, which is preallocated. A record that is larger has a segment of its own.
    pub segment_bytes: u64,
}

impl Default for LogOptions {
    /// Segments of 64 MiB in the directory `wal`.
    fn default() -> Self {
        Self { directory: "wal".into(), segment_bytes: 64 << 20 }
    }
}

/// A write-ahead log that is open for appending.
///
/// After a write or a sync has failed, nobody knows what the disk has. The log then refuses everything
/// ([`LogError::Poisoned`]) until it is opened again.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    options: LogOptions,
    /// All segments, the active one last.
    segments: VecDeque<Segment>,
    active: Active,
    next: Lsn,
    durable: Lsn,
    /// The checksum of the last record.
    previous: u32,
    /// The text of the first error.
    poisoned: Option<String>,
    /// Encoded records that are not written yet.
    buffer: Vec<u8>,
    _lock: Box<dyn DiskLock>,
}

impl Log {
    /// Opens the log of a directory, or begins it: locks it, cuts a torn tail, makes all that is left durable and begins a
    /// segment. [`Recovery`] reads what the log has; records before the last segment are checked only then.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if bytes that were durable are damaged, [`LogError::Locked`] if the log is open elsewhere, or if
    /// the disk fails. Opening may be tried again.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(Self, Recovery), LogError> {
        open::open(disk, options)
    }

    /// Appends records and makes them durable, with one sync unless they fill a segment. Returns the LSN of the last one;
    /// they have consecutive LSNs up to it.
    ///
    /// # Errors
    /// [`LogError::RecordTooLarge`] if a payload is larger than [`RECORD_BYTES_MAX`]: then nothing was appended. Or if the
    /// disk fails: then the log is poisoned, and after it is opened again it has some of the first of the records or none.
    pub fn append_all<P: AsRef<[u8]>>(&mut self, payloads: &[P]) -> Result<Lsn, LogError> {
        self.check()?;
        payloads.iter().try_for_each(|payload| check_size(payload.as_ref()))?;
        let appended = self.append_unchecked(payloads);
        self.poisoning(appended)?;
        Ok(self.durable)
    }

    /// Removes segments that have only records before `lsn`; those from `lsn` on stay. If that is after the last record,
    /// a new segment is begun, so that none of the records stays.
    ///
    /// # Errors
    /// If the disk fails: then the log is poisoned.
    pub fn cut_before(&mut self, lsn: Lsn) -> Result<(), LogError> {
        self.check()?;
        let cut = self.cut_unchecked(lsn);
        self.poisoning(cut)
    }

    /// Closes the log. It may as well be dropped; but if damage is found in a log that was closed, it is certain that it was
    /// not torn.
    ///
    /// # Errors
    /// If the disk fails. All that was acknowledged is durable nevertheless.
    pub fn close(self) -> Result<(), LogError> {
        self.check()?;
        self.active.cut()
    }

    /// Returns the first record that the log has; the LSN of the next one if it has none.
    #[must_use]
    pub fn first(&self) -> Lsn {
        self.segments.front().map_or(self.next, |segment| segment.header.first)
    }

    /// Returns the last record that is durable. All before it are.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// Returns the number of segments, of which the last one is appended to.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.poisoned {
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    fn poisoning<T>(&mut self, result: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(error) = &result {
            self.poisoned = Some(error.to_string());
        }
        result
    }

    fn append_unchecked<P: AsRef<[u8]>>(&mut self, payloads: &[P]) -> Result<(), LogError> {
        for payload in payloads {
            let payload = payload.as_ref();
            let bytes = self.buffer.len() as u64 + stored_bytes(payload.len());
            let is_empty = self.active.is_empty() && self.buffer.is_empty();
            if !is_empty && !self.active.fits(bytes) {
                self.sync()?;
                self.begin_segment()?;
            }
            let header = (self.next, self.durable, self.previous);
            let segment = self.active.segment.checksum;
            self.previous = encode(&mut self.buffer, segment, header, payload);
            self.next = self.next.next();
            if self.buffer.len() >= WRITE_BYTES {
                self.write()?;
            }
        }
        self.sync()
    }

    fn write(&mut self) -> Result<(), LogError> {
        self.active.write(&self.buffer)?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }

    /// Makes all records durable.
    fn sync(&mut self) -> Result<(), LogError> {
        if self.durable == self.next.before() {
            return Ok(());
        }
        self.write()?;
        self.active.sync()?;
        self.durable = self.next.before();
        Ok(())
    }

    /// Begins a segment. All records before it are durable: whoever sees it knows that.
    fn begin_segment(&mut self) -> Result<(), LogError> {
        let header = SegmentHeader {
            first: self.next,
            previous: self.previous,
            ..self.active.segment.header
        };
        self.active = Active::publish(&*self.disk, &self.options.directory, header)?;
        self.segments.push_back(self.active.segment.clone());
        Ok(())
    }

    fn cut_unchecked(&mut self, lsn: Lsn) -> Result<(), LogError> {
        if lsn >= self.next && !self.active.is_empty() {
            self.begin_segment()?;
        }
        while let Some(second) = self.segments.get(1)
            && second.header.first <= lsn
            && let Some(first) = self.segments.front()
        {
            let path = &first.path;
            self.disk.remove(path).map_err(|error| LogError::io("remove", path, error))?;
            // One by one, so that no crash brings back an older segment without the one after it.
            let directory = &self.options.directory;
            self.disk
                .sync_directory(directory)
                .map_err(|error| LogError::io("sync", directory, error))?;
            self.segments.pop_front();
        }
        Ok(())
    }
}

/// Refuses payloads that are too large.
pub(crate) fn check_size(payload: &[u8]) -> Result<(), LogError> {
    let bytes = payload.len();
    if bytes > RECORD_BYTES_MAX {
        return Err(LogError::RecordTooLarge { bytes, max: RECORD_BYTES_MAX });
    }
    Ok(())
}
