//! What decisions cost in a large installation: a million chunks in ten thousand files, a thousand tables, a thousand
//! scans, some of them in order, some of them lookups, with decoded columns.
//!
//! `cargo bench -p coscan-core --bench many_scans` runs it. Disk, processors and clock are imagined and cost nothing. A
//! decision is an action that comes out; its time is that of the call that it came out of, and the average counts the
//! commands and events between, too. Starts and ends of scans are counted apart.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use coscan_core::*;

const TABLES: u64 = 1_000;
const FILES_OF_TABLE: u64 = 10;
const CHUNKS_OF_FILE: u64 = 100;
const GROUPS: u64 = 8;
const SCANS: u64 = 1_000;
const CHUNK_BYTES: u64 = 8 * 100;
/// Nanoseconds of imagined time between two things that happen.
const TICK_NS: u64 = 1_000;
/// Slices that are kept decoded.
const DECODED: usize = 2_000;
const WARM_UP: usize = 300_000;
const COUNTED: usize = 300_000;

/// Numbers that look random and are the same in every run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
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
        self.0.sort_unstable();
        let at =
            |part: f64| self.0[((self.0.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
        let average = self.sum().as_secs_f64() * 1e6 / self.0.len() as f64;
        println!(
            "{what:<28} {:>9} calls, average {average:>8.2} us, 99 % {:>8.2} us, most {:>9.2} us",
            self.0.len(),
            at(0.99),
            at(1.0)
        );
    }
}

struct ManyScans {
    manager: ActiveBufferManager,
    tables: Vec<TableId>,
    first_pages: Vec<PageId>,
    random: Seeded,
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
    fn new(policy: PolicyKind) -> Self {
        let chunks = TABLES * FILES_OF_TABLE * CHUNKS_OF_FILE;
        let config = Config {
            pool_bytes: chunks / 64 * CHUNK_BYTES,
            active_workers_max: 24,
            request_bytes: 50,
            ..Config::default()
        };
        let mut manager = ActiveBufferManager::new(config, policy.build());
        let (mut tables, mut first_pages) = (Vec::new(), Vec::new());
        for table in 0..TABLES {
            let id = manager.register_table(GROUPS as usize, DeviceId((table % 4) as u32));
            tables.push(id);
            for file in 0..FILES_OF_TABLE {
                let pages = CHUNKS_OF_FILE * GROUPS;
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
                    .append_chunks(id, &(0..CHUNKS_OF_FILE).map(chunk).collect::<Vec<_>>())
                    .unwrap();
            }
        }
        let mut scans = Self {
            manager,
            tables,
            first_pages,
            random: Seeded(7),
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
        (0..SCANS).for_each(|_| scans.start());
        scans.run(WARM_UP);
        for times in [&mut scans.decisions, &mut scans.events, &mut scans.starts, &mut scans.ends] {
            times.0.clear();
        }
        scans
    }

    /// Seven of ten scans read a table in any order, two in order, one looks up a few pages. Every tenth table is read by
    /// half of them.
    fn start(&mut self) {
        let tables = if self.random.below(2) == 0 { TABLES / 10 } else { TABLES };
        let table = self.random.below(tables);
        let kind = self.random.below(10);
        let all = FILES_OF_TABLE * CHUNKS_OF_FILE;
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
        };
        let now = Time(self.now);
        let began = Instant::now();
        let scan = self.manager.start_scan(now, &spec).unwrap();
        self.starts.add(began);
        self.manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
        self.speeds.insert(scan, 1 + self.random.below(8));
    }

    /// Goes on until so many more actions have come out.
    fn run(&mut self, actions: usize) {
        let end = self.decisions.0.len() + actions;
        while self.decisions.0.len() < end {
            self.now += TICK_NS;
            let now = Time(self.now);
            if let Some((load, pages)) = self.reading.pop_front() {
                for page in pages {
                    let began = Instant::now();
                    self.manager.page_loaded(now, load, page);
                    self.events.add(began);
                }
            }
            let rests = self.working.split_off(&(self.now + 1, ScanId(0)));
            for (_, scan) in std::mem::replace(&mut self.working, rests) {
                let began = Instant::now();
                self.manager.request_chunk(now, scan, WorkerIndex(0)).unwrap();
                self.events.add(began);
            }
            if self.manager.poll_timeout().is_some_and(|time| time <= now) {
                self.manager.handle_timeout(now);
            }
            self.act();
        }
    }

    fn act(&mut self) {
        loop {
            let began = Instant::now();
            let Some(action) = self.manager.poll_action() else {
                self.events.add(began);
                return;
            };
            self.decisions.add(began);
            match action {
                Action::Load { load, pages, .. } => self.reading.push_back((load, pages)),
                Action::Deliver { scan, chunk, .. } => {
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
                Action::Evict { .. } | Action::Escalate { .. } => {}
                Action::Fail { .. } => unreachable!("nothing fails here"),
            }
        }
    }

    /// One column of what is handed out is decoded for others; the oldest goes.
    fn decode(&mut self, scan: ScanId, chunk: ChunkIndex) {
        let scan = self.manager.state().scan(scan).unwrap();
        let slice = (scan.table(), chunk, GroupIndex(0));
        self.manager.slice_decoded(slice.0, slice.1, slice.2);
        self.decoded.push_back(slice);
        if self.decoded.len() > DECODED {
            let (table, chunk, group) = self.decoded.pop_front().unwrap();
            self.manager.slice_dropped(table, chunk, group);
        }
    }
}

fn main() {
    let chunks = TABLES * FILES_OF_TABLE * CHUNKS_OF_FILE;
    println!("{chunks} chunks of {GROUPS} columns in {TABLES} tables, {SCANS} scans");
    let mut scans = ManyScans::new(PolicyKind::Relevance);
    scans.run(COUNTED);
    let ManyScans { decisions, events, starts, ends, .. } = scans;
    let all = (decisions.sum() + events.sum()).as_secs_f64() * 1e6 / decisions.0.len() as f64;
    println!("relevance: {all:.2} us for each decision, with the events before it");
    decisions.print("decisions");
    events.print("events");
    starts.print("starts of scans");
    ends.print("ends of scans");
}
