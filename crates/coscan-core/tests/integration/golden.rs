//! Golden decision traces: the decisions of each policy on one workload, line by line. When a policy is meant to
//! change, run with `INSTA_UPDATE=always` and read the difference.

use crate::world::{WorkerProfile, World, worker};
use coscan_core::*;

/// 12 chunks of 3 columns (10, 20 and 40 bytes), a pool of a third of them, two loads at once, four scans.
fn trace(policy: PolicyKind) -> String {
    let (mut world, table) =
        World::new(policy.build(), 12 * 70 / 3, 2).with_table(12, &[10, 20, 40]);
    world.start(table, &[0, 1], 0..120, &[worker(60)]);
    world.drive_until(100);
    world.start(table, &[1, 2], 0..120, &[worker(90), worker(110)]);
    world.drive_until(200);
    world.start(table, &[0], 30..60, &[worker(10)]);
    world.drive_until(400);
    let early = WorkerProfile { releases_early: true, ..worker(50) };
    world.try_start(table, &[0, 2], vec![20..50, 80..110], Order::InOrder, &[early]).unwrap();
    world.drive();
    assert_eq!(world.finished.len(), 4);
    let bytes_read = world.model.loaded_bytes;
    let mut lines = vec![format!("# {policy}: {bytes_read} bytes read, done at {}", world.now)];
    for (scan, ended) in &world.ended {
        let ScanCounts { chunks_found, bytes_read, bytes_reused, .. } = ended.report;
        lines.push(format!(
            "# scan={scan} done={} found={chunks_found} read={bytes_read} reused={bytes_reused}",
            ended.at
        ));
    }
    lines.append(&mut world.trace);
    lines.join("\n")
}

#[test]
fn decisions_are_as_recorded() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for policy in PolicyKind::ALL {
            insta::assert_snapshot!(policy.name(), trace(policy));
        }
    });
}
