//! The time of a transaction of one change, from its beginning to the end of its commit.

use crate::measure::{CASES, Stopwatch, commit_one, grown, in_turn, median, name, pick, warm_up};
use crate::product::Product;
use crate::random::Random;
use crate::subjects::{Kind, Subject, Thesis};

/// How many others commit while a transaction is open, and how many transactions are timed in a turn: so few that the
/// number of changes stays nearly what it is.
const OTHERS: [(u64, u32); 3] = [(0, 30), (1, 15), (100, 1)];

/// Tables with more changes are not copied for each turn: they change little.
const COPIED_MAX: u64 = 10_000;

pub(crate) fn commits(kind: Kind) {
    println!(
        "\nMicroseconds for a transaction of one change ({kind:?}) while others commit one such change each; and for each \
         of them all. Each has its part of what is done now and then (folding)."
    );
    println!(
        "\n| rows, changes before | others | coscan | layers | layers / coscan | all: coscan | layers | layers / coscan | of which folding |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for case in CASES {
        let (mut product, mut thesis) =
            (grown::<Product>(case, Some(kind)), grown::<Thesis>(case, Some(kind)));
        if case.1 > COPIED_MAX {
            warm_up(&mut product, case.0, kind);
            warm_up(&mut thesis, case.0, kind);
        }
        let mut figures = Vec::new();
        for (others, transactions) in OTHERS {
            let turns = Turns { case, kind, others, transactions };
            let [mut one, mut other] = [Random(2), Random(2)];
            let both = in_turn(
                || turns.turn(&mut product, &mut one),
                || turns.turn(&mut thesis, &mut other),
            );
            figures.push(both);
        }
        let folding = folding(&mut thesis, case.0, kind);
        for ((others, _), (product, thesis)) in OTHERS.iter().zip(figures) {
            let [own, all] = thesis.map(|time| time + folding);
            println!(
                "| {} | {others} | {:.2} | {own:.2} | {:.2} | {:.2} | {all:.2} | {:.2} | {folding:.2} |",
                name(case),
                product[0],
                own / product[0],
                product[1],
                all / product[1]
            );
        }
    }
}

struct Turns {
    case: (u64, u64),
    kind: Kind,
    others: u64,
    transactions: u32,
}

impl Turns {
    /// Microseconds for each transaction beside others, and for each of all.
    fn turn<S: Subject>(&self, subject: &mut S, random: &mut Random) -> [f64; 2] {
        if self.case.1 <= COPIED_MAX {
            self.transactions(&mut subject.deep_copy(), random)
        } else {
            self.transactions(subject, random)
        }
    }

    fn transactions<S: Subject>(&self, subject: &mut S, random: &mut Random) -> [f64; 2] {
        let Self { case: (rows, _), kind, others, transactions } = *self;
        let (mut own, mut rest, mut forgetting) =
            (Stopwatch::new(), Stopwatch::new(), Stopwatch::new());
        for _ in 0..transactions {
            let (name, value) = pick(subject, rows, random);
            let transaction = own.time(|| {
                let mut transaction = subject.begin();
                subject.change(&mut transaction, kind, name, value);
                transaction
            });
            for _ in 0..others {
                let (name, value) = pick(subject, rows, random);
                rest.time(|| {
                    let mut transaction = subject.begin();
                    subject.change(&mut transaction, kind, name, value);
                    subject.commit(transaction)
                });
            }
            own.time(|| subject.commit(transaction));
            forgetting.time(|| subject.forget());
            subject.tidy();
        }
        let transactions = f64::from(transactions);
        let all = transactions * (others + 1) as f64;
        // Each commit is forgotten once.
        let forgetting = forgetting.micros() / all;
        [
            own.micros() / transactions + forgetting,
            (own.micros() + rest.micros()) / all + forgetting,
        ]
    }
}

/// Microseconds of folding for each commit.
fn folding(thesis: &mut Thesis, rows: u64, kind: Kind) -> f64 {
    let mut random = Random(3);
    let each = (0..15).map(|_| {
        let (mut commits, mut watch) = (0, Stopwatch::new());
        loop {
            commit_one(thesis, rows, kind, &mut random);
            thesis.forget();
            commits += 1;
            if watch.time(|| thesis.tidy()) {
                break;
            }
        }
        watch.micros() / f64::from(commits)
    });
    median(each.collect())
}
