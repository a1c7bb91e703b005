//! A file with its changes as one list of rows, and random changes.

use std::collections::BTreeMap;
use std::ops::Range;

use coscan_pdt::*;
use proptest::prelude::*;

pub(super) const COLUMNS: u32 = 3;

/// Values are numbers; inserts of one place are ordered by a small number, so that some are equal.
pub(super) type Version = FileChanges<i64, u8>;

/// A row as a query sees it: its name, its sort key if it is an insert, its values.
pub(super) type Seen = (RowId, u8, Vec<i64>);

/// A change of something that is found when it is applied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Delete(Row),
    Patch(Row, u32, i64),
    /// Before a stable row or, if there is none, at the end; with this sort key.
    Insert(Option<u64>, u8),
}

/// A row by a number, of which only the remainder matters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row {
    Stable(u64),
    Insert(u64),
}

/// What a change turned out to be for one file.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Delete(RowId),
    Patch(RowId, u32, i64),
    Insert(Insert<i64, u8>),
}

impl Change {
    /// Rows are found among those of the file and one more, inserts among those before `next` and one more. An insert takes
    /// `next`.
    pub(super) fn resolve(self, row_count: u64, next: &mut u64) -> Write {
        let row = |row: Row, next: u64| match row {
            Row::Stable(number) => Sid(number % (row_count + 1)).into(),
            Row::Insert(number) => InsertId(number % (next + 1)).into(),
        };
        match self {
            Self::Delete(at) => Write::Delete(row(at, *next)),
            Self::Patch(at, column, value) => Write::Patch(row(at, *next), column, value),
            Self::Insert(before, sort_key) => {
                let place =
                    before.map_or(Place::Tail, |row| Place::Before(Sid(row % (row_count + 1))));
                let id = *next;
                *next += 1;
                let row: Vec<i64> =
                    (0..COLUMNS).map(|column| -(id as i64 * 10) - i64::from(column)).collect();
                Write::Insert(Insert::sorted(InsertId(id), place, sort_key, row))
            }
        }
    }
}

impl Write {
    pub(super) fn name(&self) -> RowId {
        match self {
            Self::Delete(row) | Self::Patch(row, ..) => *row,
            Self::Insert(insert) => insert.id().into(),
        }
    }

    pub(super) fn apply(&self, version: &mut Version) -> Result<(), Error> {
        match self.clone() {
            Self::Delete(row) => version.delete(row),
            Self::Patch(row, column, value) => version.patch(row, column, value),
            Self::Insert(insert) => version.insert(insert),
        }
    }

    pub(super) fn apply_in(&self, transaction: &mut Transaction<i64, u8>) -> Result<(), Error> {
        match self.clone() {
            Self::Delete(row) => transaction.delete(row),
            Self::Patch(row, column, value) => transaction.patch(row, column, value),
            Self::Insert(insert) => transaction.insert(insert),
        }
    }
}

/// Rows near the ends of blocks and of the file, and any.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![0..8_u64, 60..70_u64, 120..136_u64, 250..260_u64, 4_090..4_104_u64, 0..10_000_u64]
}

fn rows() -> impl Strategy<Value = Row> {
    prop_oneof![3 => numbers().prop_map(Row::Stable), 1 => (0..1_000_u64).prop_map(Row::Insert)]
}

pub(super) fn changes(most: usize) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        rows().prop_map(Change::Delete),
        (rows(), 0..COLUMNS, 0..3_i64)
            .prop_map(|(row, column, value)| Change::Patch(row, column, value)),
        (prop::option::weighted(0.8, numbers()), 0..3_u8)
            .prop_map(|(before, key)| Change::Insert(before, key)),
    ];
    prop::collection::vec(change, 0..most)
}

/// Changes of few cells, so that values are often restored. The first rows are not deleted.
pub(super) fn changes_of_few_cells(most: usize) -> impl Strategy<Value = Vec<Change>> {
    let places = prop_oneof![0..4_u64, 126..130_u64];
    let deleted = prop_oneof![(2..6_u64).prop_map(Row::Stable), (0..40_u64).prop_map(Row::Insert)];
    let patched = prop_oneof![
        6 => (0..2_u64).prop_map(Row::Stable),
        1 => places.clone().prop_map(Row::Stable),
        1 => (0..40_u64).prop_map(Row::Insert),
    ];
    let change = prop_oneof![
        1 => deleted.prop_map(Change::Delete),
        8 => (patched, 0..2_i64).prop_map(|(row, value)| Change::Patch(row, 0, value)),
        1 => (prop::option::weighted(0.8, places), 0..2_u8)
            .prop_map(|(before, key)| Change::Insert(before, key)),
    ];
    prop::collection::vec(change, 1..most)
}

/// Mostly files of few blocks, where blocks are small; sometimes of one, two or three large ones.
pub(super) fn row_counts() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..10_u64,
        1 => Just(128),
        24 => 100..400_u64,
        1 => Just(4_096),
        2 => 4_095..8_300_u64,
    ]
}

/// The values of a stable row in the file: all are different.
pub(super) fn stored(sid: Sid) -> Vec<i64> {
    (0..COLUMNS).map(|column| 1_000 + sid.0 as i64 * 10 + i64::from(column)).collect()
}

#[derive(Clone)]
struct ModelRow {
    seen: Seen,
    place: Place,
    is_deleted: bool,
}

/// All rows in order, stable ones also if they were deleted.
#[derive(Clone)]
pub(super) struct Model {
    rows: Vec<ModelRow>,
}

impl Model {
    pub(super) fn new(row_count: u64) -> Self {
        let row = |sid| ModelRow {
            seen: (sid, 0, stored(stable(sid))),
            place: Place::Before(stable(sid)),
            is_deleted: false,
        };
        Self { rows: (0..row_count).map(|sid| row(Sid(sid).into())).collect() }
    }

    pub(super) fn visible(&self) -> Vec<Seen> {
        let rows = self.rows.iter().filter(|row| !row.is_deleted);
        rows.map(|row| row.seen.clone()).collect()
    }

    /// Returns whether the change is possible.
    pub(super) fn apply(&mut self, write: &Write) -> bool {
        let found = self.rows.iter().position(|row| row.seen.0 == write.name() && !row.is_deleted);
        match (write, found) {
            (Write::Delete(RowId::Stable(_)), Some(at)) => self.rows[at].is_deleted = true,
            (Write::Delete(RowId::Insert(_)), Some(at)) => drop(self.rows.remove(at)),
            (Write::Patch(_, column, value), Some(at)) => {
                self.rows[at].seen.2[*column as usize] = *value
            }
            (Write::Insert(insert), None) => {
                let row =
                    ModelRow { seen: of_insert(insert), place: insert.place(), is_deleted: false };
                let Some(at) = self.index(&row) else { return false };
                self.rows.insert(at, row);
            }
            _ => return false,
        }
        true
    }

    /// Where an insert stands among all rows.
    fn index(&self, insert: &ModelRow) -> Option<usize> {
        let mut at = match insert.place {
            Place::Tail => self.rows.len(),
            Place::Before(sid) => self.rows.iter().position(|row| row.seen.0 == sid.into())?,
        };
        let rank = |row: &ModelRow| (row.seen.1, row.seen.0);
        while at > 0
            && is_insert(&self.rows[at - 1], insert.place)
            && rank(&self.rows[at - 1]) > rank(insert)
        {
            at -= 1;
        }
        Some(at)
    }
}

/// What a checkpoint makes of names: those of the rows of its version become positions.
pub(super) struct Renaming<'a> {
    at: &'a Model,
    names: BTreeMap<RowId, Sid>,
}

impl<'a> Renaming<'a> {
    pub(super) fn new(at: &'a Model) -> Self {
        let names = (0..).zip(at.visible()).map(|(sid, (row, ..))| (row, Sid(sid))).collect();
        Self { at, names }
    }

    pub(super) fn row(&self, row: RowId) -> RowId {
        self.names.get(&row).map_or(row, |sid| (*sid).into())
    }

    pub(super) fn write(&self, write: &Write) -> Write {
        match write {
            Write::Delete(row) => Write::Delete(self.row(*row)),
            Write::Patch(row, column, value) => Write::Patch(self.row(*row), *column, *value),
            Write::Insert(insert) => Write::Insert(self.insert(of_insert(insert), insert.place())),
        }
    }

    /// An insert that the checkpoint's version does not have, before the row of it that follows.
    fn insert(&self, seen: Seen, place: Place) -> Insert<i64, u8> {
        let row = ModelRow { seen, place, is_deleted: false };
        let index = self.at.index(&row).expect("its place is in the file");
        let before = self.at.rows[..index].iter().filter(|row| !row.is_deleted).count();
        let place = match before {
            end if end == self.names.len() => Place::Tail,
            before => Place::Before(Sid(before as u64)),
        };
        let (name, key, values) = row.seen;
        let RowId::Insert(id) = name else { unreachable!("an insert") };
        Insert::sorted(id, place, key, values)
    }

    /// The rows of a later version of the old file on the new one.
    pub(super) fn model(&self, later: &Model) -> Model {
        let visible: BTreeMap<RowId, Vec<i64>> =
            later.visible().into_iter().map(|(row, _, values)| (row, values)).collect();
        let stable =
            (0..).map(Sid).zip(self.at.visible()).map(|(sid, (row, _, stored))| ModelRow {
                seen: (sid.into(), 0, visible.get(&row).unwrap_or(&stored).clone()),
                place: Place::Before(sid),
                is_deleted: !visible.contains_key(&row),
            });
        let mut model = Model { rows: stable.collect() };
        for row in later.rows.iter().filter(|row| is_insert(row, row.place)) {
            if !self.names.contains_key(&row.seen.0) {
                assert!(model.apply(&Write::Insert(self.insert(row.seen.clone(), row.place))));
            }
        }
        model
    }
}

fn stable(row: RowId) -> Sid {
    match row {
        RowId::Stable(sid) => sid,
        RowId::Insert(_) => unreachable!("a stable row"),
    }
}

fn is_insert(row: &ModelRow, place: Place) -> bool {
    matches!(row.seen.0, RowId::Insert(_)) && row.place == place
}

/// A version and its model after the same changes. Those that are impossible are refused by both.
pub(super) fn apply_all(
    version: &mut Version,
    model: &mut Model,
    changes: &[Change],
    next: &mut u64,
) {
    for change in changes {
        let write = change.resolve(version.row_count(), next);
        assert_eq!(write.apply(version).is_ok(), model.apply(&write), "{write:?}");
    }
}

/// What a scan sees of a range: the file's rows, merged with the changes of the range. All ways to read must agree.
pub(super) fn scan(
    version: &Version,
    range: Range<Sid>,
    stored: &impl Fn(Sid) -> Vec<i64>,
) -> Vec<Seen> {
    let changes = version.range(range);
    let sids = changes.rows().start.0..changes.rows().end.0;

    let deleted: Vec<u64> = changes.deleted().map(|sid| sid.0).collect();
    let of_runs: Vec<u64> = changes.deleted_runs().flat_map(|run| run.start.0..run.end.0).collect();
    let runs: Vec<Range<Sid>> = changes.deleted_runs().collect();
    let expected: Vec<u64> = sids.clone().filter(|sid| version.is_deleted(Sid(*sid))).collect();
    assert_eq!((&deleted, &of_runs), (&expected, &expected));
    assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "{runs:?}");
    assert_eq!(changes.deleted_count(), deleted.len() as u64);
    match changes.deleted_mask() {
        None => assert!(deleted.is_empty()),
        Some(mask) => {
            assert!(mask.offset < 64 && mask.len as u64 == sids.end - sids.start);
            let bits =
                (0..mask.words.len() * 64).filter(|at| mask.words[at / 64] >> (at % 64) & 1 == 1);
            let rows: Vec<u64> =
                bits.map(|at| at as u64 - mask.offset as u64 + sids.start).collect();
            assert_eq!(rows, deleted);
        }
    }

    let mut patches = BTreeMap::new();
    for column in 0..COLUMNS {
        let of_column: Vec<_> = changes.patches(column).collect();
        assert!(of_column.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(changes.has_patches(column), !of_column.is_empty());
        assert_eq!(changes.patched_columns().contains(&column), !of_column.is_empty());
        patches.extend(of_column.into_iter().map(|(sid, value)| ((sid, column), *value)));
    }
    let inserts: Vec<_> = changes.inserts().collect();
    assert_eq!(changes.insert_count(), inserts.len() as u64);
    assert_eq!(changes.is_empty(), deleted.is_empty() && patches.is_empty() && inserts.is_empty());

    let (mut seen, mut inserts) = (Vec::new(), inserts.into_iter().peekable());
    for sid in sids.map(Sid) {
        let before =
            std::iter::from_fn(|| inserts.next_if(|insert| insert.place() == Place::Before(sid)));
        seen.extend(before.map(of_insert));
        let mut values = stored(sid);
        let of_row: Vec<_> = patches.range((sid, 0)..(Sid(sid.0 + 1), 0)).collect();
        assert!(
            version
                .row_patches(sid)
                .eq(of_row.iter().map(|((_, column), value)| (*column, *value)))
        );
        of_row.into_iter().for_each(|((_, column), value)| values[*column as usize] = *value);
        if version.is_deleted(sid) {
            assert_eq!(values, stored(sid), "a deleted row has no patches");
        } else {
            seen.push((sid.into(), 0, values));
        }
    }
    assert_eq!(inserts.next(), None, "each insert of the range is before one of its rows");
    assert_eq!(changes.visible_rows(), seen.len() as u64);
    seen
}

fn of_insert(insert: &Insert<i64, u8>) -> Seen {
    (insert.id().into(), *insert.sort_key(), insert.row().to_vec())
}

/// What a scan sees of a version: chunk by chunk, whose ends are given, in order of the chunks. Chunks are read in another
/// order.
pub(super) fn scan_chunks(
    version: &Version,
    ends: &[u64],
    stored: &impl Fn(Sid) -> Vec<i64>,
) -> Vec<Seen> {
    let mut ends: Vec<u64> = ends.iter().map(|end| end % (version.row_count() + 1)).collect();
    ends.extend([0, version.row_count()]);
    ends.sort_unstable();
    let mut chunks: Vec<_> = ends.windows(2).enumerate().collect();
    chunks.sort_by_key(|(number, _)| (number * 7) % 5);
    let mut parts = BTreeMap::new();
    for (number, ends) in chunks {
        parts.insert(number, scan(version, Sid(ends[0])..Sid(ends[1]), stored));
    }
    let mut seen: Vec<Seen> = parts.into_values().flatten().collect();
    seen.extend(version.tail().map(of_insert));
    seen
}

/// Checks that a version has the rows of its model.
pub(super) fn assert_same(version: &Version, model: &Model) {
    assert_same_on(&stored, version, model);
}

/// Checks that a version of a file has the rows of its model.
pub(super) fn assert_same_on(file: &impl Fn(Sid) -> Vec<i64>, version: &Version, model: &Model) {
    assert_eq!(scan_chunks(version, &[], file), model.visible());
    assert_eq!(version.visible_rows(), model.visible().len() as u64);
}
