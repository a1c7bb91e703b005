//! Small random workloads on small machines, with faults of all kinds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use coscan_core::{Config, GroupIndex, Index, Layout, Order, PageIndex, PolicyKind, Time};

use super::random_changes::change_tables;
use super::random_table::table;
use super::{Faults, Rates};
use crate::machine::{Disk, Machine};
use crate::outcome::Outcome;
use crate::random::Random;
use crate::simulation::{Options, run};
use crate::table::Table;
use crate::violation::{Rule, Violation};
use crate::workload::{Cost, Query, Stream, Workload};

/// The space timeout in nanoseconds. Times in a case are of that order.
pub(super) const SPACE_TIMEOUT_NS: u64 = 10_000;

/// The longest wait, as a multiple of the sum of the space timeout and the delay. A case is so small that nothing else
/// in it takes as long.
const WAIT_MAX: u64 = 6;

/// A workload, its machine and its faults.
#[derive(Clone, Debug)]
pub struct RandomCase {
    /// The workload.
    pub workload: Workload,
    /// The machine.
    pub machine: Machine,
    /// The faults (none in one case out of four), and the checks.
    pub options: Options,
}

impl RandomCase {
    /// Runs it under a policy.
    ///
    /// # Errors
    /// If the manager breaks a rule, an assertion of its own among them.
    pub fn run(&self, policy: PolicyKind) -> Result<Outcome, Box<Violation>> {
        let run = || run(&self.workload, &self.machine, policy.build(), self.options);
        self.catch_panic(policy, run)
    }

    /// Turns a failed assertion of the manager into a broken rule.
    pub(super) fn catch_panic<T>(
        &self,
        policy: PolicyKind,
        run: impl FnOnce() -> Result<T, Box<Violation>>,
    ) -> Result<T, Box<Violation>> {
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Box::new(Violation {
                policy: policy.name().to_owned(),
                seed: self.options.faults.map(|faults| faults.seed),
                step: 0,
                at: Time(0),
                rule: Rule::Assertion,
                what: text.unwrap_or("a panic without a text").to_owned(),
            }))
        })
    }

    /// A smaller case that breaks a rule under the same policy. Streams, queries and kinds of faults are left out one
    /// by one as long as a rule is still broken.
    #[must_use]
    pub fn shrink(mut self, policy: PolicyKind) -> Self {
        while let Some(smaller) = self.smaller().into_iter().find(|case| case.run(policy).is_err())
        {
            self = smaller;
        }
        self
    }

    pub(super) fn smaller(&self) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (stream, queries) in self.workload.streams.iter().enumerate() {
            let mut without_stream = self.clone();
            without_stream.workload.streams.remove(stream);
            smaller.push(without_stream);
            for query in 0..queries.queries.len() {
                let mut without_query = self.clone();
                without_query.workload.streams[stream].queries.remove(query);
                smaller.push(without_query);
            }
        }
        for change in 0..self.workload.table_changes.len() {
            let mut without_change = self.clone();
            without_change.workload.table_changes.remove(change);
            smaller.push(without_change);
        }
        if self.options.batch_ns > 0 {
            let options = Options { batch_ns: 0, ..self.options };
            smaller.push(Self { options, ..self.clone() });
        }
        let fewer_faults = self.options.faults.map(Faults::fewer).unwrap_or_default();
        smaller.extend(fewer_faults.into_iter().map(|faults| {
            let options = Options { faults, ..self.options };
            Self { options, ..self.clone() }
        }));
        smaller
    }
}

/// The rule that the case of a seed breaks, if any, and the smallest case that still breaks one. The case runs under
/// every policy, and under one with other switches, a different one for each seed.
#[must_use]
pub fn broken(seed: u64) -> Option<String> {
    let variants: Vec<_> = PolicyKind::variants().collect();
    let (usual, switched) = variants.split_at(PolicyKind::ALL.len());
    let in_turn = switched[(seed % switched.len() as u64) as usize];
    let case = random_case(seed);
    usual.iter().copied().chain([in_turn]).find_map(|policy| {
        let violation = case.run(policy).err()?;
        let small = case.clone().shrink(policy);
        let still = small.run(policy).err()?;
        Some(format!("case {seed} under {policy}: {violation}\nsmallest: {still}\n{small:#?}"))
    })
}

/// The case of a seed: one to three tables with layouts of all kinds, some of which change, up to fifteen queries and at times a background
/// load of short ones, any disk, a pool of one chunk of the widest query or more.
#[must_use]
pub fn random_case(seed: u64) -> RandomCase {
    case(seed, true)
}

/// The case of a seed without changes of tables.
pub(super) fn case_at_rest(seed: u64) -> RandomCase {
    case(seed, false)
}

fn case(seed: u64, may_change: bool) -> RandomCase {
    let mut random = Random::new(seed);
    let tables: Vec<_> = (0..random.between(1, 3)).map(|_| table(&mut random)).collect();
    let mut streams: Vec<_> =
        (0..random.between(1, 5)).map(|_| stream(&mut random, &tables)).collect();
    let background_load = if random.percent(3) { random.count(2, 5) } else { 0 };
    streams.extend((0..background_load).map(|_| background_stream(&mut random, &tables)));
    let machine = machine(&mut random);
    let room_percent = *random.choose(&[0, 0, 10, 30, 60, 100]);
    let (pool_changes, table_changes) = (Vec::new(), Vec::new());
    let mut workload = Workload { tables, streams, pool_bytes: 0, pool_changes, table_changes };
    // Changes have numbers of their own, so that all else is as without them.
    let mut of_changes = Random::new(!seed);
    if may_change && of_changes.percent(40) {
        change_tables(&mut of_changes, &mut workload);
    }
    let Workload { tables, streams, .. } = &workload;
    workload.pool_bytes = widest_chunk_bytes(tables, streams) + bytes(tables) * room_percent / 100;
    // Beside a background load there are no long delays: they would leave gaps in it.
    let delay_ns_max =
        if background_load > 0 { SPACE_TIMEOUT_NS / 10 } else { 2 * SPACE_TIMEOUT_NS };
    let rates = Rates::some(random.between(1, delay_ns_max));
    let faults = (!random.percent(25)).then_some(Faults { seed, rates });
    let delay_ns = faults.map_or(0, |faults| faults.rates.within_ns);
    let wait_ns_max = Some(WAIT_MAX * (SPACE_TIMEOUT_NS + delay_ns));
    let batch_ns = if random.percent(50) { random.between(1, SPACE_TIMEOUT_NS / 20) } else { 0 };
    let options =
        Options { faults, timeline: false, audit_every: 8, batch_ns, wait_ns_max, memory: None };
    RandomCase { workload, machine, options }
}

fn stream(random: &mut Random, tables: &[Table]) -> Stream {
    let start = Time(random.below(600));
    let queries = (0..random.between(1, 3)).map(|_| query(random, tables)).collect();
    Stream { start, queries, ..Stream::default() }
}

/// Short queries that keep coming. A scan that waits for a pause between them waits long.
fn background_stream(random: &mut Random, tables: &[Table]) -> Stream {
    let short = |random: &mut Random| {
        let query = query(random, tables);
        let row = random.below(tables[query.table].layout.row_count());
        let rows = std::iter::once(row..row + 1).collect();
        Query { rows, workers: 1, think_ns: 0, ..query }
    };
    let queries = (0..random.between(100, 500)).map(|_| short(random)).collect();
    Stream { queries, ..Stream::default() }
}

fn query(random: &mut Random, tables: &[Table]) -> Query {
    let table = random.count(0, tables.len() - 1);
    let layout = &tables[table].layout;
    let rows = layout.row_count();
    let whole = random.percent(40);
    let ranges = if whole || random.percent(50) { 1 } else { random.below(4) };
    let range = |random: &mut Random| {
        let start = if whole { 0 } else { random.below(rows) };
        start..if whole { rows } else { random.between(start, rows) }
    };
    let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
    let groups: Vec<_> = groups.filter(|_| random.percent(60)).collect();
    Query {
        label: "random".to_owned(),
        table,
        // Those that read the same columns may compute the same.
        computation: whole.then(|| groups.iter().map(|group| 1 << group.as_usize()).sum()),
        groups,
        version: None,
        rows: (0..ranges).map(|_| range(random)).collect(),
        selected: random.percent(20).then(|| selected(random, layout)),
        order: if random.percent(25) { Order::InOrder } else { Order::Any },
        workers: random.count(1, 3),
        weight: u32::try_from(random.between(1, 3)).expect("few"),
        cost: Cost {
            row_ps: random.choose(&[0, 1_000, 10_000]) * random.below(10),
            byte_ps: random.choose(&[0, 1_000]) * random.below(10),
        },
        think_ns: random.choose(&[0, 1]) * random.below(200),
        cancel_after_ns: None,
        change: None,
    }
}

/// Some pages of a table.
fn selected(random: &mut Random, layout: &Layout) -> Vec<PageIndex> {
    let percent = *random.choose(&[0, 10, 50, 100]);
    let pages = (0..layout.page_count()).map(PageIndex::from_usize);
    pages.filter(|_| random.percent(percent)).collect()
}

fn machine(random: &mut Random) -> Machine {
    let bytes_per_second = random.between(50_000_000, 2_000_000_000);
    let disk = match random.below(4) {
        0 => Disk::Perfect { ns_per_chunk: random.between(0, 100) },
        1 => Disk::SeekTransfer { seek_ns: random.below(50), bytes_per_second },
        2 => Disk::Raid {
            devices: u32::try_from(random.between(1, 4)).expect("few"),
            seek_ns: random.below(50),
            bytes_per_second,
            stripe_bytes: random.between(1, 30),
        },
        _ => Disk::ObjectStore {
            latency_ns: random.below(100),
            bytes_per_second_per_request: random.between(50_000_000, 1_000_000_000),
            bytes_per_second,
            requests_max: u32::try_from(random.between(1, 8)).expect("few"),
        },
    };
    let config = Config {
        request_cost_bytes: *random.choose(&[0, 5, 50]),
        loads_in_flight_max: random.count(1, 4),
        space_timeout_ns: SPACE_TIMEOUT_NS,
        active_workers_max: *random.choose(&[1, 2, 5, usize::MAX]),
        recheck_interval_ns: SPACE_TIMEOUT_NS / 10,
        wait_max_ns: SPACE_TIMEOUT_NS,
        ..Config::default()
    };
    let cores = u32::try_from(random.between(1, 4)).expect("few");
    Machine { disk, cores, quantum_bytes: random.between(1, 20), config }
}

fn widest_chunk_bytes(tables: &[Table], streams: &[Stream]) -> u64 {
    let queries = streams.iter().flat_map(|stream| &stream.queries);
    let chunks = queries.flat_map(|query| {
        let layout = &tables[query.table].layout;
        layout.chunks().map(move |chunk| {
            let whole = Query { selected: None, ..query.clone() };
            whole.pages(layout, chunk).map(|page| layout.bytes_of(page)).sum::<u64>()
        })
    });
    chunks.max().unwrap_or(0)
}

fn bytes(tables: &[Table]) -> u64 {
    let pages = tables.iter().flat_map(|table| {
        let pages = (0..table.layout.page_count()).map(PageIndex::from_usize);
        pages.map(|page| table.layout.bytes_of(page))
    });
    pages.sum()
}
