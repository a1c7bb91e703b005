//! The format of segments. All numbers are little-endian.
//!
//! A segment is a file: a block of [`HEADER_BLOCK_BYTES`] with its [header](SegmentHeader), then records, then zeros up to
//! the size that the header names. Records begin at multiples of [`ALIGNMENT`].

mod record;
mod segment;

pub(crate) use record::{
    MARK, MARK_OFFSET, RECORD_HEADER_BYTES, RecordHeader, checksum_matches, encode, stored_bytes,
};
pub(crate) use segment::{HEADER_BLOCK_BYTES, HeaderError, SegmentHeader};

/// Records begin at multiples of this, in bytes.
pub(crate) const ALIGNMENT: usize = 8;

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from(number_u32(bytes, at)) | u64::from(number_u32(bytes, at + 4)) << 32
}

fn number_u32(bytes: &[u8], at: usize) -> u32 {
    let byte = |index: usize| u32::from(bytes[at + index]);
    byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
}
