//! Memory beside the pool: how far the pool shrinks, which requests are refused, and which waiting request is next.
//!
//! The pool has 64 pages of 1,000 bytes; the budget is a page more.

use coscan_core::*;

use crate::scenarios::world;
use crate::world::{NEVER, World, worker};

const PAGE_BYTES: u64 = 1_000;
const POOL_BYTES: u64 = 64 * PAGE_BYTES;
const FLOOR_BYTES: u64 = POOL_BYTES / 8;
const QUANTUM_BYTES: u64 = POOL_BYTES / 128;
const OVERTAKING_NS: u64 = 1_000_000;

const LIMITS: MemoryLimits = MemoryLimits {
    budget_bytes: POOL_BYTES + PAGE_BYTES,
    pool_ceiling_bytes: POOL_BYTES,
    pool_floor_bytes: FLOOR_BYTES,
    overtaking_ns: OVERTAKING_NS,
};

/// A pool full of pages that no scan needs, of a table of 80 chunks of one page.
fn full(policy: PolicyKind) -> (World, TableId) {
    let (mut world, table) = world(policy, POOL_BYTES).with_table(80, &[PAGE_BYTES]);
    world.set_memory_limits(LIMITS).unwrap();
    world.warm(table, &[0], 0..640);
    assert_eq!(world.manager.state().held_bytes(), POOL_BYTES);
    (world, table)
}

/// A full world with workers that use this number of the pages until they are cancelled.
fn in_use(pages: u64) -> (World, ScanId) {
    let (mut world, table) = full(PolicyKind::Relevance);
    let worker = worker(1_000 * OVERTAKING_NS);
    let scan = world.start(table, &[0], 0..10 * pages, &vec![worker; pages as usize]);
    world.drive_until(world.now);
    let state = world.manager.state();
    assert_eq!(state.held_bytes() - state.unpinned_bytes(), pages * PAGE_BYTES);
    (world, scan)
}

fn pool_bytes(world: &World) -> u64 {
    world.manager.state().pool_bytes()
}

/// Takes all memory that is available.
fn take_all(world: &mut World) -> u64 {
    let bytes = world.manager.available_bytes();
    world.take(bytes, 0).unwrap()
}

#[test]
fn the_pool_gives_way_to_others_and_grows_again() {
    for policy in PolicyKind::variants() {
        let (mut world, _) = full(policy);
        assert_eq!(world.take(PAGE_BYTES, 0), Ok(PAGE_BYTES));
        assert_eq!(pool_bytes(&world), POOL_BYTES, "{policy}: that was free");
        assert_eq!(world.take(1, 0), Ok(1));
        assert_eq!(pool_bytes(&world), POOL_BYTES - 1 - QUANTUM_BYTES, "{policy}: and a quantum");
        assert_eq!(world.manager.state().held_bytes(), POOL_BYTES - PAGE_BYTES);
        let taken = take_all(&mut world);
        assert_eq!((pool_bytes(&world), world.take(1, 0)), (FLOOR_BYTES, missing(1)), "{policy}");
        world.give(taken);
        world.give(PAGE_BYTES + 1);
        assert_eq!((pool_bytes(&world), world.handed_out_bytes()), (POOL_BYTES, 0), "{policy}");
    }
}

#[test]
fn what_is_in_use_is_not_taken_and_the_answer_is_no_at_once() {
    let (mut world, scan) = in_use(60);
    world.actions.clear();
    let most_bytes = LIMITS.budget_bytes - 60 * PAGE_BYTES;
    assert_eq!(world.take(most_bytes + 7, 0), missing(7));
    assert_eq!(world.take(u64::MAX, 0), missing(u64::MAX - most_bytes));
    assert_eq!(pool_bytes(&world), POOL_BYTES);
    assert!(world.evicted().is_empty(), "nothing is evicted in vain");
    assert_eq!(world.take(most_bytes, 0), Ok(most_bytes));
    world.cancel(scan);
    assert_eq!(world.take(1, 0), Ok(1), "now it can");
}

#[test]
fn memory_taken_and_returned_in_small_pieces_does_not_move_the_pool_each_time() {
    let (mut world, _) = full(PolicyKind::Relevance);
    let (mut spare, mut asked) = (0, 0);
    for _ in 0..1_000 {
        if spare < 50 {
            spare += world.take(50, QUANTUM_BYTES).unwrap();
            asked += 1;
        }
        spare -= 50;
    }
    assert!((50..150).contains(&asked), "{asked}");
    assert_eq!(world.handed_out_bytes(), 50_000 + spare);
    let mut sizes = vec![pool_bytes(&world)];
    for _ in 0..1_000 {
        world.give(50);
        sizes.push(pool_bytes(&world));
    }
    sizes.dedup();
    assert!((45..60).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.is_sorted() && sizes.ends_with(&[POOL_BYTES]));
}

#[test]
fn an_overdraft_takes_from_the_pool_what_it_can_give() {
    let (mut world, _) = full(PolicyKind::Relevance);
    let most_bytes = LIMITS.budget_bytes - FLOOR_BYTES;
    assert_eq!(world.cover(LIMITS.budget_bytes), most_bytes);
    assert_eq!(pool_bytes(&world), FLOOR_BYTES);
    assert_eq!((world.cover(5), world.take(1, 0)), (0, missing(1)));
    world.give(most_bytes);
    assert_eq!(pool_bytes(&world), POOL_BYTES);
}

#[test]
fn the_pool_moves_with_its_ceiling_as_far_as_others_let_it() {
    let (mut world, table) = full(PolicyKind::Relevance);
    let ceiling = |pool_ceiling_bytes| MemoryLimits { pool_ceiling_bytes, ..LIMITS };
    world.set_memory_limits(ceiling(20_000)).unwrap();
    assert_eq!(pool_bytes(&world), 20_000);
    world.take(50_000, 0).unwrap();
    world.set_memory_limits(LIMITS).unwrap();
    assert_eq!(pool_bytes(&world), 15_000, "the rest of the budget");
    assert_eq!(world.grow_pool(15_000), Ok(()));
    assert_eq!(world.grow_pool(15_002), Err(MissingMemory { bytes: 2 }));
    world.start(table, &[0], 0..10, &[NEVER]);
    world.set_memory_limits(ceiling(0)).unwrap();
    assert_eq!(pool_bytes(&world), PAGE_BYTES, "what a running scan needs stays");
    let budget_bytes = 50_500;
    let less = world.set_memory_limits(MemoryLimits { budget_bytes, ..LIMITS });
    assert_eq!(less, Err(MissingMemory { bytes: 500 }));
    assert_eq!(world.manager.memory_limits(), Some(ceiling(0)), "as before");
}

#[test]
fn a_pool_without_limits_hands_out_nothing() {
    let mut world = world(PolicyKind::Relevance, POOL_BYTES);
    assert_eq!((world.take(1, 5), world.take(0, 5)), (missing(1), Ok(0)));
    assert_eq!(world.request(MemoryStage::Working, None, 1), Err(MissingMemory { bytes: 1 }));
    assert_eq!((world.cover(1), world.manager.memory_limits()), (0, None));
    world.give(0);
    assert_eq!(world.set_pool_bytes(POOL_BYTES * 2), POOL_BYTES * 2);
}

#[test]
fn a_pool_set_by_hand_does_not_exceed_the_budget() {
    let (mut world, _) = full(PolicyKind::Relevance);
    world.take(30_000, 0).unwrap();
    assert_eq!(world.set_pool_bytes(POOL_BYTES), LIMITS.budget_bytes - 30_000);
}

#[test]
fn a_request_is_met_from_what_is_left_from_the_pool_and_from_what_returns() {
    let (mut world, _) = full(PolicyKind::Relevance);
    let left = world.request(MemoryStage::Opening, None, PAGE_BYTES).unwrap();
    let of_pool = world.request(MemoryStage::Opening, None, 10 * PAGE_BYTES).unwrap();
    assert_eq!((&world.memory.met, world.handed_out_bytes()), (&vec![left, of_pool], 11_000));
    assert!(matches!(
        world.actions[..],
        [
            Action::GrantMemory { .. },
            Action::Evict { .. },
            ..,
            Action::Evict { .. },
            Action::GrantMemory { bytes: 10_000, .. }
        ]
    ));
    let taken = take_all(&mut world);
    let returned = world.request(MemoryStage::Opening, None, 10).unwrap();
    world.give(9);
    assert_eq!(world.waiting(), [returned]);
    world.give(1);
    assert!(world.waiting().is_empty());
    world.give(taken);
    assert_eq!(world.manager.handed_out_bytes(), 11_000);
    let too_large = LIMITS.budget_bytes - FLOOR_BYTES + 3;
    let refused = world.request(MemoryStage::Working, None, too_large);
    assert_eq!(refused, Err(MissingMemory { bytes: 3 }), "it could never be met");
}

#[test]
fn requests_are_met_by_stage_then_by_class_then_by_arrival() {
    let (mut world, table) = full(PolicyKind::Relevance);
    let long = world.start(table, &[0], 0..800, &[NEVER]);
    let short = world.start(table, &[0], 0..30, &[NEVER]);
    let tiny = world.start(table, &[0], 0..10, &[NEVER]);
    let classes = [tiny, short, long].map(|scan| world.manager.priority_of(scan));
    assert_eq!(classes, [PriorityClass::Tiny, PriorityClass::Short, PriorityClass::Long]);
    take_all(&mut world);
    let mut request = |stage, scan| world.request(stage, Some(scan), 10).unwrap();
    let opening = [long, short, long, tiny].map(|scan| request(MemoryStage::Opening, scan));
    let working = [long, tiny, short].map(|scan| request(MemoryStage::Working, scan));
    let expected =
        [working[1], working[2], working[0], opening[3], opening[1], opening[0], opening[2]];
    for count in 0..7 {
        world.give(10);
        assert_eq!(world.memory.met, expected[..=count]);
    }
}

#[test]
fn a_small_request_overtakes_a_large_one_until_that_has_waited_for_too_long() {
    let (mut world, _) = full(PolicyKind::Relevance);
    take_all(&mut world);
    let large = world.request(MemoryStage::Opening, None, 1_000).unwrap();
    let small = world.request(MemoryStage::Opening, None, 10).unwrap();
    world.give(30);
    assert_eq!((&world.memory.met, world.waiting()), (&vec![small], vec![large]));
    world.now += OVERTAKING_NS;
    let later = world.request(MemoryStage::Opening, None, 10).unwrap();
    let working = world.request(MemoryStage::Working, None, 20).unwrap();
    assert_eq!(world.memory.met, [small, working], "only a worker that holds memory passes");
    world.give(999);
    assert_eq!(world.waiting(), [large, later], "it adds up");
    world.give(1);
    assert_eq!((&world.memory.met[2..], world.waiting()), (&[large][..], vec![later]));
    world.withdraw(later);
    assert!(world.waiting().is_empty());
}

#[test]
fn a_request_that_is_withdrawn_no_longer_holds_up_others() {
    let (mut world, _) = full(PolicyKind::Relevance);
    take_all(&mut world);
    let large = world.request(MemoryStage::Working, None, 1_000).unwrap();
    world.now += OVERTAKING_NS;
    let small = world.request(MemoryStage::Opening, None, 10).unwrap();
    world.give(500);
    assert_eq!(world.waiting(), [large, small]);
    world.withdraw(large);
    assert_eq!(world.memory.met, [small]);
    world.withdraw(small);
    assert_eq!(world.manager.handed_out_bytes(), world.handed_out_bytes(), "it was met before");
}

#[test]
fn a_grant_that_is_withdrawn_before_it_comes_out_hands_out_nothing() {
    let (mut world, _) = full(PolicyKind::Relevance);
    let now = Time(world.now);
    let manager = &mut world.manager;
    let tickets = [10, 20].map(|bytes| {
        manager.request_memory(now, MemoryStage::Opening, None, PAGE_BYTES + bytes).unwrap()
    });
    // The grants are decided with the first action, an eviction for the first of them.
    while !matches!(manager.poll_action(), Some(Action::GrantMemory { .. })) {}
    assert_eq!(manager.handed_out_bytes(), 2 * PAGE_BYTES + 30);
    manager.withdraw_memory_request(now, tickets[1]);
    assert_eq!(manager.handed_out_bytes(), PAGE_BYTES + 10);
    let is_grant = |action| matches!(action, Action::GrantMemory { .. });
    assert!(!std::iter::from_fn(|| manager.poll_action()).any(is_grant));
    manager.withdraw_memory_request(now, tickets[0]);
    assert_eq!(manager.handed_out_bytes(), PAGE_BYTES + 10, "that is the caller's");
}

#[test]
fn while_a_request_waits_the_pool_does_not_grow_and_gives_what_it_can_once_it_is_overdue() {
    let (mut world, scan) = in_use(20);
    world.take(20_000, 0).unwrap();
    let waiting = world.request(MemoryStage::Opening, None, 30_000).unwrap();
    let before_bytes = pool_bytes(&world);
    assert!(before_bytes > 40_000);
    world.give(2_000);
    assert_eq!(pool_bytes(&world), before_bytes);
    world.now += OVERTAKING_NS;
    world.give(0);
    assert_eq!(pool_bytes(&world), 20_000, "what is in use");
    assert_eq!(world.grow_pool(21_000), Ok(()));
    assert_eq!(pool_bytes(&world), 20_000, "no scan was registered that needs it");
    world.take(10, 500).unwrap();
    world.cancel(scan);
    world.settle();
    assert_eq!(world.memory.met, [waiting]);
    world.give(world.handed_out_bytes());
    assert_eq!(pool_bytes(&world), POOL_BYTES);
}

#[test]
fn what_a_request_misses_is_said() {
    let (mut world, _) = full(PolicyKind::Relevance);
    take_all(&mut world);
    let first = world.request(MemoryStage::Opening, None, 1_000).unwrap();
    world.now += OVERTAKING_NS;
    let behind = world.request(MemoryStage::Opening, None, 300).unwrap();
    world.give(400);
    let unmet: Vec<_> = world.manager.unmet_memory_requests().collect();
    let request = |ticket, bytes, missing_bytes| UnmetMemoryRequest {
        ticket,
        stage: MemoryStage::Opening,
        bytes,
        missing_bytes,
    };
    assert_eq!(unmet, [request(first, 1_000, 600), request(behind, 300, 0)]);
    let since = Time(world.now - OVERTAKING_NS);
    assert_eq!(world.manager.oldest_memory_request(MemoryStage::Opening), Some(since));
    assert_eq!(world.manager.oldest_memory_request(MemoryStage::Working), None);
}

fn missing(bytes: u64) -> Result<u64, MissingMemory> {
    Err(MissingMemory { bytes })
}
