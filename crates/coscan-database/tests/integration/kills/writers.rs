//! What the threads of the process write: each one a sequence of transactions that its number and the seed say, so that the
//! state after any number of them is known without the process.

use coscan_core::SplitMix64;

use super::super::crashes::State;
use super::super::histories::{COLUMNS, Rows};

/// The threads that write.
pub(super) const WRITERS: usize = 3;

/// The table that all threads write. Each has a row there, whose second column is the number of its last transaction that
/// wrote it.
pub(super) const COUNTERS: &str = "counters";

/// Numbers of transactions: at 0 of the one that creates the shared table, then of each thread.
pub(super) type Done = [u64; 1 + WRITERS];

/// How far the process came.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Progress {
    pub(super) started: Done,
    pub(super) acknowledged: Done,
}

/// A change of a table by its name, and of a row by its first column.
#[derive(Debug)]
pub(super) enum Change {
    Create(String),
    Drop(String),
    Insert(String, Vec<i64>),
    AddFile(String, Vec<Vec<i64>>),
    Update(String, i64, (u32, i64)),
    Delete(String, i64),
}

/// A transaction.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    /// Whether the thread waits for it, and for all before it. If not, the next ones do not see it.
    pub(super) waits: bool,
}

/// The row of a thread in the shared table.
pub(super) fn counter(writer: usize, count: u64) -> Vec<i64> {
    vec![writer as i64, count.cast_signed(), 0]
}

/// Whether a table is one of a thread's own.
fn is_own(writer: usize, table: &str) -> bool {
    table.strip_prefix(&format!("t{writer}.")).is_some()
}

/// What a state has of one thread.
pub(super) fn part_of(state: &State, writer: usize) -> State {
    let of_table = |(name, rows): (&String, &Rows)| match &**name {
        COUNTERS => {
            let row = rows.get(&(writer as i64));
            let row = row.map(|row| (writer as i64, row.clone()));
            Some((name.clone(), row.into_iter().collect()))
        }
        _ => is_own(writer, name).then(|| (name.clone(), rows.clone())),
    };
    state.iter().filter_map(of_table).collect()
}

/// A thread that writes, and what its transactions have made so far.
pub(super) struct Writer {
    writer: usize,
    random: SplitMix64,
    pub(super) done: u64,
    /// Its tables, and its row of the shared one.
    pub(super) state: State,
    /// Whether its last transaction is not waited for.
    is_pending: bool,
    created: u64,
    last_row: i64,
}

impl Writer {
    /// A thread before its first transaction.
    pub(super) fn new(seed: u64, writer: usize) -> Self {
        let random = SplitMix64(seed.wrapping_mul(WRITERS as u64 + 1) ^ writer as u64);
        let counters = Rows::from([(writer as i64, counter(writer, 0))]);
        let state = State::from([(COUNTERS.to_owned(), counters)]);
        let last_row = writer as i64 * 1_000_000;
        Self { writer, random, done: 0, state, is_pending: false, created: 0, last_row }
    }

    /// A thread after so many transactions.
    pub(super) fn after(seed: u64, writer: usize, done: u64) -> Self {
        let mut after = Self::new(seed, writer);
        while after.done < done {
            after.transact();
        }
        after
    }

    /// The next transaction. The state is that after it.
    pub(super) fn transact(&mut self) -> Plan {
        self.done += 1;
        let sees_all = !self.is_pending;
        let (mut changes, own) = (Vec::new(), self.own_tables());
        // Nobody else may change a table before it is seen, or after it is gone.
        let mut may_be_pending = true;
        if own.is_empty() || sees_all && self.random.below(10) == 0 {
            may_be_pending = false;
            self.created += 1;
            let name = format!("t{}.{}", self.writer, self.created);
            self.make(Change::Create(name), &mut changes);
        } else if own.len() > 1 && sees_all && self.random.below(12) == 0 {
            may_be_pending = false;
            let name = self.one_of(&own);
            self.make(Change::Drop(name), &mut changes);
        }
        let own = self.own_tables();
        let fewest = u64::from(changes.is_empty());
        for _ in 0..fewest + self.random.below(5) {
            let table = self.one_of(&own);
            let change = self.change_of(table, sees_all);
            self.make(change, &mut changes);
        }
        if sees_all && self.random.below(2) == 0 {
            let cell = (1, self.done.cast_signed());
            self.make(Change::Update(COUNTERS.into(), self.writer as i64, cell), &mut changes);
        }
        self.is_pending = may_be_pending && self.random.below(4) == 0;
        Plan { changes, waits: !self.is_pending }
    }

    fn own_tables(&self) -> Vec<String> {
        self.state.keys().filter(|name| is_own(self.writer, name)).cloned().collect()
    }

    fn one_of(&mut self, names: &[String]) -> String {
        names[self.random.below(names.len() as u64) as usize].clone()
    }

    /// A random change of a table's rows: of one that is there only if the next transaction sees it.
    fn change_of(&mut self, table: String, sees_all: bool) -> Change {
        let count = self.state[&table].len() as u64;
        let nth = self.random.below(count) as usize;
        let row = self.state[&table].keys().nth(nth).copied().filter(|_| sees_all);
        let value = self.random.below(1000).cast_signed();
        match (self.random.below(8), row) {
            (0, _) => {
                let rows = (0..1 + self.random.below(8)).map(|_| self.new_row(value)).collect();
                Change::AddFile(table, rows)
            }
            (1..=3, Some(row)) => {
                let column = 1 + self.random.below(u64::from(COLUMNS) - 1) as u32;
                Change::Update(table, row, (column, value))
            }
            (4, Some(row)) => Change::Delete(table, row),
            (5, Some(row)) if count > 40 => Change::Delete(table, row),
            (6, _) if self.random.below(3) == 0 => {
                // Its record is larger than a segment.
                let mut row = self.new_row(value);
                row.extend((0..700).map(|_| self.random.next_u64().cast_signed()));
                Change::Insert(table, row)
            }
            _ => Change::Insert(table, self.new_row(value)),
        }
    }

    fn new_row(&mut self, value: i64) -> Vec<i64> {
        self.last_row += 1;
        vec![self.last_row, value, value + 1]
    }

    fn make(&mut self, change: Change, changes: &mut Vec<Change>) {
        match &change {
            Change::Create(name) => drop(self.state.insert(name.clone(), Rows::new())),
            Change::Drop(name) => drop(self.state.remove(name)),
            Change::Insert(table, row) => self.insert(table, row),
            Change::AddFile(table, rows) => rows.iter().for_each(|row| self.insert(table, row)),
            Change::Update(table, row, (column, value)) => {
                let row = self.rows(table).get_mut(row).unwrap();
                row[*column as usize] = *value;
            }
            Change::Delete(table, row) => drop(self.rows(table).remove(row)),
        }
        changes.push(change);
    }

    fn insert(&mut self, table: &str, row: &[i64]) {
        self.rows(table).insert(row[0], row.to_vec());
    }

    fn rows(&mut self, table: &str) -> &mut Rows {
        self.state.get_mut(table).unwrap()
    }
}

/// The state after so many transactions.
pub(super) fn state_after(seed: u64, done: Done) -> State {
    let [created, done @ ..] = done;
    let mut state = State::new();
    if created == 0 {
        return state;
    }
    for (writer, done) in (1..).zip(done) {
        for (table, rows) in Writer::after(seed, writer, done).state {
            state.entry(table).or_default().extend(rows);
        }
    }
    state
}
