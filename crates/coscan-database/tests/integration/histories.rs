//! Histories of transactions against a model that has all rows in maps.

use std::collections::{BTreeMap, BTreeSet};

use coscan_database::{
    Checkpoint, DataFile, Database, Error, FileId, TableId, TablePart, TableRowId, TableVersion,
    Transaction,
};
use coscan_pdt::Sid;
use proptest::prelude::*;

/// Columns of each table.
pub(super) const COLUMNS: u32 = 3;

/// A step of a history. Transactions, tables and rows are found by numbers, of which only the remainder matters.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    Insert(usize, usize, i64),
    AddFile(usize, usize, u64),
    Update(usize, usize, usize, u32, i64),
    /// Counts a row as written.
    Touch(usize, usize, usize),
    Delete(usize, usize, usize),
    Commit(usize),
    RollBack(usize),
    /// Begins a checkpoint of a table: of the files whose bits are set, and of the inserted rows or not.
    Checkpoint(usize, u8, bool),
    /// The table switches to the files of a checkpoint.
    Switch(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let n = || any::<usize>();
    prop_oneof![
        3 => Just(Step::Begin),
        3 => (n(), n(), any::<i64>()).prop_map(|(t, table, value)| Step::Insert(t, table, value)),
        1 => (n(), n(), 1..200_u64).prop_map(|(t, table, rows)| Step::AddFile(t, table, rows)),
        6 => (n(), n(), n(), 1..COLUMNS, any::<i64>())
            .prop_map(|(t, table, row, column, value)| Step::Update(t, table, row, column, value)),
        1 => (n(), n(), n()).prop_map(|(t, table, row)| Step::Touch(t, table, row)),
        3 => (n(), n(), n()).prop_map(|(t, table, row)| Step::Delete(t, table, row)),
        3 => n().prop_map(Step::Commit),
        1 => n().prop_map(Step::RollBack),
        1 => (n(), any::<u8>(), any::<bool>())
            .prop_map(|(table, files, inserted)| Step::Checkpoint(table, files, inserted)),
        1 => n().prop_map(Step::Switch),
    ]
}

/// The values of rows by the value of their first column, which no other row has and which never changes.
pub(super) type Rows = BTreeMap<i64, Vec<i64>>;

/// The beginning of the name of a file that has its rows in its name.
const WITH_ROWS: &str = "rows ";

/// Rows as text.
pub(super) fn text_of<'a>(rows: impl IntoIterator<Item = &'a Vec<i64>>) -> String {
    let rows: Vec<_> = rows.into_iter().map(|row| format!("{row:?}")).collect();
    rows.join(";")
}

/// The rows of a text; `None` if it is not one of rows.
pub(super) fn rows_in(text: &str) -> Option<Vec<Vec<i64>>> {
    let values = |row: &str| {
        let row = row.strip_prefix('[')?.strip_suffix(']')?;
        row.split(", ").map(|value| value.parse().ok()).collect()
    };
    text.split(';').map(values).collect()
}

/// A file with these rows in its name.
fn file_of(rows: &[NamedRow]) -> DataFile {
    let text = text_of(rows.iter().map(|(_, row)| row));
    DataFile::new(format!("{WITH_ROWS}{text}"), rows.len() as u64)
}

/// The rows that a file has.
fn stored(id: FileId, file: &DataFile) -> Vec<Vec<i64>> {
    let Some(rows) = file.path.strip_prefix(WITH_ROWS) else {
        let value = |row: u64, column| (id.0 * 10_000 + row * 10 + u64::from(column)) as i64;
        return (0..file.rows)
            .map(|row| (0..COLUMNS).map(|column| value(row, column)).collect())
            .collect();
    };
    rows_in(rows).unwrap()
}

/// A row and its name.
pub(super) type NamedRow = (TableRowId, Vec<i64>);

/// The rows of a version in order, as a scan would merge them.
pub(super) fn named_rows(version: &TableVersion<i64>) -> Vec<NamedRow> {
    named_rows_with(version, stored)
}

/// The rows of a version in order. `stored` gives the rows of a file.
pub(super) fn named_rows_with(
    version: &TableVersion<i64>,
    stored: impl Fn(FileId, &DataFile) -> Vec<Vec<i64>>,
) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for file in version.files() {
        let all = file.changes.range(Sid(0)..Sid(file.file.rows));
        let deleted: BTreeSet<_> = all.deleted().collect();
        let mut values = stored(file.id, &file.file);
        for column in 0..COLUMNS {
            for (sid, value) in all.patches(column) {
                values[sid.0 as usize][column as usize] = *value;
            }
        }
        let named = (0..).map(Sid).zip(values).filter(|(sid, _)| !deleted.contains(sid));
        rows.extend(named.map(|(sid, row)| (TableRowId::Stored(file.id, sid), row)));
    }
    let inserts = version.inserted().tail();
    rows.extend(inserts.map(|insert| (TableRowId::Inserted(insert.id()), insert.row().to_vec())));
    rows
}

/// The rows of a version.
pub(super) fn rows_of(version: &TableVersion<i64>) -> Rows {
    without_names(named_rows(version))
}

/// Rows without their names. No row is there twice.
pub(super) fn without_names(named: Vec<NamedRow>) -> Rows {
    let count = named.len();
    let (mut rows, mut seen) = (Rows::new(), BTreeMap::new());
    for (name, row) in named {
        if let Some(other) = seen.insert(row[0], name) {
            panic!("row {} is there twice, as {other:?} and {name:?} of {count}", row[0]);
        }
        rows.insert(row[0], row);
    }
    rows
}

/// The name of a row in a version.
fn name_in(version: &TableVersion<i64>, row: i64) -> TableRowId {
    named_rows(version).into_iter().find(|(_, values)| values[0] == row).unwrap().0
}

/// Replaces a part of a table in a checkpoint by a file with its rows, which only some of the files are in.
pub(super) fn fold(
    checkpoint: &mut Checkpoint<i64>,
    database: &Database<i64>,
    is_folded: impl Fn(usize) -> bool,
    inserted: bool,
) {
    let file = |rows: &[NamedRow]| (database.new_file(), file_of(rows));
    fold_with(checkpoint, is_folded, inserted, named_rows, file).unwrap();
}

/// As [`fold`]. `named_rows` gives the rows of a version, and `file` makes a file of rows.
pub(super) fn fold_with(
    checkpoint: &mut Checkpoint<i64>,
    is_folded: impl Fn(usize) -> bool,
    inserted: bool,
    named_rows: impl Fn(&TableVersion<i64>) -> Vec<NamedRow>,
    file: impl FnOnce(&[NamedRow]) -> (FileId, DataFile),
) -> Result<(), Error> {
    let files = checkpoint.version().files().iter().enumerate();
    let files = files.filter(|(position, _)| is_folded(*position)).map(|(_, file)| file.id);
    let part = TablePart { files: files.collect(), inserted };
    let rows = named_rows(&checkpoint.version().part(&part)?);
    let file = (!rows.is_empty()).then(|| file(&rows));
    checkpoint.replace(&part, file)
}

/// Checks what a version says of its rows against a scan of all.
fn check(version: &TableVersion<i64>, rows: &Rows) {
    assert_eq!(rows_of(version), *rows);
    assert_eq!(version.visible_rows(), rows.len() as u64);
    let numbered: BTreeSet<_> =
        (0..version.row_count()).map(|number| version.row(number).unwrap()).collect();
    assert_eq!(numbered.len() as u64, version.row_count());
    assert!(named_rows(version).iter().all(|(name, _)| numbered.contains(name)));
    assert_eq!(version.row(version.row_count()), None);
}

struct Open {
    transaction: Transaction<i64>,
    tables: Vec<Rows>,
    written: BTreeSet<(usize, i64)>,
    commits_seen: usize,
}

struct History {
    database: Database<i64>,
    tables: Vec<TableId>,
    committed: Vec<Rows>,
    /// The rows that each commit wrote.
    commits: Vec<BTreeSet<(usize, i64)>>,
    open: Vec<Open>,
    checkpoints: Vec<Checkpoint<i64>>,
    /// The first column of the row that was inserted last.
    last: i64,
}

impl History {
    fn new() -> Self {
        let database = Database::default();
        let mut creating = database.begin();
        let tables = ["a", "b"].map(|name| creating.create_table(name, *b"").unwrap());
        creating.commit().unwrap();
        let (committed, tables) = (vec![Rows::new(); 2], tables.to_vec());
        let (commits, open, checkpoints) = (Vec::new(), Vec::new(), Vec::new());
        Self { database, tables, committed, commits, open, checkpoints, last: -1 }
    }

    fn begin(&mut self) {
        self.open.push(Open {
            transaction: self.database.begin(),
            tables: self.committed.clone(),
            written: BTreeSet::new(),
            commits_seen: self.commits.len(),
        });
    }

    fn run(&mut self, step: Step) {
        if self.open.is_empty() {
            self.begin();
        }
        let count = self.open.len();
        match step {
            Step::Begin => self.begin(),
            Step::Insert(t, table, value) => {
                let (open, table) = (&mut self.open[t % count], table % 2);
                let id = self.tables[table];
                self.last -= 1;
                let row = [self.last, value % 1000, value % 777];
                open.transaction.insert(id, row).unwrap();
                open.tables[table].insert(self.last, row.to_vec());
                open.written.insert((table, self.last));
            }
            Step::AddFile(t, table, rows) => {
                let (open, table) = (&mut self.open[t % count], table % 2);
                let file = DataFile::new("file", rows);
                let id = self.database.new_file();
                for row in stored(id, &file) {
                    open.written.insert((table, row[0]));
                    open.tables[table].insert(row[0], row);
                }
                open.transaction.add_file(self.tables[table], id, file).unwrap();
            }
            Step::Update(t, table, row, column, value) => {
                self.change(
                    t,
                    table,
                    row,
                    |row| row[column as usize] = value,
                    |open, id, row| open.update(id, row, [(column, value)]),
                );
            }
            Step::Touch(t, table, row) => {
                self.change(t, table, row, |_| {}, |open, id, row| open.update(id, row, []));
            }
            Step::Delete(t, table, row) => {
                self.change(t, table, row, Vec::clear, |open, id, row| open.delete(id, row));
            }
            Step::Commit(t) => {
                let open = self.open.swap_remove(t % count);
                self.commit(open);
            }
            Step::RollBack(t) => drop(self.open.swap_remove(t % count)),
            Step::Checkpoint(table, files, inserted) => {
                let mut checkpoint =
                    self.database.begin_checkpoint(self.tables[table % 2]).unwrap();
                let is_set = |position: usize| files >> (position % 8) & 1 > 0;
                // The files before the middle become one file, and those after it another.
                let middle = checkpoint.version().files().len() / 2;
                let is_first = |position| is_set(position) && position < middle;
                fold(&mut checkpoint, &self.database, is_first, false);
                let is_second = |position| is_set(position) && position >= middle;
                fold(&mut checkpoint, &self.database, is_second, inserted);
                self.checkpoints.push(checkpoint);
            }
            Step::Switch(nth) if !self.checkpoints.is_empty() => {
                let nth = nth % self.checkpoints.len();
                match self.checkpoints.swap_remove(nth).start_commit(7) {
                    Ok(pending) => drop(pending.wait().unwrap()),
                    // Another checkpoint has replaced a file of it.
                    Err(error) => assert!(matches!(error, Error::NoSuchFile), "{error}"),
                }
                self.check();
            }
            Step::Switch(_) => {}
        }
    }

    /// Changes a row in a transaction and in its model, where a row without values is deleted.
    fn change(
        &mut self,
        t: usize,
        table: usize,
        row: usize,
        in_model: impl Fn(&mut Vec<i64>),
        apply: impl Fn(&mut Transaction<i64>, TableId, TableRowId) -> Result<(), Error>,
    ) {
        let count = self.open.len();
        let (open, table) = (&mut self.open[t % count], table % 2);
        let rows = &mut open.tables[table];
        let Some((&row, _)) = rows.iter().nth(row % rows.len().max(1)) else { return };
        let name = name_in(&open.transaction.version(self.tables[table]).unwrap(), row);
        apply(&mut open.transaction, self.tables[table], name).unwrap();
        let values = rows.get_mut(&row).unwrap();
        in_model(values);
        if values.is_empty() {
            rows.remove(&row);
        }
        open.written.insert((table, row));
    }

    fn commit(&mut self, open: Open) {
        let Open { transaction, tables, written, commits_seen } = open;
        let since = self.commits[commits_seen..].iter();
        let conflicts = since.flatten().any(|row| written.contains(row));
        let committed = transaction.commit();
        assert_eq!(committed.is_err(), conflicts, "{committed:?}");
        if conflicts {
            assert!(matches!(committed, Err(Error::Conflict { .. })));
            return;
        }
        for &(table, row) in &written {
            match tables[table].get(&row) {
                Some(values) => drop(self.committed[table].insert(row, values.clone())),
                None => drop(self.committed[table].remove(&row)),
            }
        }
        self.commits.push(written);
    }

    fn check(&self) {
        for open in &self.open {
            for (id, rows) in self.tables.iter().zip(&open.tables) {
                check(&open.transaction.version(*id).unwrap(), rows);
            }
        }
        let latest = self.database.begin();
        for (id, rows) in self.tables.iter().zip(&self.committed) {
            check(&latest.version(*id).unwrap(), rows);
        }
    }
}

proptest! {
    #[test]
    fn transactions_see_their_snapshot_and_their_own_changes(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut history = History::new();
        for step in steps {
            history.run(step);
        }
        history.check();
        while let Some(open) = history.open.pop() {
            history.commit(open);
            history.check();
        }
    }
}
