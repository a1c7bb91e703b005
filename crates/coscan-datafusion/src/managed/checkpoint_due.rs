//! Which parts of a table a checkpoint writes anew.

use coscan_database::{ChangedFile, FileId, TablePart, TableVersion};
use coscan_storage::table::Value;

/// A file is written anew when a row of so many is changed: scans then pay for that more than the new file costs.
const CHANGED_ROWS_DIVISOR: u64 = 10;

/// The changes of a file that are too few to write it anew, whatever part of its rows they are.
const CHANGES_MIN: u64 = 4096;

/// The changes of a file for which it is written anew, however many rows it has.
const CHANGES_MAX: u64 = 1 << 20;

/// The inserted rows that are written to a file.
const INSERTED_MIN: u64 = 65_536;

/// Files of fewer rows are small.
const SMALL_FILE_ROWS: u64 = 1 << 19;

/// So many small files in a row become one.
const SMALL_FILES_MIN: usize = 8;

/// The most rows of a file that is made of several.
const FILE_ROWS_MAX: u64 = 4 << 20;

/// What a checkpoint writes anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// What costs scans more than it takes to write it.
    Due,
    /// All that is changed.
    All,
}

/// The parts of a table that a checkpoint writes anew, each as one file.
pub(crate) fn due_parts(version: &TableVersion<Value>, extent: Extent) -> Vec<TablePart> {
    let files: Vec<_> = version.files().iter().map(FileCounts::of).collect();
    parts_of(&files, version.inserted().visible_rows(), extent)
}

/// The numbers by which it is decided whether a file is written anew.
struct FileCounts {
    id: FileId,
    rows: u64,
    visible: u64,
    /// Deleted rows and cells with other values.
    changes: u64,
}

impl FileCounts {
    fn of(file: &ChangedFile<Value>) -> Self {
        let counts = file.changes.counts();
        Self {
            id: file.id,
            rows: file.file.rows,
            visible: file.changes.visible_rows(),
            changes: counts.deleted + counts.patched,
        }
    }

    fn is_due(&self, extent: Extent) -> bool {
        match extent {
            Extent::All => self.changes > 0,
            Extent::Due if self.changes > CHANGES_MAX || self.visible == 0 => true,
            Extent::Due => {
                self.changes >= CHANGES_MIN && self.changes > self.rows / CHANGED_ROWS_DIVISOR
            }
        }
    }

    fn is_small(&self) -> bool {
        self.visible < SMALL_FILE_ROWS
    }
}

fn parts_of(files: &[FileCounts], inserted: u64, extent: Extent) -> Vec<TablePart> {
    let mut due: Vec<bool> = files.iter().map(|file| file.is_due(extent)).collect();
    let mut start = 0;
    for run in files.chunk_by(|a, b| a.is_small() && b.is_small()) {
        if run.len() >= SMALL_FILES_MIN {
            due[start..start + run.len()].fill(true);
        }
        start += run.len();
    }
    let mut parts: Vec<(TablePart, u64)> = Vec::new();
    let mut is_open = false;
    for (file, is_due) in files.iter().zip(due) {
        if !is_due {
            is_open = false;
            continue;
        }
        match parts.last_mut().filter(|(_, rows)| is_open && rows + file.visible <= FILE_ROWS_MAX) {
            Some((part, rows)) => {
                part.files.push(file.id);
                *rows += file.visible;
            }
            None => {
                parts.push((TablePart { files: vec![file.id], inserted: false }, file.visible));
            }
        }
        is_open = true;
    }
    if inserted >= INSERTED_MIN || inserted > 0 && extent == Extent::All {
        match parts.last_mut().filter(|(_, rows)| is_open && rows + inserted <= FILE_ROWS_MAX) {
            Some((part, _)) => part.inserted = true,
            None => parts.push((TablePart { files: Vec::new(), inserted: true }, inserted)),
        }
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: u64, rows: u64, changes: u64) -> FileCounts {
        FileCounts { id: FileId(id), rows, visible: rows, changes }
    }

    fn parts(files: &[FileCounts], inserted: u64, extent: Extent) -> Vec<(Vec<u64>, bool)> {
        let parts = parts_of(files, inserted, extent).into_iter();
        parts.map(|part| (part.files.iter().map(|id| id.0).collect(), part.inserted)).collect()
    }

    #[test]
    fn files_are_due_when_a_tenth_of_their_rows_is_changed() {
        let files = [
            file(0, 1_000_000, 99_000),
            file(1, 1_000_000, 101_000),
            file(2, 100_000_000, 1_100_000),
            file(3, 1_000_000, 0),
            file(4, 1000, 999),
        ];
        assert_eq!(parts(&files, 100, Extent::Due), [(vec![1], false), (vec![2], false)]);
        let all = [(vec![0, 1], false), (vec![2], false), (vec![4], true)];
        assert_eq!(parts(&files, 100, Extent::All), all);
        assert_eq!(parts(&files[3..4], 0, Extent::All), []);
        assert_eq!(parts(&files[3..4], 65_536, Extent::Due), [(vec![], true)]);
    }

    #[test]
    fn a_file_without_rows_is_due() {
        let empty = FileCounts { id: FileId(0), rows: 10, visible: 0, changes: 10 };
        assert_eq!(parts(&[empty], 0, Extent::Due), [(vec![0], false)]);
    }

    #[test]
    fn many_small_files_become_one() {
        let small: Vec<_> = (0..8).map(|id| file(id, 65_536, 0)).collect();
        assert_eq!(parts(&small, 0, Extent::Due), [((0..8).collect(), false)]);
        assert_eq!(parts(&small[1..], 0, Extent::Due), []);
        let large: Vec<_> = (0..20).map(|id| file(id, 500_000, 0)).collect();
        let rows = |part: &(Vec<u64>, bool)| part.0.len();
        assert_eq!(parts(&large, 0, Extent::Due).iter().map(rows).collect::<Vec<_>>(), [8, 8, 4]);
    }
}
