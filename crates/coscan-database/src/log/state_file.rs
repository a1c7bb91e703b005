//! The state of a database in a file, so that the log before it can be cut.
//!
//! The file has frames: a length, a checksum (CRC-32C) and as many bytes. The first frame has the commit of the state, the
//! numbers of the next table, file and inserted row, and the retired files;
//! then there are records that make the state of an empty database, and at last an empty frame. The name of the file has the
//! number of the commit. It is published as a whole.

use std::io;
use std::sync::Arc;

use coscan_pdt::Sid;
use coscan_wal::{Disk, DiskFile, Lsn, Publication};

use super::changes::changed_rows;
use super::encoding::{Reader, ValueFormat, put_bytes, put_list, put_number};
use super::record::{Record, TableRecord};
use super::replay::Replay;
use crate::error::Error;
use crate::state::DatabaseVersion;
use crate::table::{FileId, RetiredFile, TableId};
use crate::version::TableVersion;

/// The first byte of the first frame.
const FORMAT: u8 = 1;

const PREFIX: &str = "state-";

/// How many rows a record of the state has at most.
const RECORD_ROWS: usize = 4096;

/// How many rows of a file are searched for changes at once.
const FILE_ROWS: u64 = 1 << 20;

/// The length and the checksum of a frame.
const FRAME_HEADER_BYTES: u64 = 12;

/// More tables, files or inserted rows than a database ever has.
const NUMBER_MAX: u64 = 1 << 62;

/// The name of the state after a commit.
fn name_of(lsn: Lsn) -> String {
    format!("{PREFIX}{:020}", lsn.0)
}

/// The commits of which a directory has states, ascending.
fn states(disk: &dyn Disk) -> Result<Vec<Lsn>, Error> {
    let names = disk.list("").map_err(|error| failed("", "cannot be listed", &error))?;
    let mut states: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let lsn = Lsn(name.strip_prefix(PREFIX)?.parse().ok()?);
            (*name == name_of(lsn)).then_some(lsn)
        })
        .collect();
    states.sort_unstable();
    Ok(states)
}

fn failed(path: &str, what: &str, error: &io::Error) -> Error {
    let path = if path.is_empty() { "the directory of the database" } else { path };
    Error::StateFile { path: path.into(), reason: format!("{what}: {error}") }
}

fn damaged(path: &str) -> Error {
    Error::DamagedState { path: path.into() }
}

/// Removes all states but the last one, and what a crash or an error has left of one that was being written.
///
/// # Errors
/// If the disk fails.
pub(crate) fn remove_old(disk: &dyn Disk) -> Result<(), Error> {
    let mut states = states(disk)?;
    states.pop();
    let names = disk.list("").map_err(|error| failed("", "cannot be listed", &error))?;
    let unfinished = names.into_iter().filter(|name| {
        let name = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".temporary"));
        name.is_some_and(|name| name.len() == 20 && name.parse::<u64>().is_ok())
    });
    let old: Vec<_> = states.into_iter().map(name_of).chain(unfinished).collect();
    if old.is_empty() {
        return Ok(());
    }
    // The last one has its name durably before the one before it is gone.
    disk.sync_directory("").map_err(|error| failed("", "cannot be synced", &error))?;
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    for name in old {
        match disk.remove(&name) {
            Err(error) if !is_gone(&error) => {
                return Err(failed(&name, "cannot be removed", &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes a state, unless it is written already. `next` are the numbers of the next table, file and inserted row.
///
/// # Errors
/// If the disk fails.
pub(crate) fn write<V: Clone>(
    disk: &dyn Disk,
    (version, retired): (&DatabaseVersion<V>, &[RetiredFile]),
    next: [u64; 3],
    format: ValueFormat<V>,
) -> Result<(), Error> {
    let path = name_of(version.lsn);
    let cannot_write =
        |error: io::Error| Error::WriteState { path: path.clone(), reason: error.to_string() };
    if states(disk)?.contains(&version.lsn) {
        // An attempt failed after it had its name.
        return disk.sync_directory("").map_err(cannot_write);
    }
    let publication = Publication::create(disk, &path).map_err(cannot_write)?;
    let mut frames = Frames { file: publication.file(), length: 0 };
    let mut header = vec![FORMAT];
    put_number(&mut header, version.lsn.0);
    next.iter().for_each(|number| put_number(&mut header, *number));
    put_list(&mut header, retired, |out, file| {
        put_number(out, file.id.0);
        put_bytes(out, file.path.as_bytes());
        put_number(out, file.since);
    });
    let written = frames.push(&header).and_then(|()| {
        for (id, (table, version)) in &*version.tables {
            let created = Record { created: vec![table.clone()], ..Record::default() };
            frames.push(&created.encode(format))?;
            table_records(*id, version, &mut |record| frames.push(&record.encode(format)))?;
        }
        frames.push(&[])
    });
    match written {
        Ok(()) => publication.publish(disk).map(drop).map_err(cannot_write),
        Err(error) => {
            // The error of writing is the one to be told.
            drop(publication.abandon(disk));
            Err(cannot_write(error))
        }
    }
}

/// Records that make a table of one without rows.
fn table_records<V: Clone>(
    id: TableId,
    version: &TableVersion<V>,
    push: &mut impl FnMut(Record<V>) -> io::Result<()>,
) -> io::Result<()> {
    let mut push = |table| push(Record { changed: vec![table], ..Record::default() });
    let files = version.files().iter();
    let added = files.map(|file| (file.id, file.file.clone())).collect();
    push(TableRecord { added, ..TableRecord::new(id) })?;
    for file in version.files().iter().filter(|file| !file.changes.is_empty()) {
        let mut first = 0;
        while first < file.file.rows {
            let end = first.saturating_add(FILE_ROWS).min(file.file.rows);
            for rows in changed_rows(&file.changes, Sid(first)..Sid(end)).chunks(RECORD_ROWS) {
                let files = vec![(file.id, rows.to_vec())];
                push(TableRecord { files, ..TableRecord::new(id) })?;
            }
            first = end;
        }
    }
    let mut inserted = version.inserted().tail().peekable();
    while inserted.peek().is_some() {
        let rows = inserted.by_ref().take(RECORD_ROWS);
        let rows = rows.map(|insert| (insert.id(), Some(Arc::clone(insert.row()))));
        push(TableRecord { inserted: rows.collect(), ..TableRecord::new(id) })?;
    }
    Ok(())
}

/// The last state of a directory, and the commit that it is of. Without one, it is an empty database before the first commit.
///
/// # Errors
/// [`Error::DamagedState`] if it is damaged, or if the disk fails.
pub(crate) fn read<V: Clone>(
    disk: &dyn Disk,
    format: ValueFormat<V>,
) -> Result<(Lsn, Replay<V>), Error> {
    let Some(lsn) = states(disk)?.pop() else { return Ok((Lsn(0), Replay::new())) };
    let path = name_of(lsn);
    let cannot_read = |error: io::Error| failed(&path, "cannot be read", &error);
    let file = disk.open(&path).map_err(cannot_read)?;
    let length = file.length().map_err(cannot_read)?;
    let mut frames = StoredFrames { file: &*file, offset: 0, length };
    let mut frame =
        || frames.next().map_err(cannot_read).and_then(|frame| frame.ok_or_else(|| damaged(&path)));
    let mut replay = replay_after(&frame()?, lsn).ok_or_else(|| damaged(&path))?;
    loop {
        let record = frame()?;
        if record.is_empty() {
            break;
        }
        let record = Record::decode(&record, format).ok_or_else(|| damaged(&path))?;
        replay.apply(Lsn(0), record).map_err(|_| damaged(&path))?;
    }
    if frames.offset == length { Ok((lsn, replay)) } else { Err(damaged(&path)) }
}

/// An empty database with what the first frame of a state says.
fn replay_after<V: Clone>(header: &[u8], lsn: Lsn) -> Option<Replay<V>> {
    let mut reader = Reader::new(header);
    if reader.byte()? != FORMAT || reader.number()? != lsn.0 {
        return None;
    }
    let next = [reader.number()?, reader.number()?, reader.number()?];
    if lsn.0 >= NUMBER_MAX || next.iter().any(|number| *number >= NUMBER_MAX) {
        return None;
    }
    let mut replay = Replay::skip_to(next);
    let retired = reader.list(|reader| {
        let (id, path) = (FileId(reader.number()?), reader.text()?.into());
        Some(RetiredFile { id, path, since: reader.number()?, lsn: Lsn(0) })
    })?;
    replay.retire(retired);
    reader.is_empty().then_some(replay)
}

/// The frames of a file.
struct StoredFrames<'a> {
    file: &'a dyn DiskFile,
    offset: u64,
    length: u64,
}

impl StoredFrames<'_> {
    /// The next frame; `None` if there is none, or it is damaged.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(header) = self.read(FRAME_HEADER_BYTES)? else { return Ok(None) };
        let (length, checksum) = header.split_at(8);
        let (Ok(length), Ok(checksum)) = (length.try_into(), checksum.try_into()) else {
            return Ok(None);
        };
        let frame = self.read(u64::from_le_bytes(length))?;
        Ok(frame.filter(|frame| crc32c::crc32c(frame) == u32::from_le_bytes(checksum)))
    }

    /// So many bytes, if the file has them.
    fn read(&mut self, count: u64) -> io::Result<Option<Vec<u8>>> {
        if count > self.length - self.offset {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(count).map_err(io::Error::other)?];
        let read = self.file.read_at(&mut bytes, self.offset)?;
        self.offset += count;
        Ok((read == bytes.len()).then_some(bytes))
    }
}

/// A file of frames that is being written.
struct Frames<'a> {
    file: &'a dyn DiskFile,
    length: u64,
}

impl Frames<'_> {
    fn push(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES as usize + frame.len());
        bytes.extend((frame.len() as u64).to_le_bytes());
        bytes.extend(crc32c::crc32c(frame).to_le_bytes());
        bytes.extend(frame);
        self.file.write_at(&bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}
