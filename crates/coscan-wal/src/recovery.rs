//! Recovery: what an opened log has.

use std::sync::Arc;

use crate::disk::Disk;
use crate::error::LogError;
use crate::log::segments::Segment;
use crate::lsn::Lsn;
use crate::reader::RecordReader;

/// A record of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The number of the record.
    pub lsn: Lsn,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

/// The tail that opening has cut: records that were being written when the power went off. None of them was
/// acknowledged — unless the disk has damaged the very last group of records, which looks the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The segment, relative to the root of the disk.
    pub path: String,
    /// The place in the segment from which it was cut, in bytes.
    pub offset: u64,
    /// The number of bytes that were cut.
    pub bytes: u64,
    /// The number of the first record that was cut. It is given again.
    pub lsn: Lsn,
}

/// A segment to which nothing is appended any more.
#[derive(Clone, Debug)]
pub(crate) struct SealedSegment {
    pub(crate) segment: Segment,
    /// Its last record; the one before its first one if it has none.
    pub(crate) last: Lsn,
    /// The checksum of that record.
    pub(crate) checksum_last: u32,
    /// The segment that says so.
    pub(crate) next_path: String,
}

/// The records that the log had when it was opened. Read them before any are cut.
#[derive(Clone, Debug)]
pub struct Recovery {
    disk: Arc<dyn Disk>,
    segments: Vec<SealedSegment>,
    first: Lsn,
    last: Lsn,
    torn: Option<TornTail>,
}

impl Recovery {
    /// `next` is the first record that the log will have.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: Vec<SealedSegment>,
        next: Lsn,
        torn: Option<TornTail>,
    ) -> Self {
        let first = segments.first().map_or(next, |sealed| sealed.segment.header.first);
        Self { disk, segments, first, last: next.before(), torn }
    }

    /// Returns the first record that the log has; the one after the last if it has none.
    #[must_use]
    pub fn first(&self) -> Lsn {
        self.first
    }

    /// Returns the last record that the log has, or the last that it had if all were cut. All up to it are durable.
    ///
    /// Whoever knows from elsewhere that a later record was durable, such as from a checkpoint, knows that the log has lost
    /// its end.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    /// Returns what opening has cut from the end of the log, if anything.
    #[must_use]
    pub fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Reads the records from one on, up to [`last`](Self::last). That may be the one after the last: then there are none.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if the log begins after that record, or ends before it.
    pub fn records(&self, from: Lsn) -> Result<Records<'_>, LogError> {
        if from < self.first || from > self.last.next() {
            return Err(LogError::OutOfRange { from, first: self.first, last: self.last });
        }
        let passed = self.segments.partition_point(|sealed| sealed.last < from);
        Ok(Records { disk: &*self.disk, segments: &self.segments[passed..], reader: None, from })
    }

    /// Calls a function for each record from one on. A gigabyte takes about a second; no more is held in memory than the
    /// largest record and a megabyte.
    ///
    /// # Errors
    /// The first error of the function, or that of the log: see [`records`](Self::records) and [`Records::next_record`].
    pub fn for_each<E: From<LogError>>(
        &self,
        from: Lsn,
        mut visit: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut records = self.records(from)?;
        while let Some(record) = records.next_record()? {
            visit(record)?;
        }
        Ok(())
    }
}

/// Reads records one after another.
#[derive(Debug)]
pub struct Records<'a> {
    disk: &'a dyn Disk,
    /// The segments to read; the reader is in the first one.
    segments: &'a [SealedSegment],
    reader: Option<RecordReader>,
    from: Lsn,
}

impl Records<'_> {
    /// Reads the next record; `None` after the last one.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if a record is damaged or missing, or if the disk fails.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let lsn = loop {
            let Some(sealed) = self.segments.first() else { return Ok(None) };
            let failed = |error| LogError::io("read", &sealed.segment.path, error);
            let reader = match &mut self.reader {
                Some(reader) => reader,
                empty => empty.insert(open(self.disk, &sealed.segment)?),
            };
            if reader.last() == sealed.last {
                check_chain(sealed, reader)?;
                self.segments = &self.segments[1..];
                self.reader = None;
            } else {
                match reader.advance().map_err(failed)? {
                    Some(header) if header.lsn >= self.from => break header.lsn,
                    Some(_) => {}
                    None => return Err(missing(sealed, reader)),
                }
            }
        };
        let payload = self.reader.as_ref().map_or(&[][..], RecordReader::payload);
        Ok(Some(Record { lsn, payload }))
    }
}

fn open(disk: &dyn Disk, segment: &Segment) -> Result<RecordReader, LogError> {
    let file = disk.open(&segment.path);
    file.and_then(|file| RecordReader::new(file, &segment.header, segment.checksum))
        .map_err(|error| LogError::io("read", &segment.path, error))
}

/// Checks that the next segment was written after the last record of this one.
fn check_chain(sealed: &SealedSegment, reader: &RecordReader) -> Result<(), LogError> {
    if reader.previous() == sealed.checksum_last {
        return Ok(());
    }
    let reason = format!("{} was written after another record", sealed.next_path);
    Err(sealed.segment.corrupt(reader.offset(), sealed.last, reason))
}

fn missing(sealed: &SealedSegment, reader: &RecordReader) -> LogError {
    let reason = format!(
        "{} says that records up to {} were durable. The record is bad, or a file between them is missing",
        sealed.next_path, sealed.last
    );
    sealed.segment.corrupt(reader.offset(), reader.last().next(), reason)
}
