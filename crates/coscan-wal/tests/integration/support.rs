//! What a log must have after a crash.

use std::sync::Arc;

use coscan_core::SplitMix64;
use coscan_wal::*;

/// Small segments in the directory `wal`.
pub(super) fn options(segment_bytes: u64) -> LogOptions {
    LogOptions { directory: "wal".into(), segment_bytes }
}

pub(super) fn open(disk: &SimulatedDisk, segment_bytes: u64) -> Result<(Log, Recovery), LogError> {
    Log::open(Arc::new(disk.clone()), options(segment_bytes))
}

/// All records, or the error that reading them gave.
pub(super) fn records(recovery: &Recovery) -> Result<Vec<Vec<u8>>, LogError> {
    let mut all = Vec::new();
    let mut next = recovery.first();
    recovery.for_each(next, |record| {
        assert_eq!(record.lsn, next, "a gap");
        next = next.next();
        all.push(record.payload.to_vec());
        Ok::<(), LogError>(())
    })?;
    assert_eq!(next, recovery.last().next(), "the end");
    Ok(all)
}

/// The paths of the segments, oldest first.
pub(super) fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list("wal").unwrap();
    names.iter().filter(|name| name.ends_with(".log")).map(|name| format!("wal/{name}")).collect()
}

/// A payload that no other record has, of a random size: small, empty, of several sectors or larger than a segment.
pub(super) fn payload(random: &mut SplitMix64, segment_bytes: u64) -> Vec<u8> {
    let bytes = match random.below(40) {
        0 => segment_bytes - 4096 + random.below(700),
        1..4 => 0,
        4..12 => 500 + random.below(1_500),
        _ => random.below(200),
    };
    // Some have sectors of zeros, as a lost sector has.
    let fill = if random.below(4) == 0 { 0 } else { random.next_u64() as u8 };
    let mut payload = vec![fill; bytes as usize];
    let name = random.next_u64().to_le_bytes();
    let length = payload.len().min(8);
    payload[..length].copy_from_slice(&name[..length]);
    payload
}

/// What was done with a log.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The payloads of the records from LSN 1 on that the log may have.
    pub(super) submitted: Vec<Vec<u8>>,
    /// The last record that was acknowledged or recovered.
    pub(super) acknowledged: Lsn,
    /// The first record that must be there, and the first that may be.
    kept: Lsn,
}

impl History {
    /// Checks what a log has after it was opened. That is settled then.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn check(&mut self, recovery: &Recovery) -> Result<(), LogError> {
        let (first, last) = (recovery.first(), recovery.last());
        assert!(last >= self.acknowledged, "{} was acknowledged; {last}", self.acknowledged);
        assert!(last.0 <= self.submitted.len() as u64, "{last} was never submitted");
        assert!(first <= self.kept.max(Lsn(1)), "{first} is the first, not {}", self.kept);
        self.submitted.truncate(last.0 as usize);
        self.acknowledged = last;
        assert_eq!(records(recovery)?, self.submitted[first.0 as usize - 1..]);
        Ok(())
    }

    pub(super) fn append(&mut self, log: &mut Log, payloads: &[Vec<u8>]) -> Result<(), LogError> {
        self.submitted.extend_from_slice(payloads);
        let last = log.append_all(payloads)?;
        assert_eq!(last.0, self.submitted.len() as u64);
        self.acknowledged = last;
        Ok(())
    }

    pub(super) fn cut(&mut self, log: &mut Log, lsn: Lsn) -> Result<(), LogError> {
        self.kept = self.kept.max(lsn.min(Lsn(self.submitted.len() as u64 + 1)));
        log.cut_before(lsn)
    }

    /// Something random: mostly a few records, sometimes a cut.
    pub(super) fn step(
        &mut self,
        log: &mut Log,
        random: &mut SplitMix64,
        segment_bytes: u64,
    ) -> Result<(), LogError> {
        match random.below(10) {
            0 => {
                let lsn = Lsn(random.below(self.submitted.len() as u64 + 3));
                self.cut(log, lsn)
            }
            _ => {
                let count = if random.below(3) == 0 { random.below(12) } else { 1 };
                let payloads: Vec<_> = (0..count).map(|_| payload(random, segment_bytes)).collect();
                self.append(log, &payloads)
            }
        }
    }
}
