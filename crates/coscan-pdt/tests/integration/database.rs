//! Histories of transactions and checkpoints against models that run the transactions one after the other.

use std::collections::BTreeSet;

use coscan_pdt::*;
use proptest::prelude::*;

use super::model::*;

/// A step of a history. Transactions are found by a number, of which only the remainder matters.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Begin,
    Write(usize, Vec<Change>),
    Commit(usize),
    /// A checkpoint of the latest version, unless a new file is being written.
    Checkpoint,
    /// To the new file, if there is one. Transactions that began before its checkpoint are rebased onto the checkpoint's
    /// version, or onto the latest one.
    Switch {
        onto_latest: bool,
    },
}

/// Histories in which checkpoints and switches have this weight; that of all else is 8.
pub(super) fn steps(
    changes: impl Strategy<Value = Vec<Change>>,
    checkpoints: u32,
    most: usize,
) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Begin),
        4 => (any::<usize>(), changes).prop_map(|(number, changes)| Step::Write(number, changes)),
        2 => any::<usize>().prop_map(Step::Commit),
        checkpoints => Just(Step::Checkpoint),
        checkpoints => any::<bool>().prop_map(|onto_latest| Step::Switch { onto_latest }),
    ];
    prop::collection::vec(step, 0..most)
}

/// A transaction and its model: what it sees, what it wrote, and how many commits are in its snapshot.
#[derive(Clone)]
struct Open {
    transaction: Transaction<i64, u8>,
    sees: Model,
    wrote: Vec<Write>,
    commits: usize,
}

/// The rows of a file.
type File = Box<dyn Fn(Sid) -> Vec<i64>>;

/// A version that is being written to a new file, and how many commits are in it.
struct Checkpoint {
    at: Version,
    model: Model,
    commits: usize,
}

pub(super) struct Database {
    file: File,
    latest: Version,
    model: Model,
    open: Vec<Open>,
    commits: Vec<(WriteSet, BTreeSet<RowId>)>,
    checkpoint: Option<Checkpoint>,
    /// The id of the next insert.
    next: u64,
}

impl Database {
    pub(super) fn new(row_count: u64) -> Self {
        Self {
            file: Box::new(stored),
            latest: Version::new(row_count),
            model: Model::new(row_count),
            open: Vec::new(),
            commits: Vec::new(),
            checkpoint: None,
            next: 0,
        }
    }

    pub(super) fn run(mut self, steps: Vec<Step>) {
        for step in steps {
            let found = |number: usize| number % self.open.len().max(1);
            match step {
                Step::Begin => self.begin(),
                Step::Write(number, changes) => self.write(found(number), &changes),
                Step::Commit(number) if !self.open.is_empty() => self.commit(found(number)),
                Step::Commit(_) => {}
                Step::Checkpoint => self.take_checkpoint(),
                Step::Switch { onto_latest } => self.switch(onto_latest),
            }
        }
        self.check_open();
    }

    fn begin(&mut self) {
        self.open.push(Open {
            transaction: Transaction::new(&self.latest),
            sees: self.model.clone(),
            wrote: Vec::new(),
            commits: self.commits.len(),
        });
    }

    fn write(&mut self, number: usize, changes: &[Change]) {
        let Some(open) = self.open.get_mut(number) else { return };
        for change in changes {
            let write = change.resolve(self.latest.row_count(), &mut self.next);
            let done = write.apply_in(&mut open.transaction).is_ok();
            assert_eq!(done, open.sees.apply(&write), "{write:?}");
            open.wrote.extend(done.then_some(write));
        }
    }

    fn commit(&mut self, number: usize) {
        let open = self.open.swap_remove(number);
        assert_same_on(&self.file, open.transaction.changes(), &open.sees);
        let end = self.commits.len();
        if let Some(rebased) = self.rebased(&open, &self.latest, &self.model, end) {
            let (latest, writes) = rebased.transaction.into_parts();
            (self.latest, self.model) = (latest, rebased.sees);
            self.commits.push((writes, names(&open.wrote)));
        }
        assert_same_on(&self.file, &self.latest, &self.model);
    }

    /// First committer wins: a model of the rule by names, and of the result by running the same writes on what all see
    /// after the first `end` commits.
    fn rebased(&self, open: &Open, onto: &Version, model: &Model, end: usize) -> Option<Open> {
        let names = names(&open.wrote);
        assert!(open.transaction.writes().iter().eq(names.iter().copied()));
        assert_eq!(open.transaction.writes().len(), names.len() as u64);
        let since = &self.commits[open.commits..end];
        let conflicts = since.iter().any(|(_, theirs)| !theirs.is_disjoint(&names));
        match open.transaction.rebased(onto, since.iter().map(|(writes, _)| writes)) {
            Ok(transaction) => {
                assert!(!conflicts);
                assert!(transaction.snapshot().is_same_version(onto));
                let mut sees = model.clone();
                for write in &open.wrote {
                    assert!(sees.apply(write), "{write:?}");
                }
                Some(Open { transaction, sees, wrote: open.wrote.clone(), commits: end })
            }
            Err(Error::Conflict(row)) => {
                assert!(conflicts && names.contains(&row));
                assert!(since.iter().any(|(_, theirs)| theirs.contains(&row)));
                None
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn take_checkpoint(&mut self) {
        let (at, model) = (self.latest.clone(), self.model.clone());
        let commits = self.commits.len();
        self.checkpoint.get_or_insert(Checkpoint { at, model, commits });
    }

    /// All go on on the new file.
    fn switch(&mut self, onto_latest: bool) {
        let Some(Checkpoint { at, model: at_model, commits }) = self.checkpoint.take() else {
            return;
        };
        let open = std::mem::take(&mut self.open).into_iter().filter_map(|open| {
            let (onto, model, end) = match onto_latest {
                true => (&self.latest, &self.model, self.commits.len()),
                false => (&at, &at_model, commits),
            };
            if open.commits >= commits { Some(open) } else { self.rebased(&open, onto, model, end) }
        });
        let open: Vec<Open> = open.collect();

        let (map, renaming) = (RowMap::new(&at), Renaming::new(&at_model));
        let rows: Vec<Vec<i64>> = at_model.visible().into_iter().map(|(.., row)| row).collect();
        self.file = Box::new(move |sid| rows[sid.0 as usize].clone());
        self.latest = map.map_changes(&self.latest).unwrap();
        self.model = renaming.model(&self.model);
        self.commits.drain(..commits);
        for (writes, names) in &mut self.commits {
            *writes = map.map_writes(writes);
            *names = names.iter().map(|row| renaming.row(*row)).collect();
            assert!(writes.iter().eq(names.iter().copied()));
        }
        let switched = open.into_iter().map(|open| Open {
            transaction: map.map_transaction(&open.transaction).unwrap(),
            sees: renaming.model(&open.sees),
            wrote: open.wrote.iter().map(|write| renaming.write(write)).collect(),
            commits: open.commits - commits,
        });
        self.open = switched.collect();
        assert_same_on(&self.file, &self.latest, &self.model);
        self.check_open();
    }

    fn check_open(&self) {
        for open in &self.open {
            assert_same_on(&self.file, open.transaction.changes(), &open.sees);
        }
    }
}

fn names(writes: &[Write]) -> BTreeSet<RowId> {
    writes.iter().map(Write::name).collect()
}
