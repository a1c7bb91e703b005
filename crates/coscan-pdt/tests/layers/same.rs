//! The two that are compared see the same rows after the same transactions, also at the sizes of the comparison.

use std::ops::Range;

use super::pdt::Sink;
use super::product::Product;
use super::random::Random;
use super::subjects::*;

/// The values of a column of a file whose values are its positions.
#[derive(Default)]
struct Column(Vec<Value>);

impl Sink<Value> for Column {
    fn rows(&mut self, rows: Range<u64>) {
        self.0.extend(rows.map(|sid| (sid, 0)));
    }

    fn value(&mut self, value: &Value) {
        self.0.push(*value);
    }
}

/// A change of a random row, if the row is visible.
fn change<S: Subject>(subject: &S, transaction: &mut S::Transaction, random: &mut Random) {
    let (kind, sid) = (KINDS[random.below(4) as usize], random.below(ROWS));
    let value = (random.below(1_000), 1);
    if let Some(name) = subject.name(sid) {
        subject.change(transaction, kind, name, value);
    }
}

const ROWS: u64 = 20_000;
const CHUNK_ROWS: u64 = 1_700;

/// Pairs of transactions of one change each, now and then a chunk of the file. Returns all that was seen.
fn seen<S: Subject>() -> Vec<Vec<Value>> {
    let (mut subject, mut random) = (S::new(ROWS), Random(11));
    let mut seen = Vec::new();
    for number in 0..15_000_u64 {
        let mut both = [subject.begin(), subject.begin()];
        both.iter_mut().for_each(|one| change(&subject, one, &mut random));
        let [one, other] = both;
        assert!(subject.commit(one));
        seen.push(vec![(u64::from(subject.commit(other)), 2)]);
        subject.forget();
        subject.tidy();
        if number % 100 == 0 {
            let mut reader = subject.begin();
            change(&subject, &mut reader, &mut random);
            let mut column = Column::default();
            let start = random.below(ROWS / CHUNK_ROWS + 1) * CHUNK_ROWS;
            let number = [0, PATCHED][random.below(2) as usize];
            S::merge(&reader, start..(start + CHUNK_ROWS).min(ROWS), number, &mut column);
            seen.push(column.0);
            let sids = (0..50).map(|_| random.below(ROWS));
            let rids = sids.filter_map(|sid| S::rid_of(&reader, sid).map(|rid| (sid, rid)));
            let rids: Vec<Value> = rids.collect();
            assert!(rids.iter().all(|(sid, rid)| S::sid_of(&reader, *rid) == Some(*sid)));
            seen.push(rids);
            seen.push(vec![(S::rows(&reader), 3)]);
        }
    }
    let mut copy = subject.deep_copy();
    for _ in 0..100 {
        let mut transaction = copy.begin();
        change(&copy, &mut transaction, &mut random);
        assert!(copy.commit(transaction));
    }
    for table in [subject, copy] {
        let mut column = Column::default();
        S::merge(&table.begin(), 0..ROWS, PATCHED, &mut column);
        seen.push(column.0);
    }
    seen
}

#[test]
fn both_see_the_same_rows() {
    let product = seen::<Product>();
    assert_same(&product, &seen::<Thesis>());
    // Folded often.
    assert_same(&product, &seen::<LayeredTable<50>>());
}

fn assert_same(product: &[Vec<Value>], thesis: &[Vec<Value>]) {
    assert_eq!(product.len(), thesis.len());
    for (number, (one, other)) in product.iter().zip(thesis).enumerate() {
        assert_eq!(one, other, "{number}");
    }
}
