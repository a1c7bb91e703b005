//! The state of a database in a file, so that the log before it can be cut.
//!
//! The file has frames: a length, a checksum (CRC-32C) and as many bytes. The first frame says of which commit the state is;
//! then there are records that make the state of an empty database, and at last an empty frame. The name of the file has the
//! number of the commit. It is published as a whole.

use std::io;
use std::sync::Arc;

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

/// How many rows a record of the state has.
const RECORD_ROWS: usize = 1 << 16;

/// The length and the checksum of a frame.
const FRAME_HEADER_BYTES: usize = 8;

/// The name of the state after a commit.
fn name_of(lsn: Lsn) -> String {
    format!("{PREFIX}{:020}", lsn.0)
}

/// The commits of which a directory has states, ascending.
fn states(disk: &dyn Disk) -> Result<Vec<Lsn>, Error> {
    let names = disk.list("").map_err(|error| failed("", "cannot be listed", &error))?;
    let mut states: Vec<_> = names
        .iter()
        .filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok().map(Lsn))
        .filter(|lsn| names.contains(&name_of(*lsn)))
        .collect();
    states.sort_unstable();
    Ok(states)
}

fn failed(path: &str, what: &str, error: &io::Error) -> Error {
    let path = if path.is_empty() { "the directory of the database" } else { path };
    Error::State { path: path.into(), reason: format!("{what}: {error}") }
}

fn damaged(path: &str) -> Error {
    Error::State { path: path.into(), reason: "is damaged".into() }
}

/// Removes all states but the last one, and what a crash has left of one that was being written.
pub(crate) fn remove_old(disk: &dyn Disk) -> Result<(), Error> {
    let mut states = states(disk)?;
    let last = states.pop();
    let names = disk.list("").map_err(|error| failed("", "cannot be listed", &error))?;
    let unfinished = names.into_iter().filter(|name| {
        let name = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".temporary"));
        name.is_some_and(|name| name.len() == 20 && name.parse::<u64>().is_ok())
    });
    for name in states.into_iter().filter(|lsn| Some(*lsn) != last).map(name_of).chain(unfinished) {
        disk.remove(&name).map_err(|error| failed(&name, "cannot be removed", &error))?;
    }
    Ok(())
}

/// Writes a state. `next` are the numbers of the next table, file and inserted row.
///
/// # Errors
/// If the disk fails.
pub(crate) fn write<V: Clone>(
    disk: &dyn Disk,
    version: &DatabaseVersion<V>,
    next: [u64; 3],
    format: ValueFormat<V>,
) -> Result<(), Error> {
    let path = name_of(version.lsn);
    let cannot_write = |error: io::Error| failed(&path, "cannot be written", &error);
    let publication = Publication::create(disk, &path).map_err(cannot_write)?;
    let mut frames = Frames { file: publication.file(), length: 0 };
    let mut header = vec![FORMAT];
    put_number(&mut header, version.lsn.0);
    next.iter().for_each(|number| put_number(&mut header, *number));
    put_list(&mut header, &version.retired, |out, file| {
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
    for file in version.files() {
        for rows in changed_rows(&file.changes).chunks(RECORD_ROWS) {
            push(TableRecord { files: vec![(file.id, rows.to_vec())], ..TableRecord::new(id) })?;
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
/// [`Error::State`] if it is damaged.
pub(crate) fn read<V: Clone>(
    disk: &dyn Disk,
    format: ValueFormat<V>,
) -> Result<(Lsn, Replay<V>), Error> {
    let Some(lsn) = states(disk)?.pop() else { return Ok((Lsn(0), Replay::new())) };
    let path = name_of(lsn);
    let bytes = disk.read(&path).map_err(|error| failed(&path, "cannot be read", &error))?;
    let mut left = &bytes[..];
    let mut frame = || take_frame(&mut left).ok_or_else(|| damaged(&path));
    let mut replay = replay_after(frame()?, lsn).ok_or_else(|| damaged(&path))?;
    loop {
        match frame()? {
            [] => break,
            record => {
                let record = Record::decode(record, format).ok_or_else(|| damaged(&path))?;
                replay.apply(Lsn(0), record).map_err(|_| damaged(&path))?;
            }
        }
    }
    if left.is_empty() { Ok((lsn, replay)) } else { Err(damaged(&path)) }
}

/// An empty database with what the first frame of a state says.
fn replay_after<V: Clone>(header: &[u8], lsn: Lsn) -> Option<Replay<V>> {
    let mut reader = Reader::new(header);
    if reader.byte()? != FORMAT || reader.number()? != lsn.0 {
        return None;
    }
    let mut replay = Replay::skip_to([reader.number()?, reader.number()?, reader.number()?]);
    let retired = reader.list(|reader| {
        let (id, path) = (FileId(reader.number()?), reader.text()?.into());
        Some(RetiredFile { id, path, since: reader.number()?, lsn: Lsn(0) })
    })?;
    replay.retire(retired);
    reader.is_empty().then_some(replay)
}

fn take_frame<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (header, rest) = left.split_at_checked(FRAME_HEADER_BYTES)?;
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
    let (length, checksum) = (number(&header[..4])?, number(&header[4..])?);
    let (frame, rest) = rest.split_at_checked(length as usize)?;
    *left = rest;
    (crc32c::crc32c(frame) == checksum).then_some(frame)
}

/// A file of frames that is being written.
struct Frames<'a> {
    file: &'a dyn DiskFile,
    length: u64,
}

impl Frames<'_> {
    fn push(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES + frame.len());
        bytes.extend(length.to_le_bytes());
        bytes.extend(crc32c::crc32c(frame).to_le_bytes());
        bytes.extend(frame);
        self.file.write_at(&bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}
