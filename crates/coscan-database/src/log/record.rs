//! What a record of the log says.

use std::ops::Range;
use std::sync::Arc;

use coscan_pdt::{InsertId, Sid};

use super::encoding::{Reader, ValueFormat, put_bytes, put_list, put_number};
use crate::table::{DataFile, FileId, Table, TableId};

/// The first byte of each record: its format.
const FORMAT: u8 = 2;

/// A commit: all of it is in the log, or none. Tables are dropped first, then created, then changed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Record<V> {
    pub(crate) dropped: Vec<TableId>,
    pub(crate) created: Vec<Table>,
    pub(crate) changed: Vec<TableRecord<V>>,
    /// The retired files that are forgotten.
    pub(crate) forgotten: Vec<FileId>,
}

/// The changes of a commit in a table. Rows are what they are after the commit, so that a record says nothing about what
/// they were.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TableRecord<V> {
    pub(crate) table: TableId,
    /// The files that a checkpoint has replaced.
    pub(crate) replaced: Vec<Replaced>,
    /// The time since which they are retired.
    pub(crate) retired_since: u64,
    /// The files that were added, in order.
    pub(crate) added: Vec<(FileId, DataFile)>,
    /// The changed rows of each file, ascending. Later ones of a file replace earlier ones.
    pub(crate) files: Vec<(FileId, StoredRows<V>)>,
    /// More of them, encoded already.
    pub(crate) encoded_files: EncodedFiles,
    /// The inserted rows that are in files now, as runs of their numbers. Some may have been deleted since.
    pub(crate) folded: Vec<Range<u64>>,
    /// The inserted rows that are new or changed; `None` for those that were deleted.
    pub(crate) inserted: Vec<(InsertId, Option<Arc<[V]>>)>,
}

/// Changed rows of files, encoded one after the other.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct EncodedFiles {
    count: u64,
    bytes: Vec<u8>,
}

impl EncodedFiles {
    /// Adds changed rows of a file.
    pub(crate) fn add<V>(&mut self, id: FileId, rows: &StoredRows<V>, format: ValueFormat<V>) {
        self.count += 1;
        put_rows(&mut self.bytes, id, rows, format);
    }
}

/// A file that a checkpoint has replaced.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Replaced {
    pub(crate) id: FileId,
    /// The file in its place; `None` if there is none, or it is in the place of another one.
    pub(crate) by: Option<(FileId, DataFile)>,
}

/// Rows of a file after a commit, ascending.
pub(crate) type StoredRows<V> = Vec<(Sid, StoredRow<V>)>;

/// A row of a file after a commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum StoredRow<V> {
    Deleted,
    /// The columns with other values than the file has.
    Patched(Vec<(u32, V)>),
}

impl<V> Default for Record<V> {
    /// A commit of nothing.
    fn default() -> Self {
        let (dropped, created) = (Vec::new(), Vec::new());
        Self { dropped, created, changed: Vec::new(), forgotten: Vec::new() }
    }
}

impl<V> TableRecord<V> {
    /// A commit that changes nothing in a table.
    pub(crate) fn new(table: TableId) -> Self {
        Self {
            table,
            replaced: Vec::new(),
            retired_since: 0,
            added: Vec::new(),
            files: Vec::new(),
            encoded_files: EncodedFiles::default(),
            folded: Vec::new(),
            inserted: Vec::new(),
        }
    }
}

impl<V> Record<V> {
    pub(crate) fn encode(&self, format: ValueFormat<V>) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_list(&mut out, &self.dropped, |out, table| put_number(out, table.0));
        put_list(&mut out, &self.created, |out, table| {
            put_number(out, table.id.0);
            put_bytes(out, table.name.as_bytes());
            put_bytes(out, &table.definition);
        });
        put_list(&mut out, &self.changed, |out, table| table.encode(out, format));
        put_list(&mut out, &self.forgotten, |out, file| put_number(out, file.0));
        out
    }

    /// The record in these bytes; `None` if they are not one.
    pub(crate) fn decode(bytes: &[u8], format: ValueFormat<V>) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != FORMAT {
            return None;
        }
        let record = Self {
            dropped: reader.list(|reader| reader.number().map(TableId))?,
            created: reader.list(|reader| {
                let id = TableId(reader.number()?);
                Some(Table { id, name: reader.text()?.into(), definition: reader.bytes()?.into() })
            })?,
            changed: reader.list(|reader| TableRecord::decode(reader, format))?,
            forgotten: reader.list(|reader| reader.number().map(FileId))?,
        };
        reader.is_empty().then_some(record)
    }
}

impl<V> TableRecord<V> {
    fn encode(&self, out: &mut Vec<u8>, format: ValueFormat<V>) {
        put_number(out, self.table.0);
        put_list(out, &self.replaced, |out, replaced| {
            put_number(out, replaced.id.0);
            put_list(out, replaced.by.as_slice(), put_file);
        });
        put_number(out, self.retired_since);
        put_list(out, &self.added, put_file);
        put_number(out, self.files.len() as u64 + self.encoded_files.count);
        self.files.iter().for_each(|(id, rows)| put_rows(out, *id, rows, format));
        out.extend_from_slice(&self.encoded_files.bytes);
        put_list(out, &self.folded, |out, run| {
            put_number(out, run.start);
            put_number(out, run.end - run.start);
        });
        put_list(out, &self.inserted, |out, (id, row)| {
            put_number(out, id.0);
            match row {
                None => put_number(out, 0),
                Some(row) => {
                    put_number(out, row.len() as u64 + 1);
                    row.iter().for_each(|value| (format.encode)(value, out));
                }
            }
        });
    }

    fn decode(reader: &mut Reader<'_>, format: ValueFormat<V>) -> Option<Self> {
        Some(Self {
            table: TableId(reader.number()?),
            replaced: reader.list(|reader| {
                let id = FileId(reader.number()?);
                let mut by = reader.list(read_file)?;
                (by.len() <= 1).then(|| Replaced { id, by: by.pop() })
            })?,
            retired_since: reader.number()?,
            added: reader.list(read_file)?,
            files: reader.list(|reader| {
                let id = FileId(reader.number()?);
                let mut next = 0_u64;
                let rows = reader.list(|reader| {
                    next = next.checked_add(reader.number()?)?;
                    Some((Sid(next), StoredRow::decode(reader, format)?))
                })?;
                Some((id, rows))
            })?,
            encoded_files: EncodedFiles::default(),
            folded: reader.list(|reader| {
                let start = reader.number()?;
                Some(start..start.checked_add(reader.number()?)?)
            })?,
            inserted: reader.list(|reader| {
                let id = InsertId(reader.number()?);
                let row = match reader.number()? {
                    0 => None,
                    values => {
                        Some((1..values).map(|_| (format.decode)(reader)).collect::<Option<_>>()?)
                    }
                };
                Some((id, row))
            })?,
        })
    }
}

fn put_rows<V>(out: &mut Vec<u8>, id: FileId, rows: &StoredRows<V>, format: ValueFormat<V>) {
    put_number(out, id.0);
    let mut next = 0;
    put_list(out, rows, |out, (sid, row)| {
        put_number(out, sid.0 - next); // Neighbours take one byte.
        next = sid.0;
        match row {
            StoredRow::Deleted => put_number(out, 0),
            StoredRow::Patched(cells) => {
                put_number(out, cells.len() as u64 + 1);
                for (column, value) in cells {
                    put_number(out, u64::from(*column));
                    (format.encode)(value, out);
                }
            }
        }
    });
}

fn put_file(out: &mut Vec<u8>, (id, file): &(FileId, DataFile)) {
    put_number(out, id.0);
    put_bytes(out, file.path.as_bytes());
    put_number(out, file.rows);
}

fn read_file(reader: &mut Reader<'_>) -> Option<(FileId, DataFile)> {
    let id = FileId(reader.number()?);
    Some((id, DataFile { path: reader.text()?.into(), rows: reader.number()? }))
}

impl<V> StoredRow<V> {
    fn decode(reader: &mut Reader<'_>, format: ValueFormat<V>) -> Option<Self> {
        let cells = match reader.number()? {
            0 => return Some(Self::Deleted),
            cells => (1..cells).map(|_| {
                let column = u32::try_from(reader.number()?).ok()?;
                Some((column, (format.decode)(reader)?))
            }),
        };
        cells.collect::<Option<_>>().map(Self::Patched)
    }
}
