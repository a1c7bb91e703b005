//! Parts of a file in memory, for parquet's decoder, which asks for bytes by their offset in the file.

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// Parts of a file, each at its offset.
pub(super) struct Segments(Vec<(u64, Bytes)>);

impl Segments {
    pub(super) fn new(segments: impl Iterator<Item = (u64, Bytes)>) -> Self {
        let mut segments: Vec<_> = segments.collect();
        segments.sort_unstable_by_key(|(offset, _)| *offset);
        Self(segments)
    }

    /// The bytes of one segment from an offset in the file on.
    fn bytes_from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let after = self.0.partition_point(|(offset, _)| *offset <= start);
        let found = after.checked_sub(1).and_then(|position| {
            let (offset, bytes) = &self.0[position];
            let skipped = usize::try_from(start - offset).ok()?;
            (skipped <= bytes.len()).then(|| bytes.slice(skipped..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("no page holds the byte at offset {start}")))
    }
}

impl Length for Segments {
    fn len(&self) -> u64 {
        self.0.last().map_or(0, |(offset, bytes)| offset + bytes.len() as u64)
    }
}

impl ChunkReader for Segments {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.bytes_from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.bytes_from(start)?;
        if bytes.len() < length {
            let available = bytes.len();
            let reason = format!("of {length} bytes at offset {start}, {available} are in memory");
            return Err(ParquetError::EOF(reason));
        }
        Ok(bytes.slice(..length))
    }
}
