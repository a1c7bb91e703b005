//! Damage of what was durable.

use coscan_core::SplitMix64;
use coscan_wal::*;

use super::support::{open, payload, records, segments};

const SEGMENT_BYTES: u64 = 4096 + 3_000;

/// A log of several segments, groups and openings, and its records. All are acknowledged.
fn written(seed: u64) -> (SimulatedDisk, Vec<Vec<u8>>) {
    let disk = SimulatedDisk::new(seed);
    let mut random = SplitMix64(seed);
    let mut all = Vec::new();
    for _ in 0..2 {
        let (mut log, _) = open(&disk, SEGMENT_BYTES).unwrap();
        for _ in 0..6 {
            let group: Vec<_> =
                (0..1 + random.below(5)).map(|_| payload(&mut random, SEGMENT_BYTES)).collect();
            log.append_all(&group).unwrap();
            all.extend(group);
        }
    }
    (disk, all)
}

/// What a log with damage gives.
enum Outcome {
    Error(LogError),
    Records(Vec<Vec<u8>>, Option<TornTail>),
}

fn read(disk: &SimulatedDisk) -> Outcome {
    let recovered = open(disk, SEGMENT_BYTES)
        .and_then(|(_, recovery)| Ok((records(&recovery)?, recovery.torn().cloned())));
    match recovered {
        Ok((records, torn)) => Outcome::Records(records, torn),
        Err(error) => Outcome::Error(error),
    }
}

/// The places in segments where records are: a path, and the first and last byte.
fn places(disk: &SimulatedDisk) -> Vec<(String, u64, u64)> {
    let place = |path: String| {
        let content = disk.read(&path).unwrap();
        let end = content.iter().rposition(|byte| *byte != 0).unwrap();
        (path, 4096, (end as u64).max(4096))
    };
    segments(disk).into_iter().map(place).collect()
}

#[test]
fn a_flipped_bit_is_found_or_reported() {
    let (mut errors, mut cuts) = (0, 0);
    for seed in 0..60 {
        let (disk, all) = written(seed);
        let mut random = SplitMix64(seed);
        let places = places(&disk);
        for _ in 0..25 {
            let damaged = disk.duplicate();
            let (path, from, to) = &places[random.below(places.len() as u64) as usize];
            let byte = from + random.below(to - from + 1);
            damaged.flip_bit(path, byte, random.below(8) as u8).unwrap();
            match read(&damaged) {
                Outcome::Error(error) => {
                    let LogError::Corrupt { path: named, .. } = &error else { panic!("{error}") };
                    assert_eq!(named, path);
                    errors += 1;
                }
                // Zeros between records.
                Outcome::Records(records, None) => assert_eq!(records, all, "{path} {byte}"),
                Outcome::Records(records, Some(torn)) => {
                    // The last group of a log that was not closed.
                    assert_eq!(torn.path, places.last().unwrap().0);
                    assert!(records.len() >= all.len() - 5 && all.starts_with(&records));
                    assert_eq!(torn.lsn.0, records.len() as u64 + 1);
                    cuts += 1;
                }
            }
        }
    }
    assert!(errors > 500 && cuts > 50, "{errors} errors, {cuts} cuts");
}

#[test]
fn in_a_closed_log_each_flipped_bit_is_an_error() {
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        let (mut log, _) = open(&disk, 1 << 16).unwrap();
        log.append_all(&["a", "bc", "def"]).unwrap();
        log.close().unwrap();
        let path = segments(&disk)[0].clone();
        let records_of = [(0, 33), (40, 74), (80, 115)];
        for (from, to) in records_of {
            for byte in from..to {
                let damaged = disk.duplicate();
                damaged.flip_bit(&path, 4096 + byte, (seed % 8) as u8).unwrap();
                let Outcome::Error(error) = read(&damaged) else { panic!("byte {byte}") };
                let LogError::Corrupt { offset, lsn, .. } = error else { panic!("{error}") };
                assert_eq!((offset, lsn), (4096 + from, Lsn(from / 40 + 1)));
            }
        }
    }
}

#[test]
fn a_damaged_record_before_the_last_group_names_its_proof() {
    let disk = SimulatedDisk::new(1);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    log.append_all(&["one"]).unwrap();
    log.append_all(&["two"]).unwrap();
    disk.flip_bit(&segments(&disk)[0], 4096 + 33, 0).unwrap();
    let Err(error) = open(&disk.crash(1), 1 << 16) else { panic!("opened") };
    let text = error.to_string();
    assert!(
        text.contains("wal/00000000000000000001-0000000001.log is damaged at byte 4096"),
        "{text}"
    );
    assert!(text.contains("LSN 2 at byte 4136 says that it was durable"), "{text}");
    assert!(text.contains("backup"), "{text}");
}

#[test]
fn the_proof_is_found_wherever_it_is() {
    // What is after a bad record is read in parts of a mebibyte: the later record begins near the end of one.
    for before in (0..80).step_by(8) {
        let disk = SimulatedDisk::new(1);
        let (mut log, _) = open(&disk, 4 << 20).unwrap();
        log.append_all(&[vec![1; (1 << 20) - before]]).unwrap();
        log.append_all(&["later"]).unwrap();
        disk.flip_bit(&segments(&disk)[0], 5_000, 0).unwrap();
        assert!(matches!(read(&disk.restart(0)), Outcome::Error(LogError::Corrupt { .. })));
    }
}

#[test]
fn later_sectors_of_a_group_without_earlier_ones_are_torn() {
    let disk = SimulatedDisk::new(1);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    log.append_all(&["durable"]).unwrap();
    // Each record has sectors of its own. None of them says that another one is durable.
    let group = [vec![1; 2_000], vec![2; 2_000], vec![3; 2_000]];
    log.append_all(&group).unwrap();
    let path = &segments(&disk)[0];
    let file = disk.open_writable(path).unwrap();
    file.write_at(&[0; 512], 4096 + 512).unwrap();
    let Outcome::Records(records, Some(torn)) = read(&disk.restart(0)) else { panic!("an error") };
    assert_eq!(records, [b"durable"]);
    assert_eq!((torn.lsn, torn.offset, torn.bytes), (Lsn(2), 4096 + 40, 3 * 2_032));
}

#[test]
fn a_group_of_which_only_the_end_is_there_is_torn_at_its_beginning() {
    let disk = SimulatedDisk::new(1);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    log.append_all(&[vec![1; 2_000], vec![2; 2_000]]).unwrap();
    let path = &segments(&disk)[0];
    disk.open_writable(path).unwrap().write_at(&[0; 1_024], 4096).unwrap();
    let Outcome::Records(records, Some(torn)) = read(&disk.restart(0)) else { panic!("an error") };
    assert!(records.is_empty());
    assert_eq!(torn.lsn, Lsn(1));
}

#[test]
fn a_segment_of_another_history_breaks_the_chain() {
    // Two copies of a log go on with other records of the same sizes.
    let disk = SimulatedDisk::new(1);
    let (mut log, _) = open(&disk, SEGMENT_BYTES).unwrap();
    log.append_all(&[vec![0; 100]]).unwrap();
    let go_on = |payload: u8| {
        let disk = disk.duplicate();
        let (mut log, _) = open(&disk, SEGMENT_BYTES).unwrap();
        for _ in 0..14 {
            log.append_all(&[vec![payload; 600]]).unwrap();
        }
        disk
    };
    let [left, right] = [go_on(1), go_on(2)];
    let paths = segments(&left);
    assert_eq!(paths, segments(&right));
    assert!(paths.len() >= 4);
    // A whole segment.
    let mixed = left.duplicate();
    let content = right.read(&paths[2]).unwrap();
    mixed.open_writable(&paths[2]).unwrap().write_at(&content, 0).unwrap();
    let Outcome::Error(LogError::Corrupt { path, .. }) = read(&mixed) else { panic!("no error") };
    assert!(path == paths[2] || path == paths[1], "{path}");
    // The second of four records of a segment.
    let mixed = left.duplicate();
    let second = 4096 + 632;
    let content = &right.read(&paths[1]).unwrap()[second..second + 632];
    mixed.open_writable(&paths[1]).unwrap().write_at(content, second as u64).unwrap();
    let Outcome::Error(LogError::Corrupt { path, offset, .. }) = read(&mixed) else {
        panic!("no error")
    };
    assert_eq!((path, offset), (paths[1].clone(), second as u64));
}

#[test]
fn a_missing_segment_is_an_error() {
    let (disk, _) = written(3);
    let paths = segments(&disk);
    for path in &paths[1..paths.len() - 1] {
        let damaged = disk.duplicate();
        damaged.remove(path).unwrap();
        let Outcome::Error(error) = read(&damaged) else { panic!("{path} is missing") };
        assert!(error.to_string().contains("file between them is missing"), "{error}");
    }
}

#[test]
fn a_segment_that_was_shortened_is_an_error() {
    let (disk, _) = written(3);
    for (path, from, to) in places(&disk) {
        for length in [100, from + (to - from) / 2] {
            let damaged = disk.duplicate();
            damaged.open_writable(&path).unwrap().truncate(length).unwrap();
            let Outcome::Error(error) = read(&damaged) else { panic!("{path} of {length}") };
            assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
        }
    }
}

#[test]
fn damaged_headers_are_errors() {
    let (disk, _) = written(3);
    for path in segments(&disk) {
        let damaged = disk.duplicate();
        damaged.flip_bit(&path, 20, 1).unwrap();
        let Outcome::Error(error) = read(&damaged) else { panic!("{path}") };
        assert!(matches!(error, LogError::Corrupt { offset: 0, .. }), "{error}");
    }
    let paths = segments(&disk);
    disk.rename(&paths[0], &paths[1]).unwrap();
    let Outcome::Error(error) = read(&disk) else { panic!("renamed") };
    assert!(error.to_string().contains("that of another segment"), "{error}");
}

#[test]
fn a_payload_that_looks_like_a_record_proves_nothing() {
    // The records of one log as payloads of another one, at the same places.
    let (other, _) = written(5);
    let copied = other.read(&segments(&other)[0]).unwrap()[4096..6_000].to_vec();
    let disk = SimulatedDisk::new(1);
    let (mut log, _) = open(&disk, 1 << 16).unwrap();
    let mut mark = vec![0; 8];
    mark.extend_from_slice(&copied);
    log.append_all(&[mark.clone(), copied]).unwrap();
    disk.flip_bit(&segments(&disk)[0], 4096, 1).unwrap();
    let Outcome::Records(records, Some(_)) = read(&disk.restart(0)) else { panic!("an error") };
    assert!(records.is_empty());
}
