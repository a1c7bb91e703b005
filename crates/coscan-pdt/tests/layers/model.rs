//! A table as a list of rows with names, and transactions that change copies of it.

pub(super) const COLUMNS: usize = 3;

pub(super) type Values = [i64; COLUMNS];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Kept,
    Written,
    Deleted,
    Inserted,
}

#[derive(Clone, Debug)]
struct Row {
    name: u64,
    values: Values,
    state: State,
}

/// The rows that a transaction sees, with those that it deleted.
#[derive(Clone, Debug)]
pub(super) struct ModelTransaction {
    rows: Vec<Row>,
    commits: usize,
}

/// The rows, and what each commit made of the rows before it.
pub(super) struct Model {
    latest: ModelTransaction,
    commits: Vec<ModelTransaction>,
    next_name: u64,
}

impl Model {
    /// Stable rows have the names 0 to `rows - 1`.
    pub(super) fn new(rows: u64) -> Self {
        let row = |name| Row { name, values: stored(name), state: State::Kept };
        let latest = ModelTransaction { rows: (0..rows).map(row).collect(), commits: 0 };
        Self { latest, commits: Vec::new(), next_name: rows }
    }

    pub(super) fn begin(&self) -> ModelTransaction {
        self.latest.clone()
    }

    pub(super) fn insert(&mut self, to: &mut ModelTransaction, rid: u64, values: Values) {
        let at = to.index(rid);
        to.rows.insert(at, Row { name: self.next_name, values, state: State::Inserted });
        self.next_name += 1;
    }

    /// Returns whether there was no conflict.
    pub(super) fn commit(&mut self, mut transaction: ModelTransaction) -> bool {
        for earlier in &self.commits[transaction.commits..] {
            let Some(rows) = rebased(&transaction.rows, &earlier.rows) else { return false };
            transaction.rows = rows;
        }
        self.commits.push(transaction.clone());
        transaction.rows.retain(|row| row.state != State::Deleted);
        transaction.rows.iter_mut().for_each(|row| row.state = State::Kept);
        self.latest = ModelTransaction { commits: self.commits.len(), ..transaction };
        true
    }
}

/// The rows of a transaction on those that an earlier one left. What both inserted before the same row is in the order of
/// the commits. `None` if both wrote the same row.
fn rebased(own: &[Row], earlier: &[Row]) -> Option<Vec<Row>> {
    let (mut rows, mut own) = (Vec::new(), own.iter().cloned());
    for theirs in earlier {
        if theirs.state == State::Inserted {
            rows.push(Row { state: State::Kept, ..theirs.clone() });
            continue;
        }
        let mut ours = own.next()?;
        while ours.state == State::Inserted {
            rows.push(ours);
            ours = own.next()?;
        }
        assert_eq!(ours.name, theirs.name, "both began with the same rows");
        match (theirs.state, ours.state) {
            (State::Kept, _) => rows.push(ours),
            (State::Written, State::Kept) => {
                rows.push(Row { state: State::Kept, ..theirs.clone() });
            }
            (State::Deleted, State::Kept) => {}
            _ => return None,
        }
    }
    rows.extend(own);
    Some(rows)
}

impl ModelTransaction {
    pub(super) fn delete(&mut self, rid: u64) {
        let at = self.index(rid);
        match self.rows[at].state {
            State::Inserted => drop(self.rows.remove(at)),
            _ => self.rows[at].state = State::Deleted,
        }
    }

    pub(super) fn modify(&mut self, rid: u64, column: usize, value: i64) {
        let at = self.index(rid);
        let row = &mut self.rows[at];
        row.values[column] = value;
        if row.state == State::Kept {
            row.state = State::Written;
        }
    }

    /// The rows that a query sees, with their names.
    pub(super) fn visible(&self) -> impl Iterator<Item = (u64, Values)> {
        let rows = self.rows.iter().filter(|row| row.state != State::Deleted);
        rows.map(|row| (row.name, row.values))
    }

    /// Where the row at a position is in the list, or the end of the list.
    fn index(&self, rid: u64) -> usize {
        let visible = (0..self.rows.len()).filter(|at| self.rows[*at].state != State::Deleted);
        visible.skip(rid as usize).chain([self.rows.len()]).next().expect("the end at least")
    }
}

/// The values of a stable row in the file: all are different.
pub(super) fn stored(sid: u64) -> Values {
    [0, 1, 2].map(|column| 1_000 + sid as i64 * 10 + column)
}
