//! Bloom filters of columns, which show that a row group does not hold a value. They are read on demand.
//!
//! Source: Parquet format, `BloomFilter.md` and `BloomFilterHeader` in `parquet.thrift`.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;

use super::leaves::flat_leaf;
use super::panics::caught;
use super::thrift::Reader;
use super::{ParquetFile, TableError};

/// The maximum size of the header in bytes.
const HEADER_BYTES: u64 = 20;
/// The maximum size of a Bloom filter in bytes: the format allows no larger one.
const BITS_BYTES_MAX: u64 = 128 << 20;
/// The field of the header that has the number of bytes that follow.
const BITS_BYTES: i16 = 1;

/// The Bloom filter of a column in one row group.
#[derive(Clone, Debug)]
pub struct BloomFilter {
    /// The filter.
    pub filter: Sbbf,
    /// The type that its values had when they were added.
    pub physical_type: PhysicalType,
    /// The size of a value in bytes, for values of fixed length.
    pub type_length: i32,
}

impl ParquetFile {
    /// The row group that a zone lies in.
    ///
    /// # Panics
    /// If there is no such zone.
    #[must_use]
    pub fn row_group_of_zone(&self, zone: usize) -> usize {
        self.zones.row_group(zone)
    }

    /// Whether the file has a Bloom filter of a column in a row group.
    ///
    /// # Panics
    /// If there is no such column or row group.
    #[must_use]
    pub fn has_bloom_filter(&self, row_group: usize, column: usize) -> bool {
        self.bloom_filter_start(row_group, column).is_some()
    }

    /// The range of bytes of the Bloom filter of a column in a row group; `None` without one. Reads a few bytes if
    /// the footer does not give its length.
    ///
    /// # Errors
    /// If the file cannot be read, has changed, or is damaged.
    ///
    /// # Panics
    /// If there is no such column or row group.
    pub async fn bloom_filter_range(
        &self,
        row_group: usize,
        column: usize,
    ) -> Result<Option<Range<u64>>, TableError> {
        let Some((leaf, start)) = self.bloom_filter_start(row_group, column) else {
            return Ok(None);
        };
        let length = match self.metadata.row_group(row_group).column(leaf).bloom_filter_length() {
            Some(length) => u64::try_from(length).ok(),
            None => {
                let end = start.saturating_add(HEADER_BYTES).min(self.file.meta.size);
                let head =
                    self.read_metadata(start..end.max(start)).await.map_err(TableError::Read)?;
                bloom_filter_bytes(&head)
            }
        };
        let in_file = |&end: &u64| end <= self.file.meta.size;
        let is_usual = |&length: &u64| length <= BITS_BYTES_MAX + HEADER_BYTES;
        let end = length.filter(is_usual).and_then(|length| start.checked_add(length));
        match end.filter(in_file) {
            Some(end) => Ok(Some(start..end)),
            None => Err(self.no_bloom_filter("it lies outside the file")),
        }
    }

    /// Reads the Bloom filter in a range that [`Self::bloom_filter_range`] gave.
    ///
    /// # Errors
    /// As [`Self::bloom_filter_range`].
    ///
    /// # Panics
    /// If there is no such column or row group.
    pub async fn read_bloom_filter(
        &self,
        row_group: usize,
        column: usize,
        range: Range<u64>,
    ) -> Result<BloomFilter, TableError> {
        let leaf = self.leaves(column).start;
        let bytes = self.read_metadata(range).await.map_err(TableError::Read)?;
        let filter = caught(|| Sbbf::from_bytes(&bytes));
        let descriptor = self.metadata.row_group(row_group).column(leaf).column_descr();
        Ok(BloomFilter {
            filter: filter.map_err(|reason| self.no_bloom_filter(&reason))?,
            physical_type: descriptor.physical_type(),
            type_length: descriptor.type_length(),
        })
    }

    fn bloom_filter_start(&self, row_group: usize, column: usize) -> Option<(usize, u64)> {
        let leaf = flat_leaf(&self.metadata, &self.leaves(column))?;
        let offset = self.metadata.row_group(row_group).column(leaf).bloom_filter_offset()?;
        Some((leaf, u64::try_from(offset).ok()?))
    }

    fn no_bloom_filter(&self, reason: &str) -> TableError {
        let reason = format!("a Bloom filter cannot be read ({reason})");
        TableError::Corrupt { file: Arc::clone(&self.name), reason }
    }
}

/// The length of the Bloom filter that begins here, with its header; `None` if the header is cut off or not Thrift.
fn bloom_filter_bytes(bytes: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(bytes);
    let (mut id, mut bits_bytes) = (0, None);
    while let Some((next, kind)) = reader.field(id)? {
        match next {
            BITS_BYTES => bits_bytes = Some(reader.count()?),
            _ => reader.skip(kind)?,
        }
        id = next;
    }
    let header_bytes = (bytes.len() - reader.rest().len()) as u64;
    bits_bytes?.checked_add(header_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_bloom_filter_says_how_long_it_is() {
        // 32 bytes follow; BLOCK, XXHASH, UNCOMPRESSED.
        let header =
            [0x15, 64, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0, 0xff, 0xff];
        assert_eq!(bloom_filter_bytes(&header), Some(15 + 32));
        (0..15).for_each(|end| assert_eq!(bloom_filter_bytes(&header[..end]), None, "{end}"));
    }
}
