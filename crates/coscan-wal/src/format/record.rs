//! Records as bytes.

use super::{ALIGNMENT, number, number_u32};
use crate::lsn::Lsn;

/// The size of the header of a record, in bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Stands at [`MARK_OFFSET`] in each record, so that records are found where nobody knows how long the one before was.
pub(crate) const MARK: [u8; 4] = *b"LREC";

/// The place of [`MARK`] in a record, in bytes.
pub(crate) const MARK_OFFSET: usize = 28;

/// The header of a record. The payload follows it, and zeros up to the next multiple of [`ALIGNMENT`].
///
/// | bytes | content |
/// |---|---|
/// | 0..4 | the CRC-32C of the rest of the header and the payload, begun with the checksum of the segment's header |
/// | 4..8 | the length of the payload in bytes |
/// | 8..16 | the LSN |
/// | 16..24 | the LSN up to which the log was durable when this record was written |
/// | 24..28 | the checksum of the record before |
/// | 28..32 | `LREC` |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHeader {
    pub(crate) checksum: u32,
    pub(crate) length: u32,
    pub(crate) lsn: Lsn,
    pub(crate) durable: Lsn,
    pub(crate) previous: u32,
}

impl RecordHeader {
    /// Decodes a header of [`RECORD_HEADER_BYTES`]; `None` if it has no mark.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes[MARK_OFFSET..RECORD_HEADER_BYTES] == MARK).then(|| Self {
            checksum: number_u32(bytes, 0),
            length: number_u32(bytes, 4),
            lsn: Lsn(number(bytes, 8)),
            durable: Lsn(number(bytes, 16)),
            previous: number_u32(bytes, 24),
        })
    }

    /// The size of the header and the payload.
    pub(crate) fn bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.length as usize
    }

    /// The size up to the next record.
    pub(crate) fn stored_bytes(&self) -> u64 {
        stored_bytes(self.length as usize)
    }
}

/// The bytes that a record with a payload of this length takes.
pub(crate) fn stored_bytes(length: usize) -> u64 {
    (RECORD_HEADER_BYTES + length).next_multiple_of(ALIGNMENT) as u64
}

/// Whether a record, from its header on, has the checksum that it says.
pub(crate) fn checksum_matches(segment: u32, record: &[u8]) -> bool {
    crc32c::crc32c_append(segment, &record[4..]) == number_u32(record, 0)
}

/// Appends a record to a buffer, and returns its checksum.
pub(crate) fn encode(
    buffer: &mut Vec<u8>,
    segment: u32,
    (lsn, durable, previous): (Lsn, Lsn, u32),
    payload: &[u8],
) -> u32 {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    buffer.extend_from_slice(&lsn.0.to_le_bytes());
    buffer.extend_from_slice(&durable.0.to_le_bytes());
    buffer.extend_from_slice(&previous.to_le_bytes());
    buffer.extend_from_slice(&MARK);
    buffer.extend_from_slice(payload);
    let checksum = crc32c::crc32c_append(segment, &buffer[start + 4..]);
    buffer[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    buffer.resize(start + stored_bytes(payload.len()) as usize, 0);
    checksum
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn record() -> (Vec<u8>, u32) {
        let mut bytes = Vec::new();
        let checksum = encode(&mut bytes, 77, (Lsn(5), Lsn(3), 0x1234), b"payload");
        (bytes, checksum)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let (bytes, checksum) = record();
        assert_eq!(bytes.len(), 40);
        let header = RecordHeader::decode(&bytes).unwrap();
        assert_eq!((header.lsn, header.durable), (Lsn(5), Lsn(3)));
        assert_eq!((header.checksum, header.previous), (checksum, 0x1234));
        assert_eq!((header.bytes(), header.stored_bytes()), (39, 40));
        assert!(checksum_matches(77, &bytes[..39]));
        assert!(!checksum_matches(78, &bytes[..39]), "a record of another segment");
    }

    #[test]
    fn each_bit_of_a_record_counts() {
        let (bytes, _) = record();
        for bit in 0..39 * 8 {
            let mut damaged = bytes[..39].to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!checksum_matches(77, &damaged), "bit {bit}");
        }
    }
}
