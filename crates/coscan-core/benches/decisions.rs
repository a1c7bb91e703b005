//! The cost of a decision: nanoseconds in the buffer manager for each action that comes out of it, with 64 scans of a
//! thousand and of a million chunks.
//!
//! `cargo bench -p coscan-core` runs it. The disk, the processors and the clock are simulated and cost nothing.
//! Starting a scan, whose cost grows with what it reads, is not counted.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use coscan_core::*;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SCANS: usize = 64;
const ROWS_PER_CHUNK: u64 = 10;
/// Nanoseconds of simulated time between two events.
const TICK_NS: u64 = 1_000;

/// 64 scans of random parts of a table, at speeds from 1 to 8 ticks per chunk. A scan that ends begins anew elsewhere.
struct Load {
    manager: ActiveBufferManager,
    table: TableId,
    chunks: u64,
    groups: u64,
    random: SplitMix64,
    now: u64,
    speeds: BTreeMap<ScanId, u64>,
    working: BTreeSet<(u64, ScanId)>,
    reading: VecDeque<(LoadId, Vec<PageId>)>,
    /// Time spent in the buffer manager, starts of scans not counted.
    spent: Duration,
    actions: u64,
}

impl Load {
    /// A table with a pool for an eighth of it, in steady state.
    fn new(policy: PolicyKind, chunks: u64, groups: u64) -> Self {
        let mut layout = Layout::builder(groups as usize);
        for _ in 0..chunks {
            let slice = |group| {
                vec![layout.add_page(GroupIndex::from_usize(group as usize), 50 + group * 30)]
            };
            let slices = (0..groups).map(slice).collect();
            layout.add_chunk(ROWS_PER_CHUNK, slices);
        }
        let chunk_bytes: u64 = (0..groups).map(|group| 50 + group * 30).sum();
        let config = Config {
            pool_bytes: (chunks / 8).max(2 * SCANS as u64) * chunk_bytes,
            loads_in_flight_max: 4,
            active_workers_max: 8,
            ..Config::default()
        };
        let mut manager = ActiveBufferManager::new(config, policy.build());
        let (table, _) = manager.register_layout(&layout.build(), DeviceId(0));
        let mut load = Self {
            manager,
            table,
            chunks,
            groups,
            random: SplitMix64(7),
            now: 0,
            speeds: BTreeMap::new(),
            working: BTreeSet::new(),
            reading: VecDeque::new(),
            spent: Duration::ZERO,
            actions: 0,
        };
        for _ in 0..SCANS {
            let speed = 1 + load.random.below(8);
            load.start(speed);
        }
        load.run(100_000 + chunks);
        load
    }

    fn start(&mut self, speed: u64) {
        let count = (self.chunks * (10 + self.random.below(91)) / 100).max(1);
        let first = self.random.below(self.chunks - count + 1);
        let columns = (0..self.groups).filter(|_| self.random.below(2) == 0);
        let mut groups: Vec<_> = columns.map(|group| GroupIndex(group as u32)).collect();
        let chunk = |chunk| ChunkIndex::from_usize(chunk as usize);
        if groups.is_empty() {
            groups.push(GroupIndex(0));
        }
        let spec = ScanSpec {
            table: self.table,
            groups,
            chunks: std::iter::once(chunk(first)..chunk(first + count)).collect(),
            order: Order::Any,
            workers: 1,
            weight: 1,
            pages: None,
            computation: None,
        };
        let scan = self.manager.start_scan(Time(self.now), &spec).unwrap();
        self.manager.request_chunk(Time(self.now), scan, WorkerIndex(0)).unwrap();
        self.speeds.insert(scan, speed);
    }

    /// Runs until `actions` more actions have come out.
    fn run(&mut self, actions: u64) {
        let end = self.actions + actions;
        while self.actions < end {
            self.now += TICK_NS;
            let now = Time(self.now);
            let arrived = (self.now / TICK_NS).is_multiple_of(2).then(|| self.reading.pop_front());
            let rests = self.working.split_off(&(self.now + 1, ScanId(0)));
            let done = std::mem::replace(&mut self.working, rests);
            let begun = Instant::now();
            if let Some((load, pages)) = arrived.flatten() {
                pages.iter().for_each(|&page| self.manager.page_loaded(now, load, page));
            }
            for (_, scan) in done {
                self.manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
            }
            if self.manager.poll_timeout().is_some_and(|time| time <= now) {
                self.manager.handle_timeout(now);
            }
            self.spent += begun.elapsed();
            self.act();
        }
    }

    fn act(&mut self) {
        loop {
            let begun = Instant::now();
            let action = self.manager.poll_action();
            self.spent += begun.elapsed();
            let Some(action) = action else { return };
            self.actions += 1;
            match action {
                Action::Load { load, pages, .. } => self.reading.push_back((load, pages)),
                Action::Deliver { scan, .. } => {
                    self.working.insert((self.now + TICK_NS * self.speeds[&scan], scan));
                }
                Action::Finish { scan, .. } => {
                    self.manager.cancel_scan(Time(self.now), scan);
                    let speed = self.speeds.remove(&scan).unwrap();
                    self.start(speed);
                }
                Action::Evict { .. } | Action::Escalate { .. } | Action::Unneeded { .. } => {}
                Action::NoSpace { .. } => unreachable!(),
                Action::Fail { .. } | Action::GrantMemory { .. } => {
                    unreachable!("not in this world")
                }
            }
        }
    }
}

fn decisions(criterion: &mut Criterion) {
    for groups in [1, 8] {
        let mut group = criterion.benchmark_group(format!("64 scans, {groups} column groups"));
        group.throughput(Throughput::Elements(1)).sample_size(10);
        group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for policy in PolicyKind::ALL {
            for chunks in [1_000, 1_000_000] {
                let mut load = None;
                group.bench_function(BenchmarkId::new(policy.name(), chunks), |bencher| {
                    let load = load.get_or_insert_with(|| Load::new(policy, chunks, groups));
                    bencher.iter_custom(|actions| {
                        load.spent = Duration::ZERO;
                        load.run(actions);
                        load.spent
                    });
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
