//! What scans pay: positions, and the merge of a chunk in one column.

use std::cell::{RefCell, RefMut};
use std::hint::black_box;
use std::ops::Range;

use crate::measure::{CASES, grown, in_turn, name, pick, repeated};
use crate::pdt::Sink;
use crate::product::Product;
use crate::random::Random;
use crate::subjects::{Kind, PATCHED, Subject, Thesis, Value};

const ROWS: u64 = 1_000_000;
const CHUNK_ROWS: u64 = 131_072;

/// Changed rows of a million: none, 0.1 %, 1 %, 10 %.
const CHANGED: [u64; 4] = [0, 1_000, 10_000, 100_000];

/// The changes of the transaction that reads.
const OWN_CHANGES: u64 = 10;

/// What a scan has to do, so that pages without changes can be used as they are.
#[derive(Default)]
struct Pieces(Vec<Piece>);

#[derive(Debug)]
#[expect(dead_code, reason = "a scan would read them, here the making of them is measured")]
enum Piece {
    Rows(Range<u64>),
    Value(Value),
}

impl Sink<Value> for Pieces {
    fn rows(&mut self, rows: Range<u64>) {
        self.0.push(Piece::Rows(rows));
    }

    fn value(&mut self, value: &Value) {
        self.0.push(Piece::Value(*value));
    }
}

/// The values of a column as a query sees them, in one piece.
struct Values<'a> {
    stored: &'a [Value],
    /// Where in memory it is decides on more time than who fills it does, so both fill the same.
    merged: RefMut<'a, Vec<Value>>,
}

impl Sink<Value> for Values<'_> {
    fn rows(&mut self, rows: Range<u64>) {
        self.merged.extend_from_slice(&self.stored[rows.start as usize..rows.end as usize]);
    }

    fn value(&mut self, value: &Value) {
        self.merged.push(*value);
    }
}

/// A reader with a few changes of its own.
fn reader<S: Subject>(subject: &S, own_changes: u64) -> S::Transaction {
    let (mut transaction, mut random) = (subject.begin(), Random(5));
    for _ in 0..own_changes {
        let (name, value) = pick(subject, ROWS, &mut random);
        subject.change(&mut transaction, Kind::Patch, name, value);
    }
    transaction
}

fn chunk(random: &mut Random) -> Range<u64> {
    let start = random.below(ROWS / CHUNK_ROWS) * CHUNK_ROWS;
    start..start + CHUNK_ROWS
}

/// Microseconds for the pieces of a chunk.
fn pieces<S: Subject>(reader: &S::Transaction, column: u16) -> impl FnMut() -> [f64; 1] {
    let (mut random, mut pieces) = (Random(6), Pieces::default());
    move || {
        repeated(2, || {
            pieces.0.clear();
            S::merge(reader, chunk(&mut random), column, &mut pieces);
            black_box(&pieces.0);
        })
    }
}

/// Microseconds for the values of a chunk.
fn values<S: Subject>(
    reader: &S::Transaction,
    stored: &[Value],
    merged: &RefCell<Vec<Value>>,
) -> impl FnMut() -> [f64; 1] {
    let mut random = Random(6);
    move || {
        let mut values = Values { stored, merged: merged.borrow_mut() };
        repeated(2, || {
            values.merged.clear();
            S::merge(reader, chunk(&mut random), PATCHED, &mut values);
            black_box(&values.merged);
        })
    }
}

/// All values of a column.
fn all<S: Subject>(reader: &S::Transaction, stored: &[Value]) -> Vec<Value> {
    let merged = RefCell::default();
    S::merge(reader, 0..ROWS, PATCHED, &mut Values { stored, merged: merged.borrow_mut() });
    merged.into_inner()
}

pub(crate) fn merges() {
    println!(
        "\nMicroseconds for a chunk of {CHUNK_ROWS} rows of a million in one column. A third each of the changes are \
         patches, deletes and inserts; the reader has {OWN_CHANGES} changes of its own, if there are any."
    );
    println!("\n| changed rows of a million | | coscan | layers | layers / coscan |");
    println!("|--:|---|--:|--:|--:|");
    let stored: Vec<Value> = (0..ROWS).map(|sid| (sid, 0)).collect();
    let merged = RefCell::new(Vec::with_capacity(2 * CHUNK_ROWS as usize));
    for changed in CHANGED {
        let case = (ROWS, changed);
        let (product, thesis) = (grown::<Product>(case, None), grown::<Thesis>(case, None));
        let own_changes = OWN_CHANGES.min(changed);
        let (product, thesis) = (reader(&product, own_changes), reader(&thesis, own_changes));
        assert!(
            all::<Product>(&product, &stored) == all::<Thesis>(&thesis, &stored),
            "both see the same"
        );
        let line = |what: &str, ([product], [thesis]): ([f64; 1], [f64; 1])| {
            println!(
                "| {changed} | {what} | {product:.2} | {thesis:.2} | {:.2} |",
                thesis / product
            );
        };
        let of = |column| {
            in_turn(pieces::<Product>(&product, column), pieces::<Thesis>(&thesis, column))
        };
        line("changes of the column with patches", of(PATCHED));
        line("changes of another column", of(0));
        let both = in_turn(
            values::<Product>(&product, &stored, &merged),
            values::<Thesis>(&thesis, &stored, &merged),
        );
        line("values of the column with patches, copied", both);
    }
}

/// Microseconds for a position.
fn translations<S: Subject>(
    reader: &S::Transaction,
    end: u64,
    translate: fn(&S::Transaction, u64) -> Option<u64>,
) -> impl FnMut() -> [f64; 1] {
    let mut random = Random(7);
    move || {
        repeated(500, || {
            black_box(translate(reader, random.below(end)));
        })
    }
}

pub(crate) fn positions() {
    println!(
        "\nMicroseconds for a position; a third each of the changes are patches, deletes and inserts."
    );
    println!("\n| rows, changes | | coscan | layers | layers / coscan |");
    println!("|---|---|--:|--:|--:|");
    for case in CASES {
        let (product, thesis) =
            (grown::<Product>(case, None).begin(), grown::<Thesis>(case, None).begin());
        let visible = Product::rows(&product);
        assert_eq!(visible, Thesis::rows(&thesis));
        let line = |what: &str, ([one], [other]): ([f64; 1], [f64; 1])| {
            let ratio = other / one;
            println!("| {} | {what} | {one:.2} | {other:.2} | {ratio:.2} |", name(case));
        };
        let one = translations::<Product>(&product, case.0, Product::rid_of);
        line("SID to RID", in_turn(one, translations::<Thesis>(&thesis, case.0, Thesis::rid_of)));
        let one = translations::<Product>(&product, visible, Product::sid_of);
        line("RID to SID", in_turn(one, translations::<Thesis>(&thesis, visible, Thesis::sid_of)));
    }
}
