//! Whole runs against numbers worked out by hand.

use std::sync::Arc;

use coscan_core::{GroupIndex, Layout, Order, PolicyKind, Time};
use coscan_sim::{
    Cost, Disk, End, EventKind, Machine, Options, Outcome, Query, Stream, Table, Workload, bound,
    run, standalone,
};

/// A table of chunks of one row with one page of one byte.
fn table(chunks: u64) -> Table {
    let mut builder = Layout::builder(1);
    for _ in 0..chunks {
        let page = builder.add_page(GroupIndex(0), 1);
        builder.add_chunk(1, vec![vec![page]]);
    }
    Table::at_rest("table", Arc::new(builder.build()))
}

/// A query of these chunks that works `chunk_ns` nanoseconds on each.
fn query(chunks: std::ops::Range<u64>, chunk_ns: u64) -> Query {
    let cost = Cost { row_ps: chunk_ns * 1_000, byte_ps: 0 };
    Query { cost, ..Query::scan("query", 0, vec![GroupIndex(0)], chunks) }
}

fn workload(chunks: u64, pool_bytes: u64, streams: Vec<(u64, Vec<Query>)>) -> Workload {
    let streams = streams.into_iter().map(|(start, queries)| Stream {
        start: Time(start),
        queries,
        ..Stream::default()
    });
    Workload {
        tables: vec![table(chunks)],
        streams: streams.collect(),
        pool_bytes,
        pool_changes: Vec::new(),
        table_changes: Vec::new(),
    }
}

/// A disk that reads a chunk in 100 ns, and `cores` cores.
fn machine(cores: u32) -> Machine {
    Machine::new(Disk::Perfect { ns_per_chunk: 100 }, cores)
}

fn run_under(policy: PolicyKind, workload: &Workload, machine: &Machine) -> Outcome {
    let options = Options { timeline: true, ..Options::default() };
    run(workload, machine, policy.build(), options).unwrap()
}

#[test]
fn one_scan_takes_the_disk_time_and_the_work_on_the_last_chunk() {
    let one = workload(5, 3, vec![(40, vec![query(0..5, 30)])]);
    for policy in PolicyKind::ALL {
        let outcome = run_under(policy, &one, &machine(1));
        let query = &outcome.queries[0];
        assert_eq!((query.started, query.ended), (Time(40), Time(40 + 500 + 30)), "{policy}");
        assert_eq!((query.end, query.chunks, query.bytes_used), (End::Done, 5, 5), "{policy}");
        assert_eq!((outcome.requests, outcome.bytes_read), (5, 5), "{policy}");
        assert_eq!((outcome.processor_busy_ns, outcome.disk_busy_ns), (150, 500), "{policy}");
        assert_eq!(query.longest_wait_ns, 100, "{policy}");
    }
}

#[test]
fn a_scan_slower_than_the_disk_takes_the_first_read_and_all_the_work() {
    let one = workload(5, 3, vec![(0, vec![query(0..5, 250)])]);
    for policy in PolicyKind::ALL {
        let outcome = run_under(policy, &one, &machine(1));
        assert_eq!(outcome.total_ns, 100 + 5 * 250, "{policy}");
    }
}

#[test]
fn two_equal_scans_at_once_read_everything_once() {
    let scan = || (0, vec![query(0..6, 40)]);
    let two = workload(6, 3, vec![scan(), scan()]);
    for policy in PolicyKind::ALL {
        // With a core each they proceed together: six reads, then the last chunk. With one core
        // they share it or take turns.
        for (cores, last_ns) in [(2, 40), (1, 80)] {
            let outcome = run_under(policy, &two, &machine(cores));
            assert_eq!(outcome.requests, 6, "{policy}");
            assert_eq!(outcome.total_ns, 600 + last_ns, "{policy}");
            assert_eq!(outcome.processor_busy_ns, 2 * 6 * 40, "{policy}");
        }
    }
}

#[test]
fn several_workers_of_a_scan_share_its_chunks() {
    // Two workers on two cores, work three times as long as a read: chunks come at 100 and 200, after that a worker
    // asks every 150 on average: 100-400-700-1000, 200-500-800-1100.
    let scan = Query { workers: 2, ..query(0..6, 300) };
    let outcome =
        run_under(PolicyKind::Normal, &workload(6, 6, vec![(0, vec![scan])]), &machine(2));
    assert_eq!(outcome.total_ns, 1_100);
}

#[test]
fn the_next_query_of_a_stream_starts_after_its_think_time() {
    let second = Query { think_ns: 70, ..query(0..2, 10) };
    let stream = workload(2, 2, vec![(5, vec![query(0..2, 10), second])]);
    let outcome = run_under(PolicyKind::Relevance, &stream, &machine(1));
    // The first reads twice; the second finds both chunks in the pool.
    let times: Vec<_> =
        outcome.queries.iter().map(|query| (query.started.0, query.ended.0)).collect();
    assert_eq!(times, [(5, 215), (285, 305)]);
    assert_eq!(outcome.stream_times_ns(), [300]);
    assert_eq!(standalone(&stream, &machine(1)).unwrap(), [210, 210]);
}

#[test]
fn a_cancelled_query_ends_when_it_is_told_and_its_stream_goes_on() {
    let cancelled = Query { cancel_after_ns: Some(150), ..query(0..9, 10) };
    let stream = workload(9, 2, vec![(0, vec![cancelled, query(8..9, 0)])]);
    let outcome = run_under(PolicyKind::Normal, &stream, &machine(1));
    assert_eq!((outcome.queries[0].end, outcome.queries[0].ended), (End::Cancelled, Time(150)));
    // One read was in service and one more was queued behind it.
    assert_eq!((outcome.queries[1].end, outcome.queries[1].started), (End::Done, Time(150)));
}

#[test]
fn a_pool_that_shrinks_refuses_what_it_cannot_hold() {
    let mut shrinking =
        workload(2, 2, vec![(0, vec![query(0..2, 0)]), (1_000, vec![query(0..2, 0)])]);
    shrinking.pool_changes = vec![(Time(500), 0)];
    let outcome = run_under(PolicyKind::Relevance, &shrinking, &machine(1));
    assert_eq!(outcome.queries[1].end, End::Refused);
    assert_eq!(outcome.queries[1].latency_ns(), 0);
}

#[test]
fn a_stream_that_runs_while_others_do_starts_nothing_after_they_have_ended() {
    let thinks = |query| Query { think_ns: 50, ..query };
    let mut beside = workload(
        4,
        4,
        vec![(0, vec![query(0..4, 30)]), (0, (0..9).map(|_| thinks(query(0..1, 5))).collect())],
    );
    beside.streams[1].while_others_run = true;
    for policy in PolicyKind::ALL {
        let outcome = run_under(policy, &beside, &machine(2));
        // The long query ends at 430, when the others have taken turns of 55 from 50 on, the first a little longer.
        assert_eq!(outcome.queries[0].ended, Time(430), "{policy}");
        let ran = outcome.queries.iter().filter(|query| query.has_run()).count();
        assert_eq!(ran, 8, "{policy}");
        let skipped = &outcome.queries[ran..];
        assert!(skipped.iter().all(|query| query.end == End::Skipped && query.chunks == 0));
        assert_eq!(outcome.total_ns, outcome.queries[ran - 1].ended.0.max(430), "{policy}");
    }
    // The pages of the long query are certain to be read.
    beside.streams[1].queries[8] = query(0..3, 5);
    assert_eq!(bound::compulsory_bytes(&beside), 4);
    // There is no other stream, so it runs to its end.
    beside.streams.remove(0);
    let outcome = run_under(PolicyKind::Normal, &beside, &machine(2));
    assert!(outcome.queries.iter().all(|query| query.end == End::Done));
}

#[test]
fn a_short_scan_waits_for_a_quantum_and_not_for_the_queue() {
    // Chunks of 8 MiB, a byte a nanosecond. The short scan comes when a chunk has just begun to pass and another one is
    // queued behind it.
    let mut builder = Layout::builder(1);
    for _ in 0..301 {
        let page = builder.add_page(GroupIndex(0), 8 << 20);
        builder.add_chunk(1, vec![vec![page]]);
    }
    let (quantum_ns, chunk_ns) = (1 << 20, 8 << 20);
    let mut loaded = workload(1, 20 << 23, vec![(0, vec![query(0..300, 10)])]);
    loaded.tables[0] = Table::at_rest("table", Arc::new(builder.build()));
    let short = vec![query(300..301, 10)];
    let start = Time(3 * chunk_ns + 100);
    loaded.streams.push(Stream { start, queries: short, ..Stream::default() });
    let disk = Disk::SeekTransfer { seek_ns: 50, bytes_per_second: 1_000_000_000 };
    let latency_ns = |policy, quantum_bytes| {
        let machine = Machine { quantum_bytes, ..Machine::new(disk, 2) };
        run_under(policy, &loaded, &machine).queries[1].latency_ns()
    };
    let usual = Machine::QUANTUM_BYTES;
    let cuts_line = latency_ns(PolicyKind::Relevance, usual);
    assert!((chunk_ns..=chunk_ns + quantum_ns + 200).contains(&cuts_line), "{cuts_line}");
    // If nothing can be interrupted, the chunk that passes comes first, but not the one that is
    // queued.
    let waits = latency_ns(PolicyKind::Relevance, u64::MAX);
    assert!((2 * chunk_ns - 100..=2 * chunk_ns + 200).contains(&waits), "{waits}");
    assert!(latency_ns(PolicyKind::Relevance2007, usual) > 3 * chunk_ns - 200);
}

#[test]
fn the_timeline_tells_the_same_as_the_totals() {
    let streams = (0..4).map(|stream| (stream * 130, vec![query(0..8, 60), query(2..6, 10)]));
    let busy = workload(8, 3, streams.collect());
    for policy in PolicyKind::ALL {
        let outcome = run_under(policy, &busy, &machine(2));
        let count = |of: fn(&EventKind) -> bool| {
            outcome.timeline.iter().filter(|step| of(&step.what)).count() as u64
        };
        assert!(outcome.timeline.is_sorted_by_key(|step| step.at));
        assert_eq!(count(|what| matches!(what, EventKind::LoadStarted { .. })), outcome.requests);
        let delivered = outcome.queries.iter().map(|query| query.chunks).sum::<u64>();
        assert_eq!(delivered, 4 * (8 + 4), "{policy}");
        assert_eq!(count(|what| matches!(what, EventKind::Delivered { .. })), delivered);
        assert_eq!(count(|what| matches!(what, EventKind::Released { .. })), delivered);
        assert_eq!(count(|what| matches!(what, EventKind::Ended { .. })), 8);
        assert!(outcome.bytes_read >= bound::lower_bound_bytes(&busy), "{policy}");
    }
}

#[test]
fn normal_in_order_reads_no_less_than_belady() {
    let in_order = |chunks| Query { order: Order::InOrder, ..query(chunks, 20) };
    let streams = (0..4).map(|stream| (stream * 250, vec![in_order(0..12), in_order(3..9)]));
    let busy = workload(12, 4, streams.collect());
    let outcome = run_under(PolicyKind::Normal, &busy, &machine(2));
    let least = bound::belady_bytes(&busy, &bound::references(&busy, &outcome));
    assert!(bound::lower_bound_bytes(&busy) <= least && least <= outcome.bytes_read);
}

#[test]
fn queries_that_compute_the_same_compute_each_chunk_once() {
    let query = |computation| Query { computation, ..query(0..20, 1_000) };
    let streams = |computation: Option<u64>| {
        let later = (500_000, vec![query(computation)]);
        (0..4).map(|_| (0, vec![query(computation)])).chain([later]).collect()
    };
    let busy_ns = |computation| {
        let workload = workload(20, 20, streams(computation));
        let outcome = run_under(PolicyKind::Relevance, &workload, &machine(1));
        assert!(outcome.queries.iter().all(|query| query.end == End::Done));
        (outcome.processor_busy_ns, outcome.queries[4].chunks)
    };
    assert_eq!(busy_ns(None), (100_000, 20));
    assert_eq!(busy_ns(Some(7)), (20_000, 0), "no chunk is computed twice");
}
