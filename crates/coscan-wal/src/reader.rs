//! Reading records one after another.

use std::io;

use crate::disk::DiskFile;
use crate::format::{
    HEADER_BLOCK_BYTES, RECORD_HEADER_BYTES, RecordHeader, SegmentHeader, checksum_matches,
};
use crate::lsn::Lsn;

/// What is read at a time unless a record is larger, in bytes.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// Reads the good records of a segment from its beginning: those that have the next LSN, continue the chain and have the
/// right checksum.
#[derive(Debug)]
pub(crate) struct RecordReader {
    file: Box<dyn DiskFile>,
    length: u64,
    /// The checksum of the header of the segment.
    segment: u32,
    /// The LSN and the checksum of the last good record.
    last: Lsn,
    previous: u32,
    /// What was read from the file; it ends there at `end`.
    buffer: Vec<u8>,
    end: u64,
    /// The place in the buffer of the current record, and its size up to the next one.
    position: usize,
    current: Option<RecordHeader>,
}

impl RecordReader {
    pub(crate) fn new(
        file: Box<dyn DiskFile>,
        header: &SegmentHeader,
        segment: u32,
    ) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self {
            file,
            length,
            segment,
            last: header.first.before(),
            previous: header.previous,
            buffer: Vec::new(),
            end: HEADER_BLOCK_BYTES as u64,
            position: 0,
            current: None,
        })
    }

    /// Goes to the next record; `None` if there is no good one.
    pub(crate) fn advance(&mut self) -> io::Result<Option<RecordHeader>> {
        if let Some(current) = self.current.take() {
            // The zeros after the last record may be missing.
            self.position =
                (self.position + current.stored_bytes() as usize).min(self.buffer.len());
        }
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(None);
        }
        let Some(header) = RecordHeader::decode(&self.buffer[self.position..]) else {
            return Ok(None);
        };
        if header.lsn != self.last.next() || header.previous != self.previous {
            return Ok(None);
        }
        if !self.fill(header.bytes())? || !checksum_matches(self.segment, self.record(&header)) {
            return Ok(None);
        }
        // The next record begins after the zeros.
        self.fill(header.stored_bytes() as usize)?;
        self.last = header.lsn;
        self.previous = header.checksum;
        self.current = Some(header);
        Ok(Some(header))
    }

    fn record(&self, header: &RecordHeader) -> &[u8] {
        &self.buffer[self.position..self.position + header.bytes()]
    }

    /// The payload of the current record.
    pub(crate) fn payload(&self) -> &[u8] {
        self.current.map_or(&[], |header| &self.record(&header)[RECORD_HEADER_BYTES..])
    }

    /// Where the current record begins, or else the bad one.
    pub(crate) fn offset(&self) -> u64 {
        self.end - (self.buffer.len() - self.position) as u64
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The last good record.
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// The checksum of the last good record.
    pub(crate) fn previous(&self) -> u32 {
        self.previous
    }

    pub(crate) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// Has this many bytes in the buffer from the position on; `false` if the file ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        let have = self.buffer.len() - self.position;
        if have >= bytes {
            return Ok(true);
        }
        let left = self.length.saturating_sub(self.end);
        let missing = bytes - have;
        if missing as u64 > left {
            return Ok(false);
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let more = (missing.max(READ_BYTES) as u64).min(left) as usize;
        self.buffer.resize(have + more, 0);
        let read = self.file.read_at(&mut self.buffer[have..], self.end)?;
        self.buffer.truncate(have + read);
        self.end += read as u64;
        Ok(read >= missing)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::disk::{Disk, SimulatedDisk};
    use crate::format::encode;

    const HEADER: SegmentHeader =
        SegmentHeader { first: Lsn(5), opening: 1, bytes: 1 << 24, previous: 9 };

    /// A reader of records with these numbers and payload sizes, each of which continues the chain.
    fn reader(records: &[(u64, usize)]) -> RecordReader {
        let mut bytes = vec![0; HEADER_BLOCK_BYTES];
        let mut previous = HEADER.previous;
        for (lsn, size) in records {
            let header = (Lsn(*lsn), Lsn(0), previous);
            previous = encode(&mut bytes, 77, header, &vec![*lsn as u8; *size]);
        }
        let file = SimulatedDisk::new(0).create("segment").unwrap();
        file.write_at(&bytes, 0).unwrap();
        RecordReader::new(file, &HEADER, 77).unwrap()
    }

    fn numbers(mut reader: RecordReader) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(header) = reader.advance().unwrap() {
            assert!(reader.payload().iter().all(|byte| *byte == header.lsn.0 as u8));
            numbers.push(header.lsn.0);
        }
        numbers
    }

    #[test]
    fn records_of_all_sizes_are_read() {
        let large = READ_BYTES - RECORD_HEADER_BYTES;
        let sizes = [0, large, 1, READ_BYTES - 100, 3 * READ_BYTES + 5, 7, large - 8, 40];
        let records: Vec<_> = (5..).zip(sizes).collect();
        assert_eq!(numbers(reader(&records)), (5..13).collect::<Vec<_>>());
    }

    #[test]
    fn a_record_with_another_number_ends_the_log() {
        assert_eq!(numbers(reader(&[(5, 10), (6, 10), (8, 10), (7, 10)])), [5, 6]);
        assert!(numbers(reader(&[(4, 10)])).is_empty());
    }
}
