//! Random appends, cuts, openings, crashes and faults.

use coscan_core::SplitMix64;
use coscan_wal::*;

use super::support::{History, open};

/// The kinds of operations that fail alone.
const KINDS: [Operation; 9] = [
    Operation::Write,
    Operation::Sync,
    Operation::Sync,
    Operation::SyncDirectory,
    Operation::Link,
    Operation::Remove,
    Operation::SetLength,
    Operation::Read,
    Operation::Create,
];

/// Schedules a fault or none, and returns whether it did.
fn schedule(disk: &SimulatedDisk, random: &mut SplitMix64) -> bool {
    match random.below(10) {
        0..4 => disk.power_off_after(random.below(80)),
        4 => disk.fail(None, random.below(80)),
        5..8 => {
            let kind = KINDS[random.below(KINDS.len() as u64) as usize];
            disk.fail(Some(kind), random.below(8));
        }
        8 => match random.below(3) {
            0 => disk.set_read_only(true),
            _ => disk.limit_bytes(Some(5_000 + random.below(60_000))),
        },
        _ => return false,
    }
    true
}

/// One life of a process, until it ends by a fault or by itself.
fn live(
    disk: &SimulatedDisk,
    history: &mut History,
    random: &mut SplitMix64,
) -> Result<(), LogError> {
    let segment_bytes = 4096 + 600 + random.below(8_000);
    let (mut log, recovery) = open(disk, segment_bytes)?;
    history.check(&recovery)?;
    for _ in 0..random.below(20) {
        if let Err(error) = history.step(&mut log, random, segment_bytes) {
            let again = log.append_all(&["more"]);
            assert!(matches!(again, Err(LogError::Poisoned { .. })), "{again:?}");
            assert!(matches!(log.cut_before(Lsn(1)), Err(LogError::Poisoned { .. })));
            return Err(error);
        }
    }
    if random.below(3) == 0 { log.close() } else { Ok(()) }
}

fn run(seed: u64) {
    let mut random = SplitMix64(seed);
    let mut disk = SimulatedDisk::new(seed);
    let mut history = History::default();
    for _ in 0..5 {
        let has_fault = schedule(&disk, &mut random);
        if let Err(error) = live(&disk, &mut history, &mut random) {
            assert!(has_fault, "seed {seed}: {error}");
            assert!(matches!(error, LogError::Io { .. }), "seed {seed}: {error}");
        }
        disk = match random.below(4) {
            0 => disk.restart(random.next_u64()),
            1 => disk.duplicate(),
            _ => disk.crash(random.next_u64()),
        };
    }
    let (_, recovery) = open(&disk, 5_000).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    history.check(&recovery).unwrap();
}

fn run_all(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed} failed");
    }
}

#[test]
fn what_was_acknowledged_survives_whatever_happens() {
    run_all(0..2_000);
}

/// `COSCAN_WAL_SEEDS=100000 cargo test --release -p coscan-wal -- --ignored` runs as many seeds.
#[test]
#[ignore = "takes long"]
fn what_was_acknowledged_survives_for_many_seeds() {
    let seeds = std::env::var("COSCAN_WAL_SEEDS").map_or(20_000, |seeds| seeds.parse().unwrap());
    run_all(1_000_000..1_000_000 + seeds);
}
