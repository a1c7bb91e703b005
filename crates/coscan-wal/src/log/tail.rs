//! The end of the log: which records of the last segment count, and whether what is bad there is torn or damaged.
//!
//! Records are written in groups, and each group is synced before the next one is written. So a crash can only have torn
//! the last group, in which any sector may be missing. Each record says up to where the log was durable when it was
//! written. **A bad record was durable if and only if a good record says so**: one that was written later and is found after
//! it. If none does, the bad record is in the last group, or the last group is lost as a whole: nobody can tell whether it
//! was acknowledged. It is then taken for torn, and reported.
//!
//! A segment that was cut to its records, by [`Log::close`](super::Log::close) or the next opening, is shorter than its header
//! says. All its records were durable before, so nothing that is bad there is torn.

use std::collections::VecDeque;
use std::io;

use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::{
    ALIGNMENT, MARK, MARK_OFFSET, RECORD_HEADER_BYTES, RecordHeader, checksum_matches,
};
use crate::lsn::Lsn;
use crate::reader::{READ_BYTES, RecordReader};

use super::segments::Segment;

/// The end of the last segment.
#[derive(Debug)]
pub(super) struct Tail {
    /// The last good record and its checksum, and where it ends.
    pub(super) last: Lsn,
    pub(super) previous: u32,
    pub(super) end: u64,
    /// Where the records begin of which no other one says that they are durable.
    pub(super) unsure: u64,
    /// Where the bytes of a torn write end; `end` if there are none.
    pub(super) torn_end: u64,
    /// Whether the segment was cut: it is durable as it is.
    pub(super) is_cut: bool,
}

/// Finds the end of the last segment.
pub(super) fn find(reader: &mut RecordReader, segment: &Segment) -> Result<Tail, LogError> {
    let failed = |error| LogError::io("read", &segment.path, error);
    let mut durable = reader.last();
    // Where the records begin that may not be durable.
    let mut unsure: VecDeque<(Lsn, u64)> = VecDeque::new();
    while let Some(header) = reader.advance().map_err(failed)? {
        unsure.push_back((header.lsn, reader.offset()));
        durable = durable.max(header.durable);
        while unsure.front().is_some_and(|(lsn, _)| *lsn <= durable) {
            unsure.pop_front();
        }
    }
    let (last, end) = (reader.last(), reader.offset());
    let is_cut = reader.length() < segment.header.bytes;
    let rest = Rest::read(reader, segment.checksum, last.next()).map_err(failed)?;
    let corrupt = |reason| segment.corrupt(end, last.next(), reason);
    if let Some((lsn, offset)) = rest.proof {
        return Err(corrupt(format!("{lsn} at byte {offset} says that it was durable")));
    }
    if is_cut && end < reader.length() {
        return Err(corrupt("the segment was closed, so all its records were durable".into()));
    }
    Ok(Tail {
        last,
        previous: reader.previous(),
        end,
        unsure: unsure.front().map_or(end, |(_, offset)| *offset),
        torn_end: rest.end.max(end),
        is_cut,
    })
}

/// What is after the last good record.
#[derive(Debug)]
struct Rest {
    /// Where the last byte that is not zero ends.
    end: u64,
    /// A good record, and its place, that says that the bad record was durable.
    proof: Option<(Lsn, u64)>,
}

impl Rest {
    fn read(reader: &RecordReader, segment: u32, bad: Lsn) -> io::Result<Self> {
        let (file, length) = (reader.file(), reader.length());
        let mut rest = Self { end: 0, proof: None };
        let mut offset = reader.offset();
        let mut buffer = vec![0; READ_BYTES.min(length.saturating_sub(offset) as usize)];
        while offset < length && rest.proof.is_none() {
            let read = file.read_at(&mut buffer, offset)?;
            let bytes = &buffer[..read];
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                rest.end = offset + last as u64 + 1;
                rest.proof = find_proof(file, bytes, (offset, length), segment, bad)?;
            }
            if offset + read as u64 >= length || read < RECORD_HEADER_BYTES {
                break;
            }
            // A header may cross the end of what was read.
            offset += (read - RECORD_HEADER_BYTES + ALIGNMENT) as u64 / 8 * 8;
        }
        Ok(rest)
    }
}

/// Looks for a good record which says that another one was durable.
fn find_proof(
    file: &dyn DiskFile,
    bytes: &[u8],
    (offset, length): (u64, u64),
    segment: u32,
    bad: Lsn,
) -> io::Result<Option<(Lsn, u64)>> {
    let places = 0..(bytes.len() + 1).saturating_sub(RECORD_HEADER_BYTES);
    for place in places.step_by(ALIGNMENT) {
        if bytes[place + MARK_OFFSET..][..MARK.len()] != MARK {
            continue;
        }
        let Some(header) = RecordHeader::decode(&bytes[place..]) else { continue };
        let at = offset + place as u64;
        let says_so = header.durable >= bad && header.durable < header.lsn;
        if !says_so || at + header.bytes() as u64 > length {
            continue;
        }
        let mut record = vec![0; header.bytes()];
        let read = file.read_at(&mut record, at)?;
        if read == record.len() && checksum_matches(segment, &record) {
            return Ok(Some((header.lsn, at)));
        }
    }
    Ok(None)
}
