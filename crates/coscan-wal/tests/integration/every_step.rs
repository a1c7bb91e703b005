//! The power goes off at every step of a script, and at every step of the recovery after that.

use coscan_core::SplitMix64;
use coscan_wal::*;

use super::support::{History, open, records};

/// Two lives with records, a full segment, a cut, and a close.
fn script(disk: &SimulatedDisk, seed: u64, history: &mut History) -> Result<(), LogError> {
    let mut random = SplitMix64(seed);
    for life in 0..2 {
        let segment_bytes = 4096 + 1_500;
        let (mut log, recovery) = open(disk, segment_bytes)?;
        history.check(&recovery)?;
        for _ in 0..6 {
            history.step(&mut log, &mut random, segment_bytes)?;
        }
        let half = Lsn(history.acknowledged.0 / 2);
        history.cut(&mut log, half)?;
        history.cut(&mut log, Lsn(u64::MAX / 2))?;
        history.append(&mut log, &[vec![life; 300], vec![life + 9; 900]])?;
        if life == 0 {
            log.close()?;
        }
    }
    Ok(())
}

/// Opens the log after a crash, with the power going off in between, and uses it.
fn recover(disk: SimulatedDisk, steps: u64, history: &mut History, seed: u64) {
    disk.power_off_after(steps);
    if let Ok((mut log, recovery)) = open(&disk, 5_000)
        && history.check(&recovery).is_ok()
    {
        let _ = history.append(&mut log, &[vec![3; 700], vec![4; 20]]);
    }
    let disk = disk.crash(seed);
    let (mut log, recovery) = open(&disk, 5_000).unwrap();
    history.check(&recovery).unwrap();
    history.append(&mut log, &[vec![5; 10]]).unwrap();
    let (_, recovery) = open(&disk.crash(seed), 5_000).unwrap();
    history.check(&recovery).unwrap();
}

#[test]
fn a_crash_at_every_step_loses_nothing_acknowledged() {
    for seed in 0..5 {
        let disk = SimulatedDisk::new(seed);
        script(&disk, seed, &mut History::default()).unwrap();
        for steps in 0..disk.operations(None) {
            for crash in 0..3 {
                let disk = SimulatedDisk::new(seed);
                disk.power_off_after(steps);
                let mut history = History::default();
                script(&disk, seed, &mut history).unwrap_err();
                let mut random = SplitMix64(steps * 3 + crash);
                let after = random.below(45);
                recover(disk.crash(random.next_u64()), after, &mut history, random.next_u64());
            }
        }
    }
}

#[test]
fn each_single_failure_is_survived_by_opening_again() {
    for seed in 0..4 {
        let disk = SimulatedDisk::new(seed);
        script(&disk, seed, &mut History::default()).unwrap();
        for step in 0..disk.operations(None) {
            let disk = SimulatedDisk::new(seed);
            disk.fail(None, step);
            let mut history = History::default();
            let error = script(&disk, seed, &mut history).unwrap_err();
            assert!(matches!(error, LogError::Io { .. }), "{error}");
            // In the same process, with what the failure has left in the cache.
            let (mut log, recovery) = open(&disk, 5_000).unwrap();
            history.check(&recovery).unwrap();
            history.append(&mut log, &[vec![6; 40]]).unwrap();
            let (_, recovery) = open(&disk.crash(seed), 5_000).unwrap();
            history.check(&recovery).unwrap();
        }
    }
}

#[test]
fn a_crash_at_every_step_of_opening_after_a_failed_sync_is_no_damage() {
    let failed = |seed| {
        let disk = SimulatedDisk::new(seed);
        let (mut log, _) = open(&disk, 16_384).unwrap();
        log.append_all(&["durable"]).unwrap();
        disk.fail(Some(Operation::Sync), 0);
        log.append_all(&[vec![1; 2_000], vec![2; 2_000]]).unwrap_err();
        disk
    };
    let disk = failed(0).restart(0);
    open(&disk, 16_384).unwrap();
    for steps in 0..disk.operations(None) {
        for seed in 0..40 {
            // The cache has the records, the medium has some of their sectors.
            let disk = failed(seed);
            let disk = if seed % 2 == 0 { disk.restart(seed) } else { disk.duplicate() };
            disk.power_off_after(steps);
            open(&disk, 16_384).unwrap_err();
            let (_, recovery) = open(&disk.crash(seed), 16_384).unwrap();
            assert!((1..4).contains(&records(&recovery).unwrap().len()));
        }
    }
}
