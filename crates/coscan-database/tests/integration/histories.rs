//! Histories of transactions against a model that has all rows in maps.

use std::collections::{BTreeMap, BTreeSet};

use coscan_database::{
    DataFile, Database, Error, FileId, TableId, TableRowId, TableVersion, Transaction,
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
}

fn step() -> impl Strategy<Value = Step> {
    let n = || any::<usize>();
    prop_oneof![
        3 => Just(Step::Begin),
        3 => (n(), n(), any::<i64>()).prop_map(|(t, table, value)| Step::Insert(t, table, value)),
        1 => (n(), n(), 1..200_u64).prop_map(|(t, table, rows)| Step::AddFile(t, table, rows)),
        6 => (n(), n(), n(), 0..COLUMNS, any::<i64>())
            .prop_map(|(t, table, row, column, value)| Step::Update(t, table, row, column, value)),
        1 => (n(), n(), n()).prop_map(|(t, table, row)| Step::Touch(t, table, row)),
        3 => (n(), n(), n()).prop_map(|(t, table, row)| Step::Delete(t, table, row)),
        3 => n().prop_map(Step::Commit),
        1 => n().prop_map(Step::RollBack),
    ]
}

pub(super) type Rows = BTreeMap<TableRowId, Vec<i64>>;

/// The values that a file has.
fn stored(row: TableRowId) -> Vec<i64> {
    let TableRowId::Stored(file, sid) = row else { unreachable!("a row of a file") };
    (0..COLUMNS).map(|column| (file.0 * 1000 + sid.0 * 10 + u64::from(column)) as i64).collect()
}

/// The rows of a version, as a scan would merge them.
pub(super) fn rows_of(version: &TableVersion<i64>) -> Rows {
    let mut rows = Rows::new();
    for file in version.files() {
        let all = file.changes.range(Sid(0)..Sid(file.file.rows));
        let deleted: BTreeSet<_> = all.deleted().collect();
        for sid in (0..file.file.rows).map(Sid).filter(|sid| !deleted.contains(sid)) {
            let row = TableRowId::Stored(file.id, sid);
            rows.insert(row, stored(row));
        }
        for column in 0..COLUMNS {
            for (sid, value) in all.patches(column) {
                let row = rows.get_mut(&TableRowId::Stored(file.id, sid)).unwrap();
                row[column as usize] = *value;
            }
        }
    }
    for insert in version.inserted().tail() {
        rows.insert(TableRowId::Inserted(insert.id()), insert.row().to_vec());
    }
    rows
}

/// Checks what a version says of its rows against a scan of all.
fn check(version: &TableVersion<i64>, rows: &Rows) {
    assert_eq!(rows_of(version), *rows);
    assert_eq!(version.visible_rows(), rows.len() as u64);
    let numbered: BTreeSet<_> =
        (0..version.row_count()).map(|number| version.row(number).unwrap()).collect();
    assert_eq!(numbered.len() as u64, version.row_count());
    assert!(rows.keys().all(|row| numbered.contains(row)));
    assert_eq!(version.row(version.row_count()), None);
}

struct Open {
    transaction: Transaction<i64>,
    tables: Vec<Rows>,
    written: BTreeSet<(usize, TableRowId)>,
    /// The files that it has added.
    added: BTreeSet<FileId>,
    commits_seen: usize,
}

struct History {
    database: Database<i64>,
    tables: Vec<TableId>,
    committed: Vec<Rows>,
    /// The rows that each commit wrote.
    commits: Vec<BTreeSet<(usize, TableRowId)>>,
    open: Vec<Open>,
}

impl History {
    fn new() -> Self {
        let database = Database::default();
        let mut creating = database.begin();
        let tables = ["a", "b"].map(|name| creating.create_table(name, *b"").unwrap());
        creating.commit().unwrap();
        let (committed, commits, open) = (vec![Rows::new(); 2], Vec::new(), Vec::new());
        Self { database, tables: tables.to_vec(), committed, commits, open }
    }

    fn begin(&mut self) {
        self.open.push(Open {
            transaction: self.database.begin(),
            tables: self.committed.clone(),
            written: BTreeSet::new(),
            added: BTreeSet::new(),
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
                let row = [value, value + 1, value + 2].map(|value| value % 1000);
                open.transaction.insert(id, row).unwrap();
                let version = open.transaction.version(id).unwrap();
                let name = TableRowId::Inserted(version.inserted().tail().last().unwrap().id());
                assert!(open.tables[table].insert(name, row.to_vec()).is_none());
                open.written.insert((table, name));
            }
            Step::AddFile(t, table, rows) => {
                let (open, table) = (&mut self.open[t % count], table % 2);
                let file = DataFile::new("file", rows);
                let id = self.database.new_file();
                open.transaction.add_file(self.tables[table], id, file).unwrap();
                open.added.insert(id);
                let names = (0..rows).map(|row| TableRowId::Stored(id, Sid(row)));
                open.tables[table].extend(names.map(|name| (name, stored(name))));
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
        let Some((&name, _)) = rows.iter().nth(row % rows.len().max(1)) else { return };
        apply(&mut open.transaction, self.tables[table], name).unwrap();
        let values = rows.get_mut(&name).unwrap();
        in_model(values);
        if values.is_empty() {
            rows.remove(&name);
        }
        open.written.insert((table, name));
    }

    fn commit(&mut self, open: Open) {
        let Open { transaction, tables, written, added, commits_seen } = open;
        let since = self.commits[commits_seen..].iter();
        let conflicts = since.flatten().any(|row| written.contains(row));
        let committed = transaction.commit();
        assert_eq!(committed.is_err(), conflicts, "{committed:?}");
        if conflicts {
            assert!(matches!(committed, Err(Error::Conflict { .. })));
            return;
        }
        for (table, rows) in tables.iter().enumerate() {
            for (name, values) in rows {
                let is_of_added =
                    matches!(name, TableRowId::Stored(file, _) if added.contains(file));
                if is_of_added || written.contains(&(table, *name)) {
                    self.committed[table].insert(*name, values.clone());
                }
            }
        }
        for (table, name) in &written {
            if !tables[*table].contains_key(name) {
                self.committed[*table].remove(name);
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
