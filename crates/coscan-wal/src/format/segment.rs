//! The header of a segment, and its name.

use super::{number, number_u32};
use crate::lsn::Lsn;

/// The size of the block with the header, in bytes: a page, so that no write of a record touches it.
pub(crate) const HEADER_BLOCK_BYTES: usize = 4096;

const MAGIC: [u8; 8] = *b"coscanWL";
const VERSION: u32 = 1;
const ENCODED_BYTES: usize = 48;

/// The header of a segment. It is durable before the segment has its name, and never changes.
///
/// | bytes | content |
/// |---|---|
/// | 0..8 | `coscanWL` |
/// | 8..12 | the version of the format: 1 |
/// | 12..16 | zeros |
/// | 16..24 | the LSN of the first record |
/// | 24..32 | the opening |
/// | 32..40 | the size of the segment in bytes |
/// | 40..44 | the checksum of the record before the first one; 0 if there never was one |
/// | 44..48 | the CRC-32C of bytes 0..44 |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The LSN of the first record.
    pub(crate) first: Lsn,
    /// How often the log had been opened when the segment was made. The records of a segment are of one opening.
    pub(crate) opening: u64,
    /// The size to which the file was preallocated. A shorter file was cut when all its records were durable.
    pub(crate) bytes: u64,
    /// The checksum of the record before the first one: the chain goes through all segments.
    pub(crate) previous: u32,
}

/// The way in which a header is bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderError {
    Damaged,
    UnknownVersion(u32),
}

impl SegmentHeader {
    /// The name of the file: the first LSN, then the opening, so that a segment without records and the one that a later
    /// opening begins at the same LSN have different names.
    pub(crate) fn name(&self) -> String {
        format!("{:020}-{:010}.log", self.first.0, self.opening)
    }

    /// Whether a file name is that of a segment.
    pub(crate) fn is_name(name: &str) -> bool {
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parts = name.strip_suffix(".log").and_then(|name| name.split_once('-'));
        parts.is_some_and(|(first, opening)| digits(first) && digits(opening))
    }

    /// Encodes the header, and returns it with its checksum.
    pub(crate) fn encode(&self) -> ([u8; ENCODED_BYTES], u32) {
        let mut bytes = [0; ENCODED_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.opening.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.previous.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..44]);
        bytes[44..].copy_from_slice(&checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Decodes a header, and returns it with its checksum.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, u32), HeaderError> {
        if bytes.len() < ENCODED_BYTES || bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        let checksum = crc32c::crc32c(&bytes[..44]);
        if checksum != number_u32(bytes, 44) {
            return Err(HeaderError::Damaged);
        }
        let version = number_u32(bytes, 8);
        if version != VERSION {
            return Err(HeaderError::UnknownVersion(version));
        }
        let header = Self {
            first: Lsn(number(bytes, 16)),
            opening: number(bytes, 24),
            bytes: number(bytes, 32),
            previous: number_u32(bytes, 40),
        };
        Ok((header, checksum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader =
        SegmentHeader { first: Lsn(7), opening: 3, bytes: 1 << 20, previous: 0xABCD };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let (bytes, checksum) = HEADER.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok((HEADER, checksum)));
        assert_eq!(HEADER.name(), "00000000000000000007-0000000003.log");
        assert!(SegmentHeader::is_name(&HEADER.name()));
        for name in ["LOCK", "1.log", "a-1.log", "1-.log", "1-1.log.temporary"] {
            assert!(!SegmentHeader::is_name(name), "{name}");
        }
    }

    #[test]
    fn each_bit_of_a_header_counts() {
        let (bytes, _) = HEADER.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&damaged), Err(HeaderError::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_later_version_is_named() {
        let (mut bytes, _) = HEADER.encode();
        bytes[8] = 9;
        let checksum = crc32c::crc32c(&bytes[..44]);
        bytes[44..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::UnknownVersion(9)));
    }
}
