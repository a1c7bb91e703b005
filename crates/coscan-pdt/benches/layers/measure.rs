//! Tables that grow by transactions, and times of two that take turns.

use std::time::{Duration, Instant};

use crate::random::Random;
use crate::subjects::{KINDS, Kind, Subject, Value};

/// Odd, so that there is one in the middle. A turn takes about a millisecond at most: most are then not interrupted, so
/// what else the machine does has no part in the median.
pub(crate) const TURNS: usize = 41;

/// Numbers of rows and changes, as in the benchmark of `coscan-pdt` alone.
pub(crate) const CASES: [(u64, u64); 6] = [
    (1_000_000, 0),
    (1_000_000, 10_000),
    (1_000_000, 500_000),
    (100_000_000, 0),
    (100_000_000, 10_000),
    (100_000_000, 1_000_000),
];

pub(crate) fn name((rows, changes): (u64, u64)) -> String {
    format!("{} million, {changes}", rows / 1_000_000)
}

/// The load of the machine, where the system says it.
pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

/// A random row that is visible, as a transaction names it that begins now, and a value that is the same for all tables.
pub(crate) fn pick<S: Subject>(subject: &S, rows: u64, random: &mut Random) -> (u64, Value) {
    loop {
        let sid = random.below(rows);
        if let Some(name) = subject.name(sid) {
            return (name, (sid, 1));
        }
    }
}

/// Commits a transaction of one change.
pub(crate) fn commit_one<S: Subject>(subject: &mut S, rows: u64, kind: Kind, random: &mut Random) {
    let (name, value) = pick(subject, rows, random);
    let mut transaction = subject.begin();
    subject.change(&mut transaction, kind, name, value);
    subject.commit(transaction);
}

/// A table with so many changes, each by a transaction of its own: of one kind or, in turn, patches, deletes and inserts.
pub(crate) fn grown<S: Subject>((rows, changes): (u64, u64), kind: Option<Kind>) -> S {
    let (mut subject, mut random) = (S::new(rows), Random(1));
    for number in 0..changes {
        commit_one(&mut subject, rows, kind.unwrap_or(KINDS[(number % 3) as usize]), &mut random);
        subject.forget();
        subject.tidy();
    }
    subject
}

/// Commits some transactions. After a table has grown, the first ones take up to three times as long as those that follow.
pub(crate) fn warm_up<S: Subject>(subject: &mut S, rows: u64, kind: Kind) {
    let mut random = Random(4);
    for _ in 0..4_000 {
        commit_one(subject, rows, kind, &mut random);
        subject.forget();
        subject.tidy();
    }
}

/// The medians of figures of two that take turns.
pub(crate) fn in_turn<const K: usize>(
    mut one: impl FnMut() -> [f64; K],
    mut other: impl FnMut() -> [f64; K],
) -> ([f64; K], [f64; K]) {
    // The first turn fills caches, and is not counted.
    one();
    other();
    let (ones, others): (Vec<_>, Vec<_>) = (0..TURNS).map(|_| (one(), other())).unzip();
    let medians = |turns: &[[f64; K]]| {
        std::array::from_fn(|figure| median(turns.iter().map(|turn| turn[figure]).collect()))
    };
    (medians(&ones), medians(&others))
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The microseconds that each of some repetitions takes.
pub(crate) fn repeated(times: u32, mut f: impl FnMut()) -> [f64; 1] {
    let start = Instant::now();
    (0..times).for_each(|_| f());
    [micros(start.elapsed()) / f64::from(times)]
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Time that is spent in parts, without the time that the clock takes.
pub(crate) struct Stopwatch {
    clock: Duration,
    spent: Duration,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        let readings: Vec<Duration> = (0..1_001).map(|_| Instant::now().elapsed()).collect();
        let mut sorted = readings;
        sorted.sort_unstable();
        Self { clock: sorted[sorted.len() / 2], spent: Duration::ZERO }
    }

    pub(crate) fn time<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = f();
        self.spent += start.elapsed().saturating_sub(self.clock);
        result
    }

    pub(crate) fn micros(&self) -> f64 {
        micros(self.spent)
    }
}
