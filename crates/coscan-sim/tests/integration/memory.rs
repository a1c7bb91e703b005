//! Memory that is short throughout: 64 scans whose chunks take memory to decode, and 8 operators that take and return
//! some all the time. Whatever the seed, the simulator finds that no user is refused what could be had, that the pool
//! and all others stay within the budget, and that none waits for longer than a query may. The tests show that all get
//! their rows, and that the disk does not wait for decisions about memory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, Layout, MemoryLimits, Order, PolicyKind, Time};
use coscan_sim::{
    Cost, Disk, End, Machine, MemoryOutcome, MemoryWorkload, Options, Outcome, Query, Random,
    Stream, Table, Workload, run,
};

const SEEDS: Range<u64> = 0..24;
const SCANS: usize = 64;
const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;
const CHUNKS: u64 = 40;
const CHUNK_BYTES: u64 = MIB;

/// Limits of a sixth of what all would take at once.
const SHORT: MemoryLimits = MemoryLimits {
    budget_bytes: 16 * MIB,
    pool_ceiling_bytes: 8 * MIB,
    pool_floor_bytes: 4 * MIB,
    overtaking_ns: 100 * MS,
};

/// Limits for policies that hand chunks to all workers at once. With less memory none would wait for ever, but for
/// longer.
const LARGER: MemoryLimits =
    MemoryLimits { budget_bytes: 64 * MIB, pool_ceiling_bytes: 32 * MIB, ..SHORT };

/// A table of chunks of one page and one row each.
fn table() -> Table {
    let mut builder = Layout::builder(1);
    for _ in 0..CHUNKS {
        let page = builder.add_page(GroupIndex(0), CHUNK_BYTES);
        builder.add_chunk(1, vec![vec![page]]);
    }
    Table::at_rest("table", Arc::new(builder.build()))
}

/// Long scans, and some short and tiny ones that come while they run.
fn workload(random: &mut Random, limits: MemoryLimits) -> Workload {
    let streams = (0..SCANS).map(|_| {
        let chunks =
            if random.percent(70) { random.between(15, CHUNKS) } else { random.between(1, 4) };
        let first = random.below(CHUNKS - chunks + 1);
        let columns = vec![GroupIndex(0)];
        let query = Query {
            order: if random.percent(25) { Order::InOrder } else { Order::Any },
            cost: Cost { row_ps: random.between(1, 4) * 1_000_000_000, byte_ps: 0 },
            workers: random.count(1, 2),
            ..Query::scan("scan", random.count(0, 3), columns, first..first + chunks)
        };
        let start = Time(random.below(50 * MS));
        Stream { start, queries: vec![query], ..Stream::default() }
    });
    let streams = streams.collect();
    let tables = vec![table(), table(), table(), table()];
    Workload {
        tables,
        streams,
        pool_bytes: limits.pool_ceiling_bytes,
        pool_changes: Vec::new(),
        table_changes: Vec::new(),
    }
}

fn run_of(seed: u64, limits: MemoryLimits, policy: PolicyKind) -> (Workload, Outcome) {
    let mut random = Random::new(seed);
    let workload = workload(&mut random, limits);
    let machine = Machine::new(Disk::Perfect { ns_per_chunk: MS }, 8);
    let memory = MemoryWorkload {
        limits,
        opening_bytes_max: 3 * MIB,
        batch_bytes_max: MIB,
        operators: 8,
        operator_bytes_max: 2 * MIB,
        operator_ns_max: MS,
        seed: random.next_u64(),
    };
    let options = Options { memory: Some(memory), audit_every: 1_000, ..Options::default() };
    let outcome = run(&workload, &machine, policy.build(), options).unwrap();
    (workload, outcome)
}

/// Asserts that every scan is handed every chunk that it needs once.
fn assert_complete(workload: &Workload, outcome: &Outcome) {
    let handed: BTreeSet<_> = outcome.deliveries.iter().collect();
    assert_eq!(handed.len(), outcome.deliveries.len(), "none twice");
    for (query, ended) in workload.queries().zip(&outcome.queries) {
        assert_eq!((ended.end, ended.chunks), (End::Done, query.row_count()));
    }
}

#[test]
fn scans_get_all_rows_and_the_disk_is_not_idle_beside_operators_where_memory_is_short() {
    let mut all = MemoryOutcome::default();
    for seed in SEEDS {
        let (workload, outcome) = run_of(seed, SHORT, PolicyKind::default());
        assert_complete(&workload, &outcome);
        let memory = outcome.memory;
        assert!(memory.short_ns * 10 > outcome.total_ns * 9, "{seed}: memory is short throughout");
        let idle = memory.idle_ns as f64 / outcome.total_ns as f64;
        assert!(idle <= 0.01, "{seed}: the disk is idle for {idle:.3} of the time");
        assert!(memory.refused > 0 && memory.requests > 0, "{seed}: {memory:?}");
        all.longest_wait_ns = all.longest_wait_ns.max(memory.longest_wait_ns);
        all.overdraft_bytes_max = all.overdraft_bytes_max.max(memory.overdraft_bytes_max);
    }
    assert!(all.longest_wait_ns > SHORT.overtaking_ns, "some are not overtaken any more");
    assert!(all.overdraft_bytes_max > 0, "some is taken that is not there");
}

#[test]
fn scans_get_all_rows_under_every_policy() {
    for policy in PolicyKind::variants() {
        let (workload, outcome) = run_of(SEEDS.end, LARGER, policy);
        assert_complete(&workload, &outcome);
    }
}
