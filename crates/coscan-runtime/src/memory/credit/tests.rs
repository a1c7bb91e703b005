//! Tests with one thread at a time.

use futures::FutureExt;

use super::*;

const USER: MemoryUser = MemoryUser::Decoded;

fn credit(bytes: u64) -> (Credit, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let credit = Credit::new(100, Arc::clone(&bell));
    credit.add(bytes);
    (credit, bell)
}

fn has_rung(bell: &Bell) -> bool {
    bell.listen(None).now_or_never().is_some()
}

#[test]
fn it_is_taken_as_far_as_it_goes_and_returned() {
    let (credit, bell) = credit(50);
    assert!(!credit.try_take(USER, 51));
    assert!(credit.try_take(USER, 50) && !credit.try_take(USER, 1));
    credit.give(USER, 20);
    assert!(credit.try_take(USER, 20));
    assert_eq!(credit.usage().decoded_bytes, 50);
    assert!(!has_rung(&bell), "nobody waits");
}

#[test]
fn the_bell_rings_for_those_who_wait_until_they_have_looked() {
    let (credit, bell) = credit(50);
    assert!(credit.try_take(USER, 50));
    credit.mark_wanted();
    credit.give(USER, 1);
    assert!(has_rung(&bell));
    assert!(credit.clear_wanted() && !credit.clear_wanted());
    credit.give(USER, 1);
    assert!(!has_rung(&bell));
    assert_eq!(credit.free_bytes(), 2, "the mark is no memory");
}

#[test]
fn an_overdraft_is_made_good_first() {
    let (credit, bell) = credit(10);
    assert!(credit.take(USER, 30) && has_rung(&bell));
    assert_eq!(credit.free_bytes(), -20);
    credit.mark_wanted();
    credit.give(USER, 20);
    assert!(!credit.try_take(USER, 1), "it was made good");
    assert!(credit.is_wanted());
    credit.give(USER, 10);
    assert!(credit.try_take(USER, 10));
}

#[test]
fn what_is_free_beyond_need_is_collected() {
    let (credit, bell) = credit(0);
    credit.take(USER, 150);
    assert!(has_rung(&bell));
    credit.add(150);
    credit.give(USER, 100);
    assert_eq!(credit.collect_surplus(), 0);
    credit.give(USER, 50);
    assert!(!has_rung(&bell), "nobody waits");
    assert_eq!((credit.collect_surplus(), credit.free_bytes()), (100, 50));
    credit.add(100);
    credit.mark_wanted();
    assert_eq!((credit.collect(40), credit.collect(40)), (110, 0));
    assert!(credit.is_wanted() && credit.free_bytes() == 40);
}

#[test]
#[should_panic(expected = "memory returned was taken")]
fn more_than_was_taken_cannot_be_returned() {
    credit(10).0.give(USER, 1);
}

#[test]
fn sizes_that_no_machine_has_are_refused() {
    let (credit, _) = credit(10);
    assert!(!credit.try_take(USER, u64::MAX));
    credit.mark_wanted();
    assert!(!credit.try_take(USER, u64::MAX) && credit.try_take(USER, 10));
}
