//! The segment to which records are appended.

use std::io;

use crate::disk::{Disk, DiskFile};
use crate::durable_rename::{Publication, join};
use crate::error::LogError;
use crate::format::{HEADER_BLOCK_BYTES, SegmentHeader};

use super::segments::Segment;

/// The last segment, which is written.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Segment,
    file: Box<dyn DiskFile>,
    /// Where the next record begins.
    end: u64,
}

impl Active {
    /// Publishes a segment without records.
    pub(super) fn publish(
        disk: &dyn Disk,
        directory: &str,
        header: SegmentHeader,
    ) -> Result<Self, LogError> {
        let path = join(directory, &header.name());
        let (block, checksum) = header.encode();
        let publish = || -> io::Result<Box<dyn DiskFile>> {
            let publication = Publication::create(disk, &path)?;
            publication.file().preallocate(header.bytes)?;
            publication.file().write_at(&block, 0)?;
            publication.publish(disk)
        };
        let file = publish().map_err(|error| LogError::io("publish", &path, error))?;
        let end = HEADER_BLOCK_BYTES as u64;
        Ok(Self { segment: Segment { path, header, checksum }, file, end })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == HEADER_BLOCK_BYTES as u64
    }

    /// Whether so many more bytes fit. One record always fits into an empty segment, which is then larger than others.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.end + bytes <= self.segment.header.bytes
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let end = self.end + bytes.len() as u64;
        let write = || {
            if end > self.segment.header.bytes {
                self.file.preallocate(end)?;
            }
            self.file.write_at(bytes, self.end)
        };
        write().map_err(|error| LogError::io("write", &self.segment.path, error))?;
        self.end = end;
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), LogError> {
        self.file.sync().map_err(|error| LogError::io("sync", &self.segment.path, error))
    }

    /// Cuts the file to its records, which are durable.
    pub(super) fn cut(&self) -> Result<(), LogError> {
        let cut = self.file.truncate(self.end).and_then(|()| self.file.sync());
        cut.map_err(|error| LogError::io("cut", &self.segment.path, error))
    }
}
