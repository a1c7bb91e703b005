//! Opening: what a crash has left becomes a durable log, and a new segment is begun.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, DiskLock, parent};
use crate::durable_rename::{join, remove_temporaries};
use crate::error::LogError;
use crate::format::{HEADER_BLOCK_BYTES, SegmentHeader};
use crate::lsn::Lsn;
use crate::reader::{READ_BYTES, RecordReader};
use crate::recovery::{Recovery, SealedSegment, TornTail};

use super::active::Active;
use super::segments::{self, Segment};
use super::tail::{self, Tail};
use super::{Log, LogOptions};

pub(super) fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(Log, Recovery), LogError> {
    let lock = enter(&*disk, &options)?;
    let mut found = segments::list(&*disk, &options.directory)?;
    let end = match found.last() {
        Some(last) => Some(settle(&*disk, last)?),
        None => None,
    };
    let header = SegmentHeader {
        first: end.as_ref().map_or(Lsn(1), |tail| tail.last.next()),
        opening: found.last().map_or(1, |last| last.header.opening + 1),
        bytes: options.segment_bytes.max(HEADER_BLOCK_BYTES as u64),
        previous: end.as_ref().map_or(0, |tail| tail.previous),
    };
    // Nothing is written after a tail that may have been torn: a segment has the records of one opening.
    let active = Active::publish(&*disk, &options.directory, header)?;
    found.push(active.segment.clone());
    let torn = match (&end, found.iter().rev().nth(1)) {
        (Some(tail), Some(last)) => torn_tail(last, tail),
        _ => None,
    };
    let recovery = Recovery::new(Arc::clone(&disk), seal(&found), header.first, torn);
    let log = Log {
        segments: remove_empty(&*disk, found)?,
        next: header.first,
        durable: header.first.before(),
        previous: header.previous,
        poisoned: None,
        buffer: Vec::new(),
        active,
        disk,
        options,
        _lock: lock,
    };
    Ok((log, recovery))
}

/// Creates the directory durably, locks it, and removes what was not published.
fn enter(disk: &dyn Disk, options: &LogOptions) -> Result<Box<dyn DiskLock>, LogError> {
    let directory = &*options.directory;
    let failed = |action| move |error| LogError::io(action, directory, error);
    if !directory.is_empty() {
        disk.create_directory(directory).map_err(failed("create"))?;
        disk.sync_directory(parent(directory)).map_err(failed("sync"))?;
    }
    let path = join(directory, "LOCK");
    let lock = disk.lock(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => LogError::Locked { path: path.clone() },
        _ => LogError::io("lock", &path, error),
    })?;
    remove_temporaries(disk, directory).map_err(failed("clean"))?;
    Ok(lock)
}

/// Finds the end of the last segment, makes its records durable, and cuts what is after them.
fn settle(disk: &dyn Disk, last: &Segment) -> Result<Tail, LogError> {
    let failed = |action| move |error| LogError::io(action, &last.path, error);
    let file = disk.open_writable(&last.path).map_err(failed("open"))?;
    let mut reader =
        RecordReader::new(file, &last.header, last.checksum).map_err(failed("read"))?;
    let tail = tail::find(&mut reader, last)?;
    if !tail.is_cut {
        rewrite(reader.file(), tail.unsure, tail.end).map_err(failed("rewrite"))?;
        reader.file().sync().map_err(failed("sync"))?;
        reader.file().truncate(tail.end).map_err(failed("cut"))?;
        reader.file().sync().map_err(failed("sync"))?;
    }
    Ok(tail)
}

/// Writes a range as it is. A sync that failed may have left it clean without writing it, so that syncing it again would do
/// nothing.
fn rewrite(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES.min((to - from) as usize)];
    let mut offset = from;
    while offset < to {
        let bytes = buffer.len().min((to - offset) as usize);
        let read = file.read_at(&mut buffer[..bytes], offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write_at(&buffer[..read], offset)?;
        offset += read as u64;
    }
    Ok(())
}

fn torn_tail(last: &Segment, tail: &Tail) -> Option<TornTail> {
    (tail.torn_end > tail.end).then(|| TornTail {
        path: last.path.clone(),
        offset: tail.end,
        bytes: tail.torn_end - tail.end,
        lsn: tail.last.next(),
    })
}

/// All segments with records: the header of the next one says where they end.
fn seal(segments: &[Segment]) -> Vec<SealedSegment> {
    let with_records =
        segments.windows(2).filter(|pair| pair[0].header.first < pair[1].header.first);
    let sealed = with_records.map(|pair| SealedSegment {
        segment: pair[0].clone(),
        last: pair[1].header.first.before(),
        checksum_last: pair[1].header.previous,
        next_path: pair[1].path.clone(),
    });
    sealed.collect()
}

/// Removes segments without records. If a crash brings them back, they have none then, either.
fn remove_empty(disk: &dyn Disk, segments: Vec<Segment>) -> Result<VecDeque<Segment>, LogError> {
    let mut kept = VecDeque::new();
    let mut next = segments.iter().skip(1);
    for segment in &segments {
        if next.next().is_some_and(|next| next.header.first == segment.header.first) {
            disk.remove(&segment.path)
                .map_err(|error| LogError::io("remove", &segment.path, error))?;
        } else {
            kept.push_back(segment.clone());
        }
    }
    Ok(kept)
}
