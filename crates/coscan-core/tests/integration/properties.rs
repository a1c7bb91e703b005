//! Random tables, pools, scans and operations, under every policy. The model in `world` checks the rules after each
//! step; every scan that is neither cancelled nor failed must finish. `crate::world::memory` does the same for memory
//! beside the pool: no request is refused, or waits, for memory that could be had.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::world::{Disk, WorkerProfile, World};
use coscan_core::log::Log;
use coscan_core::*;
use proptest::prelude::*;

/// The arrangement of the pages of a column group.
#[derive(Clone, Copy, Debug)]
enum Pages {
    /// This number of pages for each chunk.
    Own(usize),
    /// One page for each run of this number of chunks.
    Spanning(usize),
    /// Chunk i needs pages i and i + 1.
    Straddling,
    /// One page that all chunks need, and one for each.
    Dictionary,
}

#[derive(Clone, Debug)]
struct TableCase {
    chunks: usize,
    groups: Vec<Pages>,
    sizes: u64,
}

#[derive(Clone, Debug)]
struct ScanCase {
    table: usize,
    groups: u32,
    ranges: Vec<(u64, u64)>,
    order: Order,
    kind: Kind,
    /// Seed of its selected pages, if it is an index selection.
    selection: Option<u64>,
    workers: Vec<WorkerProfile>,
    start: u64,
    /// The number of chunks after which the first worker waits for the end of an earlier scan, and that scan.
    stall: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A query of this server.
    Local,
    /// A query of another server.
    Remote(RemoteQuery),
    /// The needs of a scan at another server.
    Interest,
}

#[derive(Clone, Debug)]
enum Op {
    Source { table: usize, page: u32, source: Source },
    Extend { scan: usize, chunks: Vec<u32> },
    Prune { scan: usize, chunks: Vec<u32> },
    Cancel { scan: usize },
    Pool { percent: u64 },
    EvictUnneeded,
    EvictIdle,
    Decoded { table: usize, chunk: u32, group: u32, held: bool },
    RemoveTable { table: usize },
    Memory(MemoryOp),
}

/// A command of memory; sizes are in percent of the budget.
#[derive(Clone, Debug)]
enum MemoryOp {
    Take { percent: u64, spare_bytes_max: u64 },
    Cover { percent: u64 },
    Request { stage: MemoryStage, scan: usize, percent: u64 },
    Withdraw { waiting: usize },
    GrowPool { percent: u64 },
    Ceiling { percent: u64 },
}

/// Memory beside the pool, in percent of it.
#[derive(Clone, Debug)]
struct MemoryCase {
    beside_percent: u64,
    floor_percent: u64,
    overtaking_ns: u64,
    /// Nanoseconds for which memory is held that was handed out.
    held_ns: u64,
}

#[derive(Clone, Debug)]
struct Case {
    tables: Vec<TableCase>,
    scans: Vec<ScanCase>,
    ops: Vec<(u64, Op)>,
    /// Pages that cannot be read: table, page.
    failing: Vec<(usize, u32)>,
    /// Room beyond one chunk of the widest scan, in percent of all tables.
    pool_percent: u64,
    loads_in_flight_max: usize,
    /// Pages arrive in any order within this time; 0: one after another.
    scattered_ns: u64,
    /// Several events may happen before actions are carried out.
    batches: bool,
    memory: Option<MemoryCase>,
    seed: u64,
}

fn any_table() -> impl Strategy<Value = TableCase> {
    let pages = prop_oneof![
        3 => (1usize..4).prop_map(Pages::Own),
        2 => (2usize..5).prop_map(Pages::Spanning),
        1 => Just(Pages::Straddling),
        1 => Just(Pages::Dictionary),
    ];
    (1usize..9, prop::collection::vec(pages, 1..5), any::<u64>())
        .prop_map(|(chunks, groups, sizes)| TableCase { chunks, groups, sizes })
}

fn any_scan() -> impl Strategy<Value = ScanCase> {
    let order = prop_oneof![3 => Just(Order::Any), 1 => Just(Order::InOrder)];
    let ranges = prop_oneof![
        2 => Just(vec![(0, 1_000)]),
        2 => prop::collection::vec((0u64..80, 0u64..40), 0..4),
    ];
    let worker = (0u64..50, prop_oneof![0u64..20, 50u64..400], any::<bool>()).prop_map(
        |(first_ns, chunk_ns, releases_early)| WorkerProfile {
            first_ns,
            chunk_ns,
            releases_early,
            stall: None,
        },
    );
    let workers = (prop::collection::vec(worker, 1..4), prop::bool::weighted(0.1)).prop_map(
        |(mut workers, one_never_asks)| {
            if one_never_asks && workers.len() > 1 {
                workers[0].first_ns = u64::MAX;
            }
            workers
        },
    );
    let stall = prop::option::weighted(0.25, (0usize..4, 0usize..8));
    let selection = prop::option::weighted(0.2, any::<u64>());
    let query = (0u64..20_000, 0u64..20, 0u64..20, 0u64..500).prop_map(
        |(waited_ns, chunks_left, chunks_in_all, bytes_in_all)| RemoteQuery {
            waited_ns,
            chunks_left,
            chunks_in_all,
            bytes_in_all,
        },
    );
    let kind = prop_oneof![
        5 => Just(Kind::Local),
        1 => query.prop_map(Kind::Remote),
        1 => Just(Kind::Interest),
    ];
    ((0usize..3, kind), 0u32..16, ranges, order, selection, workers, 0u64..600, stall).prop_map(
        |((table, kind), groups, ranges, order, selection, workers, start, stall)| ScanCase {
            table,
            groups,
            ranges,
            order,
            kind,
            selection,
            workers,
            start,
            stall,
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0usize..8, prop::collection::vec(0u32..9, 0..6))
            .prop_map(|(scan, chunks)| Op::Extend { scan, chunks }),
        3 => (0usize..8, prop::collection::vec(0u32..9, 0..6))
            .prop_map(|(scan, chunks)| Op::Prune { scan, chunks }),
        3 => (0usize..8).prop_map(|scan| Op::Cancel { scan }),
        3 => (0u64..120).prop_map(|percent| Op::Pool { percent }),
        1 => Just(Op::EvictUnneeded),
        2 => Just(Op::EvictIdle),
        3 => (0usize..3, 0u32..9, 0u32..4, any::<bool>())
            .prop_map(|(table, chunk, group, held)| Op::Decoded { table, chunk, group, held }),
        1 => (0usize..3).prop_map(|table| Op::RemoveTable { table }),
        4 => (0usize..3, 0u32..30, prop_oneof![
            Just(Source::Device), Just(Source::Peer), Just(Source::PeerPool),
        ])
            .prop_map(|(table, page, source)| Op::Source { table, page, source }),
        12 => any_memory_op().prop_map(Op::Memory),
    ]
}

fn any_memory_op() -> impl Strategy<Value = MemoryOp> {
    let stage = prop_oneof![Just(MemoryStage::Working), Just(MemoryStage::Opening)];
    prop_oneof![
        4 => (0u64..120, 0u64..9)
            .prop_map(|(percent, spare_bytes_max)| MemoryOp::Take { percent, spare_bytes_max }),
        1 => (0u64..120).prop_map(|percent| MemoryOp::Cover { percent }),
        6 => (stage, 0usize..10, 0u64..110)
            .prop_map(|(stage, scan, percent)| MemoryOp::Request { stage, scan, percent }),
        2 => (0usize..4).prop_map(|waiting| MemoryOp::Withdraw { waiting }),
        1 => (0u64..120).prop_map(|percent| MemoryOp::GrowPool { percent }),
        1 => (0u64..150).prop_map(|percent| MemoryOp::Ceiling { percent }),
    ]
}

fn any_memory() -> impl Strategy<Value = MemoryCase> {
    let held_ns = prop_oneof![0u64..50, 200u64..2_000];
    (0u64..100, 0u64..120, 0u64..800, held_ns).prop_map(
        |(beside_percent, floor_percent, overtaking_ns, held_ns)| MemoryCase {
            beside_percent,
            floor_percent,
            overtaking_ns,
            held_ns,
        },
    )
}

fn any_case(faults: bool) -> impl Strategy<Value = Case> {
    let count = if faults { 0..24 } else { 0..1 };
    (
        prop::collection::vec(any_table(), 1..3),
        prop::collection::vec(any_scan(), 1..9),
        prop::collection::vec((0u64..2_000, any_op()), count.clone()),
        prop::collection::vec((0usize..2, 0u32..30), 0..if faults { 3 } else { 1 }),
        prop_oneof![Just(0u64), 0u64..60, Just(100)],
        1usize..5,
        (prop_oneof![Just(0u64), 1u64..200], any::<bool>(), prop::option::of(any_memory())),
        any::<u64>(),
    )
        .prop_map(
            |(
                tables,
                scans,
                ops,
                failing,
                pool_percent,
                loads_in_flight_max,
                (scattered_ns, batches, memory),
                seed,
            )| {
                Case {
                    tables,
                    scans,
                    ops,
                    failing,
                    pool_percent,
                    loads_in_flight_max,
                    scattered_ns,
                    batches,
                    memory,
                    seed,
                }
            },
        )
}

fn layout(case: &TableCase) -> Arc<Layout> {
    let mut sizes = SplitMix64(case.sizes);
    let mut builder = Layout::builder(case.groups.len());
    let mut slices: Vec<Vec<Vec<PageIndex>>> = vec![Vec::new(); case.chunks];
    for (group, pages) in case.groups.iter().enumerate() {
        let group = GroupIndex::from_usize(group);
        let width = 1 + sizes.below(20);
        let mut page = || builder.add_page(group, 1 + sizes.below(width));
        match *pages {
            Pages::Own(count) => {
                slices.iter_mut().for_each(|s| s.push((0..count).map(|_| page()).collect()));
            }
            Pages::Spanning(span) => {
                for chunks in slices.chunks_mut(span) {
                    let shared = page();
                    chunks.iter_mut().for_each(|s| s.push(vec![shared]));
                }
            }
            Pages::Straddling => {
                let pages: Vec<_> = (0..=case.chunks).map(|_| page()).collect();
                slices.iter_mut().zip(pages.windows(2)).for_each(|(s, two)| s.push(two.to_vec()));
            }
            Pages::Dictionary => {
                let dictionary = page();
                slices.iter_mut().for_each(|s| s.push(vec![dictionary, page()]));
            }
        }
    }
    for slices in slices {
        builder.add_chunk(1 + sizes.below(15), slices);
    }
    Arc::new(builder.build())
}

fn groups_of(scan: &ScanCase, layout: &Layout) -> Vec<u32> {
    (0..layout.group_count() as u32).filter(|group| scan.groups >> group & 1 == 1).collect()
}

fn some_pages(layout: &Layout, seed: u64) -> Vec<PageIndex> {
    let mut random = SplitMix64(seed);
    let pages = (0..layout.page_count()).map(PageIndex::from_usize);
    pages.filter(|_| random.below(3) == 0).collect()
}

fn widest_chunk_bytes(scans: &[ScanCase], layouts: &[Arc<Layout>]) -> u64 {
    let chunk_bytes = |scan: &ScanCase| {
        let layout = &layouts[scan.table % layouts.len()];
        let groups = groups_of(scan, layout);
        let bytes = |chunk| {
            let pages =
                groups.iter().flat_map(|&group| layout.slice(chunk, GroupIndex(group)).to_vec());
            pages.map(|page| layout.bytes_of(page)).sum::<u64>()
        };
        layout.chunks().map(bytes).max().unwrap_or(0)
    };
    scans.iter().map(chunk_bytes).max().unwrap_or(0)
}

struct Run {
    world: World,
    tables: Vec<Option<TableId>>,
    scans: Vec<Option<ScanId>>,
    cancelled: BTreeSet<ScanId>,
    interests: BTreeSet<ScanId>,
    widest: u64,
    total: u64,
}

impl Run {
    fn new(case: &Case, policy: PolicyKind) -> Self {
        let layouts: Vec<_> = case.tables.iter().map(layout).collect();
        let widest = widest_chunk_bytes(&case.scans, &layouts);
        let page_bytes = |l: &Arc<Layout>| {
            (0..l.page_count()).map(|p| l.bytes_of(PageIndex(p as u32))).sum::<u64>()
        };
        let total: u64 = layouts.iter().map(page_bytes).sum();
        let pool_bytes = widest + total * case.pool_percent / 100;
        let active_workers_max = [1, 2, 5, usize::MAX][case.seed as usize % 4];
        let (policy, loads) = (policy.build(), case.loads_in_flight_max);
        let mut world = World::with_workers(policy, pool_bytes, loads, active_workers_max);
        if case.scattered_ns > 0 {
            world.disk =
                Disk::Scattered { random: SplitMix64(case.seed), ns_max: case.scattered_ns };
        }
        world.batches = case.batches.then_some(SplitMix64(case.seed));
        if let Some(memory) = &case.memory {
            world.memory.held_ns = Some(memory.held_ns);
            let limits = MemoryLimits {
                budget_bytes: pool_bytes + pool_bytes * memory.beside_percent / 100,
                pool_ceiling_bytes: pool_bytes,
                pool_floor_bytes: pool_bytes * memory.floor_percent / 100,
                overtaking_ns: memory.overtaking_ns,
            };
            world.set_memory_limits(limits).unwrap();
        }
        let tables: Vec<_> = layouts.iter().map(|layout| Some(world.add_table(layout))).collect();
        for &(table, page) in &case.failing {
            let table = TableId::from_usize(table % layouts.len());
            world.failing.insert(world.page(table, PageIndex(page)));
        }
        let scans = vec![None; case.scans.len()];
        Self {
            world,
            tables,
            scans,
            cancelled: BTreeSet::new(),
            interests: BTreeSet::new(),
            widest,
            total,
        }
    }

    fn start(&mut self, index: usize, case: &ScanCase) {
        let Some(table) = self.tables[case.table % self.tables.len()] else { return };
        let layout = Arc::clone(&self.world.layouts[&table].0);
        let mut workers = case.workers.clone();
        if let Some((after, other)) = case.stall
            && let Some(Some(other)) = self.scans.get(other)
        {
            workers[0].stall = Some((after + 1, *other));
            // A worker that holds its pages while it waits for another scan can make that scan
            // impossible.
            workers.iter_mut().for_each(|worker| worker.releases_early = true);
        }
        let rows = case.ranges.iter().map(|&(start, len)| start..start + len).collect();
        let groups = groups_of(case, &layout);
        self.world.pages = case.selection.map(|seed| {
            let pages = some_pages(&layout, seed).into_iter();
            pages.map(|page| self.world.page(table, page)).collect()
        });
        self.grow_pool();
        self.world.remote = None;
        match case.kind {
            Kind::Local => {}
            Kind::Remote(query) => {
                self.world.remote = Some(query);
                workers.truncate(1);
                workers[0] = WorkerProfile { first_ns: 0, stall: None, ..workers[0] };
            }
            Kind::Interest => {
                let interest = self.world.register_interest(table, &groups, rows);
                self.interests.insert(interest);
                self.scans[index] = Some(interest);
                return;
            }
        }
        // Some scans compute the same.
        self.world.computation =
            (!case.start.is_multiple_of(3)).then_some(ComputationId(case.start % 3));
        let started = self.world.try_start(table, &groups, rows, case.order, &workers);
        match started {
            Ok(scan) => self.scans[index] = Some(scan),
            Err(StartScanError::PoolTooSmall { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Grows the pool as far as possible before chunks are added, since it may have shrunk for others.
    fn grow_pool(&mut self) {
        if self.world.manager.memory_limits().is_some() {
            let _ = self.world.grow_pool(self.widest);
        }
    }

    fn apply(&mut self, op: &Op) {
        let scan = |scan: usize| self.scans.get(scan).copied().flatten();
        match op {
            Op::Extend { scan: index, chunks } => {
                if let Some(scan) = scan(*index) {
                    self.grow_pool();
                    self.world.extend(scan, chunks);
                }
            }
            Op::Prune { scan: index, chunks } => {
                if let Some(scan) = scan(*index) {
                    self.world.prune(scan, chunks);
                }
            }
            Op::Cancel { scan: index } => {
                if let Some(scan) = scan(*index) {
                    self.cancelled.insert(scan);
                    self.world.cancel(scan);
                }
            }
            Op::Pool { percent } => {
                self.world.set_pool_bytes(self.widest + self.total * percent / 100);
            }
            Op::Source { table, page, source } => {
                let Some(Some(table)) = self.tables.get(*table) else { return };
                let pages = self.world.layouts[table].0.page_count() as u32;
                let page = self.world.page(*table, PageIndex(page % pages));
                self.world.set_source(page, *source);
            }
            Op::EvictUnneeded => self.world.evict_unneeded(),
            Op::EvictIdle => self.world.evict_idle(),
            Op::Decoded { table, chunk, group, held } => {
                let Some(Some(table)) = self.tables.get(*table) else { return };
                let (chunk, group) = (ChunkIndex(*chunk), GroupIndex(*group));
                self.world.decode(*table, chunk, group, *held);
            }
            Op::RemoveTable { table } => {
                let Some(Some(id)) = self.tables.get(*table) else { return };
                if self.world.remove_table(*id).is_ok() {
                    self.tables[*table] = None;
                }
            }
            Op::Memory(op) => self.apply_to_memory(op),
        }
    }

    /// Does nothing in worlds without memory beside the pool.
    fn apply_to_memory(&mut self, op: &MemoryOp) {
        let Some(limits) = self.world.manager.memory_limits() else { return };
        let bytes = |percent: u64| limits.budget_bytes * percent / 100;
        match *op {
            MemoryOp::Take { percent, spare_bytes_max } => {
                let _ = self.world.take(bytes(percent), spare_bytes_max);
            }
            MemoryOp::Cover { percent } => {
                self.world.cover(bytes(percent));
            }
            MemoryOp::Request { stage, scan, percent } => {
                let scan = self.scans.get(scan).copied().flatten();
                let _ = self.world.request(stage, scan, bytes(percent));
            }
            MemoryOp::Withdraw { waiting } => {
                if let Some(&ticket) = self.world.waiting().get(waiting) {
                    self.world.withdraw(ticket);
                }
            }
            MemoryOp::GrowPool { percent } => {
                let _ = self.world.grow_pool(bytes(percent));
            }
            MemoryOp::Ceiling { percent } => {
                let pool_ceiling_bytes = bytes(percent);
                let limits = MemoryLimits { pool_ceiling_bytes, ..limits };
                self.world.set_memory_limits(limits).unwrap();
            }
        }
    }

    /// Runs to the end. A scan of which one worker never asks is cancelled when it has been handed everything.
    fn finish(&mut self, steps_max: usize) {
        loop {
            self.world.drive_bounded(steps_max);
            let done = |scan: &&Scan| scan.needed().is_empty() || scan.is_interest();
            let Some(scan) = self.world.manager.state().scans().find(done).map(Scan::id) else {
                break;
            };
            self.world.cancel(scan);
        }
        if let Some(scan) = self.world.manager.state().scans().next() {
            panic!("I5: {:?} never got {:?}", scan.id(), scan.needed());
        }
        let Some(limits) = self.world.manager.memory_limits() else { return };
        // The floor may have been lower when it was requested.
        let most_bytes = limits.handed_out_bytes_max();
        let too_large =
            self.world.manager.unmet_memory_requests().filter(|it| it.bytes > most_bytes);
        for unmet in too_large.collect::<Vec<_>>() {
            self.world.withdraw(unmet.ticket);
        }
        self.world.drive_bounded(steps_max);
        assert_eq!(self.world.handed_out_bytes(), 0);
        assert_eq!(self.world.waiting(), [], "all is returned, yet requests wait");
    }
}

fn run(case: &Case, policy: PolicyKind) -> Run {
    let mut run = Run::new(case, policy);
    enum Event<'a> {
        Start(usize, &'a ScanCase),
        Apply(&'a Op),
    }
    let starts = case.scans.iter().enumerate().map(|(i, scan)| (scan.start, Event::Start(i, scan)));
    let ops = case.ops.iter().map(|(at, op)| (*at, Event::Apply(op)));
    let mut events: Vec<_> = starts.chain(ops).collect();
    events.sort_by_key(|(at, _)| *at);
    for (at, event) in events {
        run.world.drive_until(at);
        match event {
            Event::Start(index, scan) => run.start(index, scan),
            Event::Apply(op) => run.apply(op),
        }
    }
    // Each scan takes each chunk once: the steps are bounded by the work, not by luck.
    let work: usize = case.scans.len() * 9 * 16;
    run.finish(1_000 + 4 * work);
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_whatever_happens(case in any_case(true)) {
        for policy in PolicyKind::variants() {
            run(&case, policy);
        }
    }

    #[test]
    fn every_scan_finishes_and_the_same_calls_give_the_same_actions(case in any_case(false)) {
        for policy in PolicyKind::variants() {
            let first = run(&case, policy);
            prop_assert!(first.world.failed.is_empty());
            let of_server = |scan: &&ScanId| !first.world.model.remote_scans.contains(scan);
            let whole = first.scans.iter().flatten().filter(of_server);
            for scan in whole.filter(|scan| !first.interests.contains(scan)) {
                let report = first.world.ended[scan].report;
                prop_assert_eq!(report.chunks_delivered, report.chunks_needed);
            }
            prop_assert_eq!(first.world.trace, run(&case, policy).world.trace);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_recorded_run_replays_with_the_same_decisions(case in any_case(true)) {
        for policy in PolicyKind::variants() {
            let log = run(&case, policy).world.take_log();
            let read: Log = log.to_string().parse().unwrap();
            prop_assert_eq!(&read, &log);
            let replayed = read.replay();
            prop_assert!(replayed.is_ok(), "{}: {}", policy, replayed.unwrap_err());
        }
    }
}
