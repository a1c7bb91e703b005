//! The cost of changes: nanoseconds for a commit of one row, for positions and for reading a chunk, in files of a million
//! and of a hundred million rows with no, few and many changes; and bytes for each change.
//!
//! `cargo bench -p coscan-pdt` runs it. A commit clones the latest version, changes one row of the clone, and drops the
//! version that was latest. A transaction beside another is checked against the other's commit and rebased onto it.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::hint::black_box;

use coscan_pdt::*;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[path = "support/counting.rs"]
mod counting;
#[path = "support/random.rs"]
mod random;

use counting::{bytes_in_use, used_by};
use random::Random;

/// 16 bytes, as a scalar of a column may have.
type Value = (u64, u64);
type Version = FileChanges<Value>;

const ROWS: [u64; 2] = [1_000_000, 100_000_000];
const CHANGES: [u64; 3] = [0, 10_000, 1_000_000];
/// In a row on one version: so few that the number of changes stays nearly what it is.
const COMMITS: u64 = 100;
const CHUNK_ROWS: u64 = 131_072;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Patch,
    Delete,
    Insert,
    Append,
}

const KINDS: [(&str, Kind); 4] = [
    ("patch", Kind::Patch),
    ("delete", Kind::Delete),
    ("insert", Kind::Insert),
    ("append", Kind::Append),
];

impl Kind {
    /// Changes a row. A row that was deleted already is passed over for another.
    fn change(self, version: &mut Version, random: &mut Random, id: &mut u64) -> RowId {
        loop {
            let sid = Sid(random.below(version.row_count()));
            let done = match self {
                Self::Patch => version.patch(sid, 3, (sid.0, 1)).map(|()| sid.into()),
                Self::Delete => version.delete(sid).map(|()| sid.into()),
                Self::Insert | Self::Append => {
                    *id += 1;
                    let place = if self == Self::Append { Place::Tail } else { Place::Before(sid) };
                    let row = [(sid.0, 1); 4];
                    version
                        .insert(Insert::new(InsertId(*id), place, row))
                        .map(|()| InsertId(*id).into())
                }
            };
            if let Ok(row) = done {
                return row;
            }
        }
    }
}

/// A version with so many changes of a kind, each a commit of its own, so that nodes are as full as commits leave them.
fn version(rows: u64, changes: u64, kind: Kind) -> (Version, u64) {
    let (mut version, mut random, mut id) = (Version::new(rows), Random(1), 0);
    for _ in 0..changes {
        let mut next = version.clone();
        kind.change(&mut next, &mut random, &mut id);
        version = next;
    }
    (version, id)
}

fn name(rows: u64, changes: u64) -> String {
    format!("{} million rows, {changes} changes", rows / 1_000_000)
}

/// Half of the rows may be deleted at most, so that one is found.
fn cases() -> impl Iterator<Item = (u64, u64)> {
    ROWS.into_iter().flat_map(|rows| CHANGES.map(|changes| (rows, changes.min(rows / 2))))
}

fn commits(criterion: &mut Criterion) {
    for (kind_name, kind) in KINDS {
        let mut group = criterion.benchmark_group(format!("{COMMITS} commits of one {kind_name}"));
        group.throughput(Throughput::Elements(COMMITS));
        for (rows, changes) in cases() {
            let (start, mut id) = version(rows, changes, kind);
            let mut random = Random(2);
            group.bench_function(name(rows, changes), |bencher| {
                bencher.iter_batched(
                    || start.clone(),
                    |mut latest| {
                        for _ in 0..COMMITS {
                            let mut next = latest.clone();
                            kind.change(&mut next, &mut random, &mut id);
                            latest = next;
                        }
                        latest
                    },
                    BatchSize::SmallInput,
                );
            });
        }
        group.finish();
    }
}

/// What to compare commits with: the same cells in a map of the standard library, changed in place, of which there is one
/// version only.
fn in_place(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("{COMMITS} patches in a BTreeMap in place"));
    group.throughput(Throughput::Elements(COMMITS));
    for (rows, changes) in cases().filter(|(_, changes)| *changes > 0) {
        let (version, _) = version(rows, changes, Kind::Patch);
        let patches = version.range(Sid(0)..Sid(rows));
        let mut map: BTreeMap<(u32, Sid), Value> =
            patches.patches(3).map(|(sid, value)| ((3, sid), *value)).collect();
        let mut random = Random(2);
        group.bench_function(name(rows, changes), |bencher| {
            bencher.iter(|| {
                for _ in 0..COMMITS {
                    let from = (3, Sid(random.below(rows)));
                    if let Some((_, value)) = map.range_mut(from..).next() {
                        value.1 += 1;
                    }
                }
            });
        });
    }
    group.finish();
}

fn rebases(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a transaction of one patch beside another");
    for (rows, changes) in cases() {
        let (start, _) = version(rows, changes, Kind::Patch);
        let mut random = Random(3);
        group.bench_function(name(rows, changes), |bencher| {
            bencher.iter(|| {
                let [mut one, mut other] = [0; 2].map(|_| Transaction::new(&start));
                one.patch(Sid(random.below(rows)), 3, (1, 1)).unwrap();
                other.patch(Sid(random.below(rows)), 3, (1, 1)).unwrap();
                let (latest, writes) = one.into_parts();
                black_box(other.rebased(&latest, [&writes]).ok())
            });
        });
    }
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reads");
    for (rows, changes) in cases() {
        let (mut version, mut random, mut id) = (Version::new(rows), Random(1), 0);
        for number in 0..changes {
            let kind = [Kind::Patch, Kind::Delete, Kind::Insert][(number % 3) as usize];
            kind.change(&mut version, &mut random, &mut id);
        }
        let visible = version.visible_rows();
        group.bench_function(BenchmarkId::new("rid_of_sid", name(rows, changes)), |bencher| {
            bencher.iter(|| black_box(version.rid_of_sid(Sid(random.below(rows)))));
        });
        group.bench_function(BenchmarkId::new("row_at_rid", name(rows, changes)), |bencher| {
            bencher.iter(|| black_box(version.row_at_rid(Rid(random.below(visible)))));
        });
        let chunk = BenchmarkId::new("a chunk of 128 Ki rows", name(rows, changes));
        group.bench_function(chunk, |bencher| {
            bencher.iter(|| {
                let start = random.below(rows - CHUNK_ROWS);
                let chunk = version.range(Sid(start)..Sid(start + CHUNK_ROWS));
                let patches: u64 = chunk.patches(3).map(|(sid, value)| sid.0 ^ value.0).sum();
                let inserts: u64 = chunk.inserts().map(|insert| insert.row()[0].0).sum();
                black_box((chunk.deleted_mask(), patches, inserts))
            });
        });
    }
    group.finish();
}

fn bulk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bulk");
    group.sample_size(10);
    let rows = ROWS[1];
    group.throughput(Throughput::Elements(rows / 100));
    group.bench_function("from_deleted, 1 % of 100 million rows", |bencher| {
        bencher.iter(|| Version::from_deleted(rows, (0..rows).step_by(100)).unwrap());
    });
    let at = version(rows, 1_000_000, Kind::Patch).0;
    let mut later = at.clone();
    let mut random = Random(4);
    for _ in 0..10_000 {
        Kind::Delete.change(&mut later, &mut random, &mut 0);
    }
    group.throughput(Throughput::Elements(10_000));
    group.bench_function("RowMap::map_changes, 10,000 after 1,000,000", |bencher| {
        let map = RowMap::new(&at);
        bencher.iter(|| map.map_changes(&later).unwrap());
    });
    group.finish();
}

/// Prints bytes, since criterion measures time only.
fn bytes(_: &mut Criterion) {
    println!("bytes of heap for each change (a value has 16 bytes, an inserted row four values):");
    for (kind_name, kind) in KINDS {
        for (rows, changes) in cases().filter(|(_, changes)| *changes > 0) {
            let bytes = used_by(&mut || version(rows, changes, kind).0);
            println!(
                "  {kind_name:<8} {:<42} {:>8.1}",
                name(rows, changes),
                bytes / changes as f64
            );
        }
    }
    for part in [1_000, 100, 10, 2] {
        let rows = ROWS[1];
        let deleted = rows / part;
        let bytes =
            used_by(&mut || Version::from_deleted(rows, (0..rows).step_by(part as usize)).unwrap());
        let name = format!("100 million rows, one of {part} deleted");
        println!("  from_deleted, {name:<36} {:>8.2}", bytes / deleted as f64);
    }
    let writes = used_by(&mut || [Sid(7)].into_iter().collect::<WriteSet>());
    println!("bytes of heap of a write set of one row: {writes}");
    println!("bytes of heap of an old version that is kept, for each commit of one patch since:");
    for (rows, changes) in cases() {
        let (start, mut id) = version(rows, changes, Kind::Patch);
        let mut random = Random(5);
        let mut kept = Vec::with_capacity(1_000);
        let before = bytes_in_use();
        let mut latest = start;
        for _ in 0..1_000 {
            kept.push(latest.clone());
            Kind::Patch.change(&mut latest, &mut random, &mut id);
        }
        let bytes = bytes_in_use() - before;
        println!("  {:<51} {:>8.0}", name(rows, changes), bytes as f64 / 1_000.0);
    }
}

criterion_group!(benches, bytes, commits, in_place, rebases, reads, bulk);
criterion_main!(benches);
