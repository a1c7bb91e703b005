//! Recorded runs become workloads: estimates match the recorded run, and the workload runs under every policy.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_core::log::{Command, Entry, Header, Log, RecordedManager, Reply};
use coscan_core::*;
use coscan_sim::experiment::Prepared;
use coscan_sim::recorded::Recorded;
use coscan_sim::{Disk, End, Options, Outcome, run};

const LATENCY_NS: u64 = 2_000_000;
const BYTE_NS: u64 = 10;
const ROW_NS: u64 = 7_000;
const THINK_NS: u64 = 5_000_000;

/// 16 chunks of 1,000 rows and two columns, larger towards the end.
fn table() -> Arc<Layout> {
    let mut layout = Layout::builder(2);
    for chunk in 0..16 {
        let slices = [100_000 + 20_000 * chunk, 50_000].into_iter().enumerate();
        let slices = slices
            .map(|(group, bytes)| vec![layout.add_page(GroupIndex::from_usize(group), bytes)])
            .collect();
        layout.add_chunk(1_000, slices);
    }
    Arc::new(layout.build())
}

fn spec(groups: &[u32], rows: std::ops::Range<u64>, workers: usize) -> ScanSpec {
    let groups = groups.iter().copied().map(GroupIndex).collect();
    ScanSpec {
        table: TableId(0),
        groups,
        chunks: table().chunk_ranges(&[rows]),
        order: Order::Any,
        workers,
        weight: 3,
        pages: None,
        computation: None,
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// Starts the first of these scans. The others follow it.
    Start(Vec<ScanSpec>),
    Ask(ScanId, WorkerIndex),
    Arrive(LoadId, Vec<PageId>),
}

/// A small engine, recorded: a device that reads one load at a time, workers that have a core each.
struct Engine {
    manager: RecordedManager,
    layout: Arc<Layout>,
    agenda: BTreeMap<(u64, u64), Event>,
    planned: u64,
    now: Time,
    /// The workers left of each scan, and the specs that follow it.
    running: BTreeMap<ScanId, (usize, Vec<ScanSpec>)>,
}

impl Engine {
    fn run(policy: PolicyKind, streams: &[(u64, Vec<ScanSpec>)]) -> Log {
        let config = Config { pool_bytes: 1_200_000, loads_in_flight_max: 1, ..Config::default() };
        let mut engine = Self {
            manager: RecordedManager::recording(ActiveBufferManager::new(config, policy.build())),
            layout: table(),
            agenda: BTreeMap::new(),
            planned: 0,
            now: Time(0),
            running: BTreeMap::new(),
        };
        engine.manager.register_layout(Arc::clone(&engine.layout), DeviceId(0));
        for (at, specs) in streams {
            engine.plan(*at, Event::Start(specs.clone()));
        }
        while let Some(((at, _), event)) = engine.agenda.pop_first() {
            engine.now = Time(at);
            engine.happen(event);
            while let Some(action) = engine.manager.poll_action() {
                engine.carry_out(action);
            }
        }
        let header = Header::new(policy.name(), config, 16);
        Log { header, entries: engine.manager.take_entries() }
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(mut specs) => {
                let spec = specs.remove(0);
                let workers = spec.workers;
                let scan = self.manager.start_scan(self.now, spec).unwrap();
                self.running.insert(scan, (workers, specs));
                for worker in 0..workers {
                    self.happen(Event::Ask(scan, WorkerIndex::from_usize(worker)));
                }
            }
            Event::Ask(scan, worker) => {
                self.manager.request_chunk(self.now, scan, worker).unwrap();
            }
            Event::Arrive(load, pages) => {
                pages.iter().for_each(|&page| self.manager.page_loaded(self.now, load, page));
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Load { load, pages, .. } => {
                let bytes: u64 =
                    pages.iter().map(|&page| self.layout.bytes_of(PageIndex(page.0))).sum();
                let at = self.now.0 + LATENCY_NS + BYTE_NS * bytes;
                self.plan(at, Event::Arrive(load, pages));
            }
            Action::Deliver { scan, worker, .. } => {
                self.plan(self.now.0 + 1_000 * ROW_NS, Event::Ask(scan, worker));
            }
            Action::Finish { scan, .. } => {
                let (workers, follow) = self.running.get_mut(&scan).unwrap();
                *workers -= 1;
                if *workers == 0 {
                    let follow = std::mem::take(follow);
                    self.manager.cancel_scan(self.now, scan);
                    if !follow.is_empty() {
                        self.plan(self.now.0 + THINK_NS, Event::Start(follow));
                    }
                }
            }
            Action::Escalate { .. } | Action::Evict { .. } | Action::Unneeded { .. } => {}
            Action::NoSpace { .. } => unreachable!("no scan reads for another server"),
            Action::Fail { .. } => panic!("nothing fails"),
            Action::GrantMemory { .. } => panic!("nothing is requested"),
        }
    }
}

/// Three streams, of which the last starts long after the others.
fn streams() -> Vec<(u64, Vec<ScanSpec>)> {
    vec![
        (1_000, vec![spec(&[0, 1], 0..16_000, 2), spec(&[0], 4_000..12_000, 1)]),
        (9_000_000, vec![spec(&[0], 0..16_000, 1), spec(&[1], 0..16_000, 1)]),
        (90_000_000, vec![spec(&[0], 500..1_500, 1)]),
    ]
}

fn bytes_loaded(log: &Log) -> u64 {
    let layout = table();
    let pages = log.entries.iter().flat_map(|entry| match entry {
        Entry::Action(Action::Load { pages, .. }) => pages.clone(),
        _ => Vec::new(),
    });
    pages.map(|page| layout.bytes_of(PageIndex(page.0))).sum()
}

fn simulate(recorded: &Recorded, policy: PolicyKind) -> Outcome {
    let Recorded { workload, machine } = recorded;
    run(workload, machine, policy.build(), Options::default()).unwrap()
}

#[test]
fn estimates_match_the_recorded_run() {
    let Recorded { workload, machine } =
        Recorded::from_log(&Engine::run(PolicyKind::Normal, &streams()));
    let Disk::ObjectStore { latency_ns, bytes_per_second_per_request, .. } = machine.disk else {
        panic!("{:?}", machine.disk)
    };
    assert_eq!(latency_ns.div_ceil(1_000) * 1_000, LATENCY_NS);
    assert_eq!(bytes_per_second_per_request.div_ceil(1_000) * 1_000, 1_000_000_000 / BYTE_NS);
    assert_eq!((workload.tables[0].layout.clone(), machine.cores), (table(), 16));
    assert_eq!(workload.streams.len(), 3);
    for (stream, (start, specs)) in workload.streams.iter().zip(streams()) {
        assert_eq!(stream.start, Time(start));
        assert_eq!(stream.queries.len(), specs.len());
        for (index, (query, spec)) in stream.queries.iter().zip(specs).enumerate() {
            let chunks = table().chunk_ranges(&query.rows);
            assert_eq!((&query.groups, &chunks), (&spec.groups, &spec.chunks));
            assert_eq!((query.workers, query.weight), (spec.workers, spec.weight));
            assert_eq!(query.think_ns, if index == 0 { 0 } else { THINK_NS });
            assert_eq!(query.cancel_after_ns, None);
            assert_eq!(query.cost.row_ps, 1_000 * ROW_NS);
        }
    }
}

#[test]
fn a_recorded_run_runs_under_every_policy() {
    for recorded_under in PolicyKind::ALL {
        let log = Engine::run(recorded_under, &streams());
        log.replay().unwrap();
        let recorded = Recorded::from_log(&log);
        for policy in PolicyKind::ALL {
            let outcome = simulate(&recorded, policy);
            assert!(outcome.queries.iter().all(|query| query.end == End::Done), "{policy}");
        }
        let same = simulate(&recorded, recorded_under);
        let (ours, theirs) = (same.bytes_read as f64, bytes_loaded(&log) as f64);
        assert!((ours / theirs - 1.0).abs() < 0.1, "{recorded_under}: {ours} of {theirs} bytes");
    }
}

#[test]
fn a_recorded_run_is_an_experiment() {
    let recorded = Recorded::from_log(&Engine::run(PolicyKind::Elevator, &streams()));
    let spec = recorded.clone().spec("mine");
    let [case] = &spec.cases[..] else { panic!("one case") };
    for seed in [1, 2] {
        let prepared = Arc::new(Prepared::new(case, seed).unwrap());
        let run = prepared.run(PolicyKind::Normal.build(), Options::default()).unwrap();
        assert_eq!(run.outcome, simulate(&recorded, PolicyKind::Normal), "nothing is random");
    }
}

/// A log of one table and one scan, followed by these commands and actions.
fn scripted(cores: usize, spec: ScanSpec, entries: Vec<Entry>) -> Recorded {
    let register = Command::RegisterLayout { layout: table(), device: DeviceId(0) };
    let start = [
        Entry::Command(register),
        Entry::Reply(Reply::Layout(TableId(0), PageId(0))),
        Entry::Command(Command::StartScan { now: Time(50), spec }),
        Entry::Reply(Reply::Scan(ScanId(0))),
    ];
    let entries = start.into_iter().chain(entries).collect();
    Recorded::from_log(&Log { header: Header::new("normal", Config::default(), cores), entries })
}

fn ask(now: u64, worker: u32) -> Entry {
    let worker = WorkerIndex(worker);
    Entry::Command(Command::RequestChunk { now: Time(now), scan: ScanId(0), worker })
}

fn deliver(worker: u32, chunk: u32) -> Entry {
    let (worker, chunk) = (WorkerIndex(worker), ChunkIndex(chunk));
    Entry::Action(Action::Deliver { scan: ScanId(0), worker, chunk })
}

fn cancel(now: u64) -> Entry {
    Entry::Command(Command::CancelScan { now: Time(now), scan: ScanId(0) })
}

#[test]
fn workers_share_the_cores() {
    let entries = || {
        let pause =
            Command::PauseWorker { now: Time(3_100), scan: ScanId(0), worker: WorkerIndex(0) };
        vec![
            ask(100, 0),
            ask(100, 1),
            deliver(0, 0),
            deliver(1, 1),
            ask(1_100, 0), // Until here both work,
            deliver(0, 2),
            ask(2_100, 1),         // until here again,
            Entry::Command(pause), // and now one, until it waits for something else.
            cancel(9_000),
        ]
    };
    let row_ps = |cores| {
        let recorded = scripted(cores, spec(&[0], 0..3_000, 2), entries());
        recorded.workload.streams[0].queries[0].cost.row_ps
    };
    assert_eq!(row_ps(2), 1_000 * 5_000 / 3_000);
    assert_eq!(row_ps(1), 1_000 * 3_000 / 3_000);
}

#[test]
fn a_scan_that_ends_early_is_cancelled_and_a_pruned_one_reads_less() {
    let chunks = vec![ChunkIndex(0), ChunkIndex(2), ChunkIndex(5)];
    let prune = Command::PruneScan { now: Time(200), scan: ScanId(0), chunks };
    let entries = vec![ask(100, 0), deliver(0, 0), Entry::Command(prune), ask(300, 0), cancel(850)];
    let early = scripted(1, spec(&[0], 500..4_200, 1), entries.clone());
    let query = &early.workload.streams[0].queries[0];
    assert_eq!(query.rows, [0..2_000, 3_000..5_000], "it was handed chunk 0, never needed 5");
    assert_eq!(query.cancel_after_ns, Some(800));

    let done = scripted(1, spec(&[0], 500..2_500, 1), {
        let mut entries = entries;
        entries.insert(4, deliver(0, 1));
        entries
    });
    assert_eq!(done.workload.streams[0].queries[0].cancel_after_ns, None);
}

#[test]
fn bandwidth_is_shared_or_not_as_the_loads_were() {
    // Loads of a page each, two at a time, then one at a time.
    let disk = |time_of: fn(u64, u64) -> u64| {
        let layout = table();
        let (mut entries, mut now) = (Vec::new(), 100);
        for first in (0..16).step_by(2) {
            let at_once = if first < 8 { 2 } else { 1 };
            let pages: Vec<_> = (first..first + at_once).map(|chunk| PageId(2 * chunk)).collect();
            let bytes = layout.bytes_of(PageIndex(pages[0].0));
            for &page in &pages {
                let (load, pages) = (LoadId(u64::from(page.0)), vec![page]);
                let chunk = ChunkIndex(page.0 / 2);
                let (scan, table) = (ScanId(0), TableId(0));
                entries.push(Entry::Action(Action::Load {
                    load,
                    scan,
                    table,
                    chunk,
                    pages,
                    urgent: false,
                }));
            }
            now += time_of(bytes, u64::from(at_once));
            for page in pages {
                let (now, load) = (Time(now), LoadId(u64::from(page.0)));
                entries.push(Entry::Command(Command::PageLoaded { now, load, page }));
            }
        }
        scripted(1, spec(&[0], 0..16_000, 1), entries).machine.disk
    };
    let Disk::ObjectStore { bytes_per_second_per_request: each, bytes_per_second: all, .. } =
        disk(|bytes, at_once| 1_000_000 + 10 * at_once * bytes)
    else {
        panic!()
    };
    assert_eq!(each, all, "shared");
    let Disk::ObjectStore { bytes_per_second_per_request: each, bytes_per_second: all, .. } =
        disk(|bytes, _| 1_000_000 + 10 * bytes)
    else {
        panic!()
    };
    assert!(all > each, "not shared");
    assert!(each.abs_diff(100_000_000) < 5_000_000, "{each}");
}

#[test]
fn a_log_without_loads_and_scans_becomes_an_empty_workload() {
    let log = Log { header: Header::new("normal", Config::default(), 4), entries: Vec::new() };
    let Recorded { workload, machine } = Recorded::from_log(&log);
    assert!(workload.streams.is_empty() && workload.tables.is_empty());
    assert!(matches!(machine.disk, Disk::ObjectStore { latency_ns: 0, bytes_per_second: 1.., .. }));
}
