//! Short scans, index selections, and scans in order beside others, under `relevance`: a byte takes a nanosecond.

use crate::world::{SPACE_TIMEOUT_NS, World, table, worker};
use coscan_core::*;

fn world(pool_bytes: u64) -> World {
    World::new(PolicyKind::Relevance.build(), pool_bytes, 1)
}

#[test]
fn a_tiny_scan_is_read_for_while_enough_is_being_read_for_others() {
    let (mut world, table) = world(10_000).with_table(40, &[100]);
    world.start(table, &[0], 0..390, &[worker(1_000)]);
    world.drive_until(10);
    let tiny = world.start(table, &[0], 390..400, &[worker(1)]);
    world.drive_until(20);
    let scans: Vec<_> = world.loads().map(|(scan, ..)| scan).collect();
    assert_eq!(scans[1..], [tiny]);
}

#[test]
fn a_load_that_a_tiny_scan_waits_for_is_escalated_and_others_are_not() {
    let (mut world, table) = world(10_000).with_table(40, &[100]);
    world.start(table, &[0], 0..400, &[worker(1_000)]);
    world.drive_until(10);
    world.start(table, &[0], 0..10, &[worker(1)]);
    world.drive_until(20);
    assert_eq!(world.escalated(), [LoadId(0)], "chunk 0 is being read for the long scan");
    let reads = world.chunks_read().into_iter().filter(|&chunk| chunk == 0);
    assert_eq!(reads.count(), 1, "no chunk is read twice");
    world.drive_until(150);
    assert_eq!(world.escalated(), [LoadId(0)], "no tiny scan waits any more");
}

#[test]
fn no_load_for_a_tiny_scan_passes_one_that_is_overdue() {
    const LOAD_NS: u64 = 10 * SPACE_TIMEOUT_NS;
    for (starts, loads_before_the_first_ends) in [(SPACE_TIMEOUT_NS - 1, 2), (SPACE_TIMEOUT_NS, 1)]
    {
        let (mut world, table) = world(100 * LOAD_NS).with_table(40, &[LOAD_NS]);
        world.start(table, &[0], 0..390, &[worker(1_000)]);
        world.drive_until(starts);
        let tiny = world.start(table, &[0], 390..400, &[worker(1)]);
        world.drive_until(LOAD_NS - 1);
        assert_eq!(world.loads().count(), loads_before_the_first_ends);
        world.drive_until(LOAD_NS);
        assert_eq!(world.loads().nth(1).unwrap().0, tiny, "it is the next in any case");
    }
}

#[test]
fn an_overdue_load_takes_one_slot_of_the_urgent_ones_and_leaves_the_others() {
    let config = Config { loads_in_flight_max: 2, wait_max_ns: 10_000, ..Config::default() };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let (table, _) = manager.register_layout(&table(40, &[100]), DeviceId(0));
    // The load that a scan starts at this time, and whether it is urgent.
    let start = |manager: &mut ActiveBufferManager, now, chunks: std::ops::Range<u32>| {
        let chunks = vec![ChunkIndex(chunks.start)..ChunkIndex(chunks.end)];
        let groups = vec![GroupIndex(0)];
        let order = Order::Any;
        let spec = ScanSpec {
            table,
            groups,
            chunks,
            order,
            workers: 1,
            weight: 1,
            pages: None,
            computation: None,
        };
        let scan = manager.start_scan(Time(now), &spec).unwrap();
        manager.request_chunk(Time(now), scan, WorkerIndex(0)).unwrap();
        loads(manager)
    };
    let long = start(&mut manager, 0, 0..30);
    assert_eq!(long, [(LoadId(0), false), (LoadId(1), false)]);
    manager.page_loaded(Time(5_000), LoadId(1), PageId(1));
    assert_eq!(loads(&mut manager), [], "the worker is handed the chunk");
    manager.request_chunk(Time(5_000), ScanId(0), WorkerIndex(0)).unwrap();
    assert_eq!(loads(&mut manager), [(LoadId(2), false)]);
    assert_eq!(start(&mut manager, 10_000, 38..39), [(LoadId(3), true)], "one slot is left");
    assert_eq!(start(&mut manager, 10_000, 39..40), [], "the other is that of load 0");
}

/// The loads that are started now, and whether they are urgent.
fn loads(manager: &mut ActiveBufferManager) -> Vec<(LoadId, bool)> {
    let actions = std::iter::from_fn(|| manager.poll_action());
    let load = |action| match action {
        Action::Load { load, urgent, .. } => Some((load, urgent)),
        _ => None,
    };
    actions.filter_map(load).collect()
}

#[test]
fn loads_that_become_urgent_make_room_for_no_more_than_as_many_again() {
    let (mut world, table) = world(10_000).with_table(40, &[100]);
    world.start(table, &[0], 0..400, &[worker(1_000)]);
    for (now, chunk) in [(10, 0), (20, 1)] {
        world.drive_until(now);
        world.start(table, &[0], chunk * 10..(chunk + 1) * 10, &[worker(1)]);
    }
    world.drive_until(99);
    assert_eq!(world.escalated(), [LoadId(0), LoadId(1)]);
    assert_eq!(world.chunks_read(), [0, 1], "none has ended yet");
}

#[test]
fn a_scan_is_short_relative_to_the_longest_running_one() {
    let (mut world, table) = world(10_000).with_table(80, &[100]);
    let [long, short, tiny] =
        [0..800, 0..50, 0..20].map(|rows| world.start(table, &[0], rows, &[worker(1_000_000)]));
    let classes = |world: &World| [long, short, tiny].map(|scan| world.manager.priority_of(scan));
    assert_eq!(classes(&world), [PriorityClass::Long, PriorityClass::Short, PriorityClass::Tiny]);
    world.cancel(long);
    assert_eq!(classes(&world)[1..], [PriorityClass::Long, PriorityClass::Long]);
}

#[test]
fn scans_are_short_by_bytes_and_tiny_by_chunks() {
    let mut world = world(10_000);
    let (wide, slim) =
        (world.add_table(&table(20, &[900, 10])), world.add_table(&table(20, &[50])));
    let mut length = |table, groups: &[u32], rows| {
        let scan = world.start(table, groups, rows, &[worker(1_000_000)]);
        world.manager.priority_of(scan)
    };
    assert_eq!(length(wide, &[0], 0..200), PriorityClass::Long);
    assert_eq!(length(slim, &[0], 0..200), PriorityClass::Short, "as many chunks, 1,000 bytes");
    assert_eq!(length(wide, &[1], 0..200), PriorityClass::Short, "another column: 200 bytes");
    assert_eq!(length(slim, &[0], 0..20), PriorityClass::Tiny);
    assert_eq!(length(wide, &[0], 0..20), PriorityClass::Long, "two chunks, 1,800 bytes");
}

/// The pages read by a selection of these pages, of a chunk of ten pages of 100 bytes.
fn selection(listed: &[u32], request_cost_bytes: u64) -> Vec<u32> {
    let mut builder = Layout::builder(1);
    let pages: Vec<_> = (0..10).map(|_| builder.add_page(GroupIndex(0), 100)).collect();
    builder.add_chunk(10, vec![pages]);
    let config = Config { pool_bytes: 10_000, request_cost_bytes, ..Config::default() };
    let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
    let spec = ScanSpec {
        table: manager.register_layout(&builder.build(), DeviceId(0)).0,
        groups: vec![GroupIndex(0)],
        chunks: std::iter::once(ChunkIndex(0)..ChunkIndex(1)).collect(),
        order: Order::Any,
        workers: 1,
        weight: 1,
        pages: Some(listed.iter().copied().map(PageId).collect()),
        computation: None,
    };
    let scan = manager.start_scan(Time(0), &spec).unwrap();
    manager.request_chunk(Time(0), scan, WorkerIndex(0)).unwrap();
    let Some(Action::Load { pages, .. }) = manager.poll_action() else { panic!("no load") };
    pages.into_iter().map(|page| page.0).collect()
}

#[test]
fn an_index_selection_reads_single_pages_up_to_the_break_even() {
    // Two requests of 100 bytes and what a request costs, against one of 1,000 bytes.
    assert_eq!(selection(&[7, 2], 799), [2, 7]);
    assert_eq!(selection(&[7, 2], 800), (0..10).collect::<Vec<_>>());
    // Neighbours are one request, which is never dearer than the whole chunk.
    assert_eq!(selection(&[3, 4], u64::MAX / 4), [3, 4]);
}

/// A table of 300 chunks, each with a page of 10 bytes and nine of 110, beside a scan that keeps a third of it, and with a
/// single processor.
struct Selections {
    manager: ActiveBufferManager,
    table: TableId,
}

impl Selections {
    fn new() -> Self {
        let mut builder = Layout::builder(1);
        for _ in 0..300 {
            let page = |page| builder.add_page(GroupIndex(0), if page == 0 { 10 } else { 110 });
            let pages = (0..10).map(page).collect();
            builder.add_chunk(10, vec![pages]);
        }
        let config = Config { active_workers_max: 1, request_cost_bytes: 0, ..Config::default() };
        let mut manager = ActiveBufferManager::new(config, PolicyKind::Relevance.build());
        let (table, _) = manager.register_layout(&builder.build(), DeviceId(0));
        let mut selections = Self { manager, table };
        selections.start(0..100, None);
        selections
    }

    /// Starts a scan of chunks whose worker asks; of each chunk it reads this page, if one is given.
    fn start(&mut self, chunks: std::ops::Range<u32>, page: Option<u32>) -> ScanId {
        let spec = ScanSpec {
            table: self.table,
            groups: vec![GroupIndex(0)],
            chunks: vec![ChunkIndex(chunks.start)..ChunkIndex(chunks.end)],
            order: Order::Any,
            workers: 1,
            weight: 1,
            pages: page.map(|page| (0..300).map(|chunk| PageId(chunk * 10 + page)).collect()),
            computation: None,
        };
        let scan = self.manager.start_scan(Time(0), &spec).unwrap();
        self.manager.request_chunk(Time(0), scan, WorkerIndex(0)).unwrap();
        scan
    }

    /// The class of a selection of a page of each of these chunks.
    fn priority_of(&mut self, chunks: std::ops::Range<u32>, page: u32) -> PriorityClass {
        let scan = self.start(chunks, Some(page));
        self.manager.priority_of(scan)
    }

    /// Carries out all actions. Returns the scans that were handed a chunk.
    fn run(&mut self) -> Vec<ScanId> {
        let mut handed = Vec::new();
        while let Some(action) = self.manager.poll_action() {
            match action {
                Action::Load { load, pages, .. } => {
                    pages.iter().for_each(|&page| self.manager.page_loaded(Time(0), load, page));
                }
                Action::Deliver { scan, .. } => handed.push(scan),
                _ => {}
            }
        }
        handed
    }
}

#[test]
fn a_selection_is_tiny_if_it_reads_few_bytes_of_few_chunks() {
    let mut selections = Selections::new(); // The long scan reads 100,000 bytes.
    assert_eq!(selections.priority_of(100..118, 1), PriorityClass::Tiny, "1,980 bytes: two chunks");
    assert_eq!(selections.priority_of(100..119, 1), PriorityClass::Short, "2,090 bytes");
    assert_eq!(selections.priority_of(100..164, 0), PriorityClass::Tiny, "640 bytes of 64 chunks");
    assert_eq!(selections.priority_of(100..165, 0), PriorityClass::Short, "of 65");
    assert_eq!(selections.priority_of(100..200, 1), PriorityClass::Long, "11,000 bytes");
}

#[test]
fn only_a_small_selection_bypasses_the_limit_of_workers() {
    let mut selections = Selections::new();
    let first = selections.run();
    assert_eq!(first.len(), 1, "one worker is at work");
    selections.start(100..200, Some(1));
    assert_eq!(selections.run(), [], "a large selection waits for the processor");
    let lookup = selections.start(100..101, Some(1));
    assert_eq!(selections.run(), [lookup]);
}

#[test]
fn a_selection_is_registered_in_steps() {
    let mut selections = Selections::new();
    let scan = selections.start(100..110, Some(1));
    assert_eq!(selections.manager.priority_of(scan), PriorityClass::Tiny);
    for step in 11..30 {
        let chunks = ChunkIndex(step * 10)..ChunkIndex(step * 10 + 10);
        selections.manager.extend_scan(Time(0), scan, &[chunks]).unwrap();
    }
    assert_eq!(selections.manager.priority_of(scan), PriorityClass::Long, "22,000 bytes");
    let registered = selections.manager.state().scan(scan).unwrap();
    assert_eq!((registered.needed().len(), registered.size()), (200, 22_000));
    let pages = selections.manager.state().pages_of(registered, ChunkIndex(299));
    assert_eq!(pages, [PageId(2_991)], "only what was selected");
    selections.manager.audit().unwrap();
}

#[test]
fn pages_that_scans_in_order_need_last_are_evicted() {
    const SECOND: u64 = 1_000_000_000;
    let (mut world, table) = world(80).with_table(20, &[10]);
    let in_order = |world: &mut World| {
        let rows = std::iter::once(0..200).collect();
        world.try_start(table, &[0], rows, Order::InOrder, &[worker(SECOND)]).unwrap()
    };
    in_order(&mut world);
    world.drive_until(6 * SECOND + 100);
    assert_eq!(world.evicted(), [] as [u32; 0]);
    in_order(&mut world);
    world.drive_until(7 * SECOND + 500);
    // The second scan has 0 to 6 before it, the first one is at 7.
    assert_eq!(world.evicted(), [6]);
}
