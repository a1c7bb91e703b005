//! Decision logs: text and back, and the errors for a log that does not replay.

use crate::world::{World, worker};
use coscan_core::log::{Command, Entry, Log, ReadLogError, ReplayError, Reply, VERSION};
use coscan_core::*;

/// Two scans in a pool of half of what they read, and one that is refused.
fn recorded(policy: PolicyKind) -> Log {
    let (mut world, table) = World::new(policy.build(), 4 * 30, 2).with_table(8, &[10, 20]);
    world.start(table, &[0, 1], 0..80, &[worker(60)]);
    world.drive_until(100);
    world.start(table, &[1], 20..80, &[worker(15), worker(25)]);
    world.set_pool_bytes(3 * 30);
    world.try_start(TableId(7), &[0], vec![0..40, 40..80], Order::Any, &[worker(1)]).unwrap_err();
    world.drive();
    world.take_log()
}

/// The positions of the decisions in a log.
fn decisions(log: &Log) -> Vec<usize> {
    let is_decision = |entry: &Entry| !matches!(entry, Entry::Command(_));
    (0..log.entries.len()).filter(|&index| is_decision(&log.entries[index])).collect()
}

#[test]
fn a_log_is_the_same_after_it_was_written_and_read() {
    for policy in PolicyKind::variants() {
        let log = recorded(policy);
        assert_eq!(log.to_string().parse::<Log>().unwrap(), log);
    }
}

#[test]
fn a_replay_counts_what_went_in_and_what_came_out() {
    let log = recorded(PolicyKind::Relevance);
    let commands = log.entries.iter().filter(|entry| matches!(entry, Entry::Command(_))).count();
    let replayed = log.replay().unwrap();
    assert_eq!((replayed.commands, replayed.decisions), (commands, log.entries.len() - commands));
    let layout = Reply::Layout(TableId(0), PageId(0));
    for reply in [layout, Reply::Scan(ScanId(1)), Reply::Bytes(90), Reply::Refused] {
        assert!(log.entries.contains(&Entry::Reply(reply.clone())), "{reply:?}");
    }
}

#[test]
fn a_changed_decision_is_found_where_it_is() {
    let log = recorded(PolicyKind::Relevance);
    for index in decisions(&log) {
        let mut changed = log.clone();
        changed.entries[index] = match &log.entries[index] {
            Entry::Reply(_) => Entry::Reply(Reply::Scan(ScanId(99))),
            Entry::Settled { .. } => Entry::Settled { until: Some(Time(99_999)) },
            _ => Entry::Action(Action::Finish { scan: ScanId(99), worker: WorkerIndex(0) }),
        };
        let error = changed.replay().unwrap_err();
        let ReplayError::Divergence { line, recorded, replayed, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*line, index + 2);
        assert_eq!(**recorded, changed.entries[index]);
        assert_eq!(replayed.as_deref(), Some(&log.entries[index]));
        assert!(error.to_string().contains(&log.entries[index].to_string()), "{error}");
    }
}

#[test]
fn a_decision_too_many_or_too_few_is_found() {
    let log = recorded(PolicyKind::Relevance);
    for index in decisions(&log) {
        // A log without a request, or with one more when all is done, is of another run, but a
        // possible one.
        if matches!(
            log.entries[index],
            Entry::Action(Action::Finish { .. }) | Entry::Settled { .. }
        ) {
            continue;
        }
        let mut missing = log.clone();
        missing.entries.remove(index);
        assert!(missing.replay().is_err(), "without entry {index}");
        let mut twice = log.clone();
        twice.entries.insert(index, log.entries[index].clone());
        assert!(twice.replay().is_err(), "with entry {index} twice");
    }
}

#[test]
fn another_policy_decides_otherwise() {
    let log = recorded(PolicyKind::Normal);
    let policy = PolicyKind::Relevance.to_string();
    let other = Log { header: log::Header { policy, ..log.header.clone() }, ..log.clone() };
    assert!(matches!(other.replay(), Err(ReplayError::Divergence { .. })));
    let policy = "clairvoyant".to_owned();
    let unknown = Log { header: log::Header { policy, ..log.header.clone() }, ..log };
    assert!(unknown.replay().unwrap_err().to_string().contains("clairvoyant"));
}

#[test]
fn a_log_without_its_middle_is_refused() {
    let mut log = recorded(PolicyKind::Relevance);
    let is_report = |entry: &Entry| matches!(entry, Entry::Command(Command::PageLoaded { .. }));
    let reported = log.entries.iter().position(is_report).unwrap();
    log.entries.insert(reported, log.entries[reported].clone());
    let error = log.replay().unwrap_err();
    assert!(matches!(error, ReplayError::Unexpected { .. }), "{error}");
}

#[test]
fn what_is_no_log_is_named() {
    let text = recorded(PolicyKind::Normal).to_string();
    let read = |text: &str| text.parse::<Log>().unwrap_err();
    for other in ["", "\n", "{}", "SELECT 1", "{\"coscan_log\":\"new\"}"] {
        assert!(matches!(read(other), ReadLogError::NotALog), "{other}");
    }
    let newer = text.replacen(&format!("\"coscan_log\":{VERSION}"), "\"coscan_log\":77", 1);
    assert!(matches!(read(&newer), ReadLogError::Version { found: 77 }));
    assert!(read(&newer).to_string().contains(&format!("reads format {VERSION}")));
    let cut = &text[..text.len() - 3];
    let lines = text.lines().count();
    assert!(
        read(cut).to_string().starts_with(&format!("line {lines} of the log")),
        "{}",
        read(cut)
    );
}

#[test]
fn a_layout_that_is_none_is_named() {
    let text = recorded(PolicyKind::Normal).to_string();
    for (good, bad, expected) in [
        ("\"groups\":2", "\"groups\":1", "unknown column group"),
        ("[10,[[0],[1]]]", "[0,[[0],[1]]]", "has no rows"),
        ("[10,[[0],[1]]]", "[10,[[0]]]", "one slice a column group"),
        ("[10,[[0],[1]]]", "[10,[[0,0],[1]]]", "names a page twice"),
        ("[10,[[0],[1]]]", "[10,[[1],[0]]]", "another column group"),
        ("[10,[[0],[1]]]", "[10,[[0],[4000000]]]", "another column group"),
    ] {
        assert!(text.contains(good), "{good} in {text}");
        let error = text.replacen(good, bad, 1).parse::<Log>().unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(expected), "{bad}: {error}");
    }
}
