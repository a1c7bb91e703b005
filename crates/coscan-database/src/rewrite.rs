//! Files that a checkpoint replaces by new ones with the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use coscan_pdt::{FileChanges, RowMap, Sid};

use crate::error::Error;
use crate::log::{runs, stable_rows};
use crate::table::{DataFile, FileId};
use crate::table_writes::TableWrites;
use crate::version::{ChangedFile, TablePart, TableVersion};

/// What a checkpoint did to a table, for transactions that began before it.
pub(crate) struct TableRewrite<V: Clone> {
    /// The table after it.
    pub(crate) after: TableVersion<V>,
    pub(crate) files: Vec<FileRewrite<V>>,
}

/// A new file, and what it replaces.
#[derive(Clone)]
pub(crate) struct FileRewrite<V: Clone> {
    /// Its number; `None` if no rows were left, so that there is no file.
    pub(crate) id: Option<FileId>,
    pub(crate) file: Option<DataFile>,
    /// What it replaces, in the order of its rows.
    pub(crate) sources: Vec<Source<V>>,
    /// The inserted rows that are in it, as runs of their numbers.
    pub(crate) folded: Vec<Range<u64>>,
    /// The changes of its rows since they were written. The rows that were inserted since are in its tail, if it has those
    /// that were inserted before.
    pub(crate) changes: FileChanges<V>,
}

/// What a new file replaces.
#[derive(Clone)]
pub(crate) struct Source<V: Clone> {
    /// The file; `None` for the rows that no file had.
    pub(crate) id: Option<FileId>,
    pub(crate) map: RowMap<V>,
    /// The last version that was carried into the new file.
    pub(crate) last: FileChanges<V>,
}

impl<V: Clone> TableRewrite<V> {
    /// Whether rows that no file had are in a file now.
    pub(crate) fn has_inserted(&self) -> bool {
        self.files.iter().any(FileRewrite::has_inserted)
    }
}

impl<V: Clone> FileRewrite<V> {
    /// A new file with the rows of a part of a table.
    ///
    /// # Errors
    /// [`Error::NoSuchFile`] if the table does not have one of the files, [`Error::WrongRowCount`] if the new file has not as many
    /// rows.
    pub(crate) fn new(
        table: &TableVersion<V>,
        part: &TablePart,
        file: Option<(FileId, DataFile)>,
    ) -> Result<Self, Error> {
        let mut expected = 0;
        let mut sources = Vec::with_capacity(part.files.len() + 1);
        let mut add = |id, changes: &FileChanges<V>| {
            let map = RowMap::new(changes).starting_at(Sid(expected)).with_inserts_last();
            expected += map.row_count();
            sources.push(Source { id, map, last: changes.clone() });
        };
        for &id in &part.files {
            add(Some(id), &table.file(id).ok_or(Error::NoSuchFile)?.changes);
        }
        let mut folded = Vec::new();
        if part.inserted {
            add(None, table.inserted());
            folded = runs(table.inserted().tail().map(|insert| insert.id().0));
        }
        let written = file.as_ref().map_or(0, |(_, file)| file.rows);
        if written != expected {
            return Err(Error::WrongRowCount { written, expected });
        }
        let (id, file) = file.unzip();
        Ok(Self { id, file, sources, folded, changes: FileChanges::new(expected) })
    }

    /// Whether it has the rows that no file had.
    pub(crate) fn has_inserted(&self) -> bool {
        self.sources.last().is_some_and(|source| source.id.is_none())
    }

    /// The new file with its changes, without the rows that were inserted since.
    fn changed_file(&self) -> Option<ChangedFile<V>> {
        let changes = Arc::new(self.changes.split_tail().0);
        Some(ChangedFile { id: self.id?, file: self.file.clone()?, changes })
    }

    /// The files that it replaces.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = FileId> {
        self.sources.iter().filter_map(|source| source.id)
    }
}

/// Carries what was changed meanwhile into the new files, and hands over which of their rows are changed thereby. `since` are
/// the rows that each commit wrote meanwhile. Time grows with that, and with the number of files.
///
/// # Errors
/// [`Error::NoSuchFile`] if something else has replaced a file.
pub(crate) fn carry_changes<V: Clone + PartialEq>(
    rewrites: &mut [FileRewrite<V>],
    latest: &TableVersion<V>,
    since: &[&TableWrites],
    mut changed: impl FnMut(FileId, &FileChanges<V>, BTreeSet<Sid>),
) -> Result<(), Error> {
    let files: BTreeMap<_, _> = latest.files().iter().map(|file| (file.id, file)).collect();
    for FileRewrite { id: new, sources, changes, .. } in rewrites {
        let mut written = BTreeSet::new();
        for Source { id, map, last } in sources {
            for writes in since {
                let writes = match id {
                    Some(id) => writes.files.get(id),
                    None => Some(&writes.inserted),
                };
                let mapped = writes.map(|writes| map.map_writes(writes));
                written.extend(mapped.iter().flat_map(stable_rows));
            }
            let now = match id {
                Some(id) => &files.get(id).ok_or(Error::NoSuchFile)?.changes,
                None => latest.inserted(),
            };
            map.carry(last, now, changes)?;
            *last = FileChanges::clone(now);
        }
        if let Some(id) = new.filter(|_| !written.is_empty()) {
            changed(id, changes, written);
        }
    }
    Ok(())
}

/// The table with new files, each in the place of the first one that it replaces, or else the last one.
pub(crate) fn rewritten<V: Clone>(
    latest: &TableVersion<V>,
    rewrites: &[FileRewrite<V>],
) -> TableVersion<V> {
    let mut files = Vec::with_capacity(latest.files().len() + 1);
    let replaced = rewrites.iter().flat_map(|rewrite| {
        let first = rewrite.replaced().next();
        rewrite.replaced().map(move |id| (id, (Some(id) == first).then_some(rewrite)))
    });
    let replaced: BTreeMap<_, _> = replaced.collect();
    for file in latest.files() {
        match replaced.get(&file.id) {
            Some(Some(rewrite)) => files.extend(rewrite.changed_file()),
            Some(None) => {}
            None => files.push(file.clone()),
        }
    }
    let appended = rewrites.iter().filter(|rewrite| rewrite.replaced().next().is_none());
    files.extend(appended.filter_map(FileRewrite::changed_file));
    let with_inserted = rewrites.iter().find(|rewrite| rewrite.has_inserted());
    let inserted = match with_inserted {
        Some(rewrite) => Arc::new(rewrite.changes.split_tail().1),
        None => Arc::clone(latest.inserted()),
    };
    TableVersion::new(files.into(), inserted)
}
