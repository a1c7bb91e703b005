//! The cost of decisions with many scans: a thousand of them on a thousand tables with a million chunks in ten thousand
//! files, and 64 to 4,096 of them on one table. Some are in order, some are lookups. Columns are decoded.
//!
//! `cargo bench -p coscan-core --bench many_scans` runs it. `-- 'one table'` runs only the cases whose names contain
//! that. Disk, processors and clock are simulated and cost nothing. A decision is what comes out after one event (the
//! pages of a load arrived, or a worker asked for a chunk): all calls of `poll_action` up to the one that returns
//! `None`. The cost of the event itself is counted apart, and so are starts and ends of scans.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use coscan_core::*;

const GROUPS: u64 = 8;
const CHUNK_BYTES: u64 = 8 * 100;
/// Nanoseconds of simulated time for a load. A worker takes up to eight times as long for a chunk.
const TICK_NS: u64 = 1_000_000;

/// The tables of a case and the number of their scans.
#[derive(Clone, Copy)]
struct Shape {
    tables: u64,
    files_of_table: u64,
    chunks_of_file: u64,
    scans: u64,
    /// If true, two of ten scans are in order and one looks up a few pages; otherwise all read in any order.
    mixed: bool,
    /// The pool holds one in this many of all chunks.
    pool_part: u64,
    /// The number of decisions before those that are counted, and the number of those.
    warm_up: usize,
    counted: usize,
}

impl Shape {
    /// The shape of a large installation.
    const TABLES: Shape = Shape {
        tables: 1_000,
        files_of_table: 10,
        chunks_of_file: 100,
        scans: 1_000,
        mixed: true,
        pool_part: 64,
        warm_up: 200_000,
        counted: 200_000,
    };

    fn one_table(chunks: u64, scans: u64, mixed: bool) -> Self {
        // Each scan has been handed some chunks, and many have ended, before decisions count.
        let warm_up = (scans * 20).max(20_000) as usize;
        let counted = 20_000;
        Self {
            tables: 1,
            files_of_table: 1,
            chunks_of_file: chunks,
            scans,
            mixed,
            pool_part: 4,
            warm_up,
            counted,
        }
    }

    /// Slices that are kept decoded.
    fn decoded(&self) -> usize {
        (self.chunks() / 8).min(2_000) as usize
    }

    fn chunks_of_table(&self) -> u64 {
        self.files_of_table * self.chunks_of_file
    }

    fn chunks(&self) -> u64 {
        self.tables * self.chunks_of_table()
    }

    fn name(&self) -> String {
        match self.tables {
            1 => {
                let kinds = if self.mixed { "mixed" } else { "in any order" };
                format!("one table of {} chunks, {} scans {kinds}", self.chunks(), self.scans)
            }
            tables => format!("{tables} tables, {} chunks, {} scans", self.chunks(), self.scans),
        }
    }
}

/// Times of calls of one kind.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, began: Instant) {
        self.0.push(began.elapsed());
    }

    fn sum(&self) -> Duration {
        self.0.iter().sum()
    }

    fn print(mut self, what: &str) {
        if self.0.is_empty() {
            return;
        }
        self.0.sort_unstable();
        let at =
            |part: f64| self.0[((self.0.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
        let average = self.sum().as_secs_f64() * 1e6 / self.0.len() as f64;
        println!(
            "  {what:<16} {:>7}, average {average:>8.2} us, median {:>8.2}, 99 % {:>8.2}, 99.9 % {:>8.2}, most {:>9.2}",
            self.0.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

struct ManyScans {
    shape: Shape,
    manager: ActiveBufferManager,
    tables: Vec<TableId>,
    first_pages: Vec<PageId>,
    random: SplitMix64,
    now: u64,
    speeds: BTreeMap<ScanId, u64>,
    working: BTreeSet<(u64, ScanId)>,
    reading: VecDeque<(LoadId, Vec<PageId>)>,
    decoded: VecDeque<(TableId, ChunkIndex, GroupIndex)>,
    decisions: Times,
    events: Times,
    starts: Times,
    ends: Times,
}

impl ManyScans {
    fn new(shape: Shape) -> Self {
        let config = Config {
            pool_bytes: shape.chunks() / shape.pool_part * CHUNK_BYTES,
            active_workers_max: 24,
            request_cost_bytes: 50,
            ..Config::default()
        };
        let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
        let (mut tables, mut first_pages) = (Vec::new(), Vec::new());
        for table in 0..shape.tables {
            let id = manager.register_table(GROUPS as usize, DeviceId((table % 4) as u32));
            tables.push(id);
            for file in 0..shape.files_of_table {
                let pages = shape.chunks_of_file * GROUPS;
                let first = manager.add_pages(&vec![CHUNK_BYTES / GROUPS; pages as usize]);
                if file == 0 {
                    first_pages.push(first);
                }
                let slice =
                    |chunk: u64, group| vec![PageId(first.0 + (chunk * GROUPS + group) as u32)];
                let chunk = |chunk| ChunkSpec {
                    rows: 10,
                    slices: (0..GROUPS).map(|group| slice(chunk, group)).collect(),
                };
                manager
                    .append_chunks(id, &(0..shape.chunks_of_file).map(chunk).collect::<Vec<_>>())
                    .unwrap();
            }
        }
        let mut scans = Self {
            shape,
            manager,
            tables,
            first_pages,
            random: SplitMix64(7),
            now: 0,
            speeds: BTreeMap::new(),
            working: BTreeSet::new(),
            reading: VecDeque::new(),
            decoded: VecDeque::new(),
            decisions: Times::default(),
            events: Times::default(),
            starts: Times::default(),
            ends: Times::default(),
        };
        (0..shape.scans).for_each(|_| scans.start());
        scans.decide(|_| ());
        scans.run(shape.warm_up);
        for times in [&mut scans.decisions, &mut scans.events, &mut scans.starts, &mut scans.ends] {
            times.0.clear();
        }
        scans
    }

    /// Starts a scan. Half of the scans read every tenth table.
    fn start(&mut self) {
        let Shape { tables, .. } = self.shape;
        let tables = if self.random.below(2) == 0 { tables.div_ceil(10) } else { tables };
        let table = self.random.below(tables);
        let kind = if self.shape.mixed { self.random.below(10) } else { 9 };
        let all = self.shape.chunks_of_table();
        let count = if kind == 0 { 2 } else { all * (10 + self.random.below(91)) / 100 };
        let first = self.random.below(all - count + 1);
        let columns = (0..GROUPS).filter(|_| self.random.below(2) == 0);
        let mut groups: Vec<_> = columns.map(|group| GroupIndex(group as u32)).collect();
        groups.push(GroupIndex(0));
        let first_page = u64::from(self.first_pages[table as usize].0);
        let chunk = |chunk| ChunkIndex(chunk as u32);
        let spec = ScanSpec {
            table: self.tables[table as usize],
            groups,
            chunks: std::iter::once(chunk(first)..chunk(first + count)).collect(),
            order: if kind < 3 { Order::InOrder } else { Order::Any },
            workers: 1,
            weight: 1,
            pages: (kind == 0).then(|| vec![PageId((first_page + first * GROUPS) as u32)]),
            computation: None,
        };
        let now = Time(self.now);
        let began = Instant::now();
        let scan = self.manager.start_scan(now, &spec).unwrap();
        self.starts.add(began);
        self.manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
        self.speeds.insert(scan, 1 + self.random.below(8));
    }

    /// Runs until `decisions` more decisions were made.
    fn run(&mut self, decisions: usize) {
        let end = self.decisions.0.len() + decisions;
        while self.decisions.0.len() < end {
            self.now += TICK_NS;
            let now = Time(self.now);
            if let Some((load, pages)) = self.reading.pop_front() {
                self.decide(|manager| {
                    pages.iter().for_each(|&page| manager.page_loaded(now, load, page));
                });
            }
            let rests = self.working.split_off(&(self.now + 1, ScanId(0)));
            for (_, scan) in std::mem::replace(&mut self.working, rests) {
                self.decide(|manager| manager.request_chunk(now, scan, WorkerIndex(0)).unwrap());
            }
            if self.manager.poll_timeout().is_some_and(|time| time <= now) {
                self.decide(|manager| manager.handle_timeout(now));
            }
        }
    }

    /// Applies an event, then carries out the decisions that follow from it.
    fn decide(&mut self, event: impl FnOnce(&mut ActiveBufferManager)) {
        let began = Instant::now();
        event(&mut self.manager);
        self.events.add(began);
        let mut spent = Duration::ZERO;
        loop {
            let began = Instant::now();
            let action = self.manager.poll_action();
            spent += began.elapsed();
            let Some(action) = action else { break };
            match action {
                Action::Load { load, pages, .. } => self.reading.push_back((load, pages)),
                Action::Deliver { scan, worker, chunk } => {
                    self.manager.release_chunk(Time(self.now), scan, worker);
                    self.working.insert((self.now + TICK_NS * self.speeds[&scan], scan));
                    self.decode(scan, chunk);
                }
                Action::Finish { scan, .. } => {
                    let began = Instant::now();
                    self.manager.cancel_scan(Time(self.now), scan);
                    self.ends.add(began);
                    self.speeds.remove(&scan);
                    self.start();
                }
                Action::Evict { .. } | Action::Escalate { .. } | Action::Unneeded { .. } => {}
                Action::NoSpace { .. } => unreachable!(),
                Action::Fail { .. } | Action::GrantMemory { .. } => {
                    unreachable!("not in this world")
                }
            }
        }
        self.decisions.0.push(spent);
    }

    /// Decodes one column of a delivered chunk for other scans. The oldest decoded slice is dropped.
    fn decode(&mut self, scan: ScanId, chunk: ChunkIndex) {
        let scan = self.manager.state().scan(scan).unwrap();
        let slice = (scan.table(), chunk, GroupIndex(0));
        self.manager.slice_decoded(slice.0, slice.1, slice.2);
        self.decoded.push_back(slice);
        if self.decoded.len() > self.shape.decoded() {
            let (table, chunk, group) = self.decoded.pop_front().unwrap();
            self.manager.slice_dropped(table, chunk, group);
        }
    }
}

fn main() {
    let mut shapes = vec![Shape::TABLES];
    for mixed in [false, true] {
        for chunks in [46, 4_600] {
            shapes.extend([64, 512, 4_096].map(|scans| Shape::one_table(chunks, scans, mixed)));
        }
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    for shape in shapes {
        let name = shape.name();
        if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let mut scans = ManyScans::new(shape);
        scans.run(shape.counted);
        let ManyScans { decisions, events, starts, ends, .. } = scans;
        println!("{name}");
        decisions.print("decisions");
        events.print("events");
        starts.print("starts of scans");
        ends.print("ends of scans");
    }
}
