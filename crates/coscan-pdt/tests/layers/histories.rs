//! Random histories of transactions on the layers against a list of rows.

use std::ops::Range;

use proptest::prelude::*;

use super::model::*;
use super::pdt::*;
use super::random::Random;

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    /// Of a transaction that is open: an insert, a delete or another value of the row at a position.
    Insert(usize, u64),
    Delete(usize, u64),
    Modify(usize, u64, usize, i64),
    Commit(usize),
    Abort(usize),
    Fold,
    /// Somebody goes on to read what is there now.
    Keep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || prop_oneof![4 => 0..12_u64, 4 => 0..400_u64, 1 => Just(u64::MAX)];
    let step = prop_oneof![
        4 => Just(Step::Begin),
        8 => (0..4_usize, at()).prop_map(|(number, rid)| Step::Insert(number, rid)),
        8 => (0..4_usize, at()).prop_map(|(number, rid)| Step::Delete(number, rid)),
        8 => (0..4_usize, at(), 0..COLUMNS, 0..1_000_i64)
            .prop_map(|(number, rid, column, value)| Step::Modify(number, rid, column, value)),
        5 => (0..4_usize).prop_map(Step::Commit),
        1 => (0..4_usize).prop_map(Step::Abort),
        1 => Just(Step::Fold),
        1 => Just(Step::Keep),
    ];
    prop::collection::vec(step, 0..160)
}

struct Open<const N: usize> {
    snapshot: Snapshot<i64, N>,
    own: OwnLayer<i64>,
    model: ModelTransaction,
}

struct History<const N: usize> {
    stable_rows: u64,
    layers: Layers<i64, N>,
    model: Model,
    open: Vec<Open<N>>,
    kept: Vec<Open<N>>,
    /// How many commits there were, and conflicts.
    counts: (usize, usize),
}

impl<const N: usize> History<N> {
    fn new(stable_rows: u64) -> Self {
        let (layers, model) = (Layers::new(COLUMNS), Model::new(stable_rows));
        Self { stable_rows, layers, model, open: Vec::new(), kept: Vec::new(), counts: (0, 0) }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(*step);
        }
        while !self.open.is_empty() {
            self.step(Step::Commit(0));
        }
        self.layers.fold();
        assert_eq!(self.layers.write_len(), 0);
        self.kept.push(self.begin());
        self.kept.iter().for_each(|kept| kept.check(self.stable_rows));
    }

    fn begin(&self) -> Open<N> {
        let (snapshot, own) = (self.layers.snapshot(), self.layers.own_layer());
        Open { snapshot, own, model: self.model.begin() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Begin if self.open.len() < 4 => self.open.push(self.begin()),
            Step::Begin => {}
            Step::Insert(number, at) => {
                let values = [7, 8, 9].map(|value| value * 100 + (at % 100) as i64);
                let model = &mut self.model;
                if let Some((open, rid)) = find(&mut self.open, number, at, 1) {
                    open.own.insert(rid, &values);
                    model.insert(&mut open.model, rid, values);
                }
            }
            Step::Delete(number, at) => {
                if let Some((open, rid)) = find(&mut self.open, number, at, 0) {
                    open.own.delete(rid);
                    open.model.delete(rid);
                }
            }
            Step::Modify(number, at, column, value) => {
                if let Some((open, rid)) = find(&mut self.open, number, at, 0) {
                    open.own.modify(rid, column as u16, value);
                    open.model.modify(rid, column, value);
                }
            }
            Step::Commit(number) => self.commit(number),
            Step::Abort(number) => {
                let _aborted = (number < self.open.len()).then(|| self.open.remove(number));
            }
            Step::Fold => self.layers.fold(),
            Step::Keep => self.kept.push(self.begin()),
        }
    }

    fn commit(&mut self, number: usize) {
        if number >= self.open.len() {
            return;
        }
        let Open { snapshot, own, model } = self.open.remove(number);
        let is_committed = self.layers.commit(snapshot, own) == Ok(());
        assert_eq!(is_committed, self.model.commit(model));
        self.counts.0 += usize::from(is_committed);
        self.counts.1 += usize::from(!is_committed);
        self.begin().check(self.stable_rows);
        self.open.iter().for_each(|open| open.check(self.stable_rows));
        // The list is in the order in which transactions began.
        self.layers.forget(self.open.first().map(|open| &open.snapshot));
    }
}

/// An open transaction, and a position of a row in it, or with `more` 1 perhaps the end.
fn find<const N: usize>(
    open: &mut [Open<N>],
    number: usize,
    at: u64,
    more: u64,
) -> Option<(&mut Open<N>, u64)> {
    let open = open.get_mut(number)?;
    let positions = open.model.visible().count() as u64 + more;
    (positions > 0).then(|| (open, if at == u64::MAX { positions - 1 } else { at % positions }))
}

/// Takes the values of a column.
struct Column(usize, Vec<i64>);

impl Sink<i64> for Column {
    fn rows(&mut self, rows: Range<u64>) {
        assert!(!rows.is_empty());
        self.1.extend(rows.map(|sid| stored(sid)[self.0]));
    }

    fn value(&mut self, value: &i64) {
        self.1.push(*value);
    }
}

impl<const N: usize> Open<N> {
    /// Checks the rows, merged chunk by chunk in chunks of several sizes, and their positions.
    fn check(&self, stable_rows: u64) {
        let Self { snapshot, own, model } = self;
        for chunk_rows in [3, 64, 1_000] {
            for column in 0..COLUMNS {
                let mut seen = Column(column, Vec::new());
                for start in (0..=stable_rows).step_by(chunk_rows as usize) {
                    let chunk = start..(start + chunk_rows).min(stable_rows);
                    let is_last = start + chunk_rows > stable_rows;
                    snapshot.merge(own, chunk, is_last, column as u16, &mut seen);
                }
                assert!(seen.1.into_iter().eq(model.visible().map(|(_, values)| values[column])));
            }
        }
        let names: Vec<u64> = model.visible().map(|(name, _)| name).collect();
        assert_eq!(snapshot.visible_rows(own, stable_rows), names.len() as u64);
        for (rid, name) in (0..).zip(&names) {
            let sid = Some(*name).filter(|name| *name < stable_rows);
            assert_eq!(snapshot.sid_of(own, rid), sid);
        }
        for sid in 0..stable_rows {
            let rid = names.iter().position(|name| *name == sid);
            assert_eq!(snapshot.rid_of(own, sid), rid.map(|rid| rid as u64));
        }
    }
}

proptest! {
    #[test]
    fn small_nodes_have_the_rows_of_the_model(rows in 0..200_u64, steps in steps()) {
        History::<4>::new(rows).run(&steps);
    }

    #[test]
    fn nodes_as_measured_have_the_rows_of_the_model(rows in 0..200_u64, steps in steps()) {
        History::<32>::new(rows).run(&steps);
    }
}

/// More changes than random histories have: trees of many levels, in all layers, and most rows deleted.
#[test]
fn a_long_history_has_the_rows_of_the_model() {
    let mut history = History::<4>::new(300);
    let mut random = Random(7);
    for round in 0..250_u64 {
        history.step(Step::Begin);
        history.step(Step::Begin);
        for _ in 0..12 {
            let (number, rid) = (random.below(2) as usize, random.below(10_000));
            history.step(match random.below(if round < 120 { 5 } else { 7 }) {
                0 | 1 => Step::Insert(number, rid),
                2 => Step::Modify(number, rid, random.below(3) as usize, round as i64),
                _ => Step::Delete(number, rid),
            });
        }
        history.step(Step::Commit(1));
        history.step(Step::Commit(0));
        if round % 9 == 0 {
            history.step(Step::Fold);
        }
    }
    history.run(&[]);
    let (commits, conflicts) = history.counts;
    assert!(commits > 300 && conflicts > 20, "{:?}", history.counts);
}
