#![allow(clippy::unwrap_used)]
use futures::poll;

use super::user::ACTIVE;
use super::*;

fn taker(turns: &Arc<Turns>, user: &str, weight: u32) -> Taker {
    Taker { turns: Arc::clone(turns), user: user.into(), weight }
}

fn begins(taker: &Taker) -> bool {
    taker.turns.begin(taker, None, Waker::noop()).is_ok()
}

#[test]
fn several_users_have_turns_by_weight() {
    let turns = Turns::new(4);
    let [ann, bob, eve] =
        [("ann", 2), ("bob", 1), ("eve", 1)].map(|(user, weight)| taker(&turns, user, weight));
    assert_eq!((0..8).filter(|_| begins(&ann)).count(), 8, "she is alone");
    assert_eq!((0..9).filter(|_| begins(&bob)).count(), 2);
    assert_eq!((0..9).filter(|_| begins(&eve)).count(), 2);
    assert!(!begins(&ann), "she is not alone any more");
    (0..5).for_each(|_| turns.end(&ann, Duration::ZERO));
    assert_eq!(turns.users()["ann"].turns, 4, "one who waited has a turn");
}

#[test]
fn planning_leaves_fewer_turns_to_its_user_and_takes_none_from_others() {
    let turns = Turns::new(4);
    let [ann, bob] = [("ann", 1), ("bob", 1)].map(|(user, weight)| taker(&turns, user, weight));
    let root = Arc::from("root");
    drop(turns.plan(&root));
    assert!(begins(&bob));
    let planning: Vec<_> = (0..3).map(|_| turns.plan(&ann.user)).collect();
    assert_eq!((0..4).filter(|_| begins(&ann)).count(), 1);
    drop(planning);
    assert_eq!(turns.users()["ann"].turns, 4, "those that waited have turns");
    assert_eq!(turns.users().len(), 2, "who only planned is none of the users");
}

#[tokio::test]
async fn who_waits_goes_on_when_a_turn_ends() {
    let turns = Turns::new(1);
    let (ann, bob) = (taker(&turns, "ann", 1), taker(&turns, "bob", 1));
    assert!(begins(&bob) && begins(&ann));
    let [mut first, mut second] = [(); 2].map(|()| ann.clone().task(Box::pin(async {})));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    turns.end(&ann, Duration::ZERO);
    drop(first); // It was given the turn.
    second.await;
    assert_eq!(turns.users()["ann"].turns, 0);
}

#[tokio::test]
async fn a_panic_ends_the_turn() {
    let turns = Turns::new(1);
    let task = taker(&turns, "ann", 1).task(Box::pin(async { panic!("broken") }));
    assert!(tokio::spawn(task).await.is_err());
    assert_eq!(turns.users()["ann"].turns, 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_has_had_more_than_others_has_a_share_of_the_turns() {
    let turns = Turns::new(4);
    let [ann, bob] = [("ann", 1), ("bob", 1)].map(|(user, weight)| taker(&turns, user, weight));
    let has = |taker: &Taker| {
        let count = (0..9).filter(|_| begins(taker)).count();
        (0..99).for_each(|number| turns.leave(taker, number));
        (0..count).for_each(|_| turns.end(taker, Duration::ZERO));
        count
    };
    assert!(begins(&bob) && begins(&ann));
    turns.end(&ann, Duration::from_secs(9));
    assert_eq!((has(&ann), has(&bob)), (2, 3), "Bob has one already");
    turns.end(&bob, Duration::from_secs(10));
    assert!(begins(&ann));
    assert_eq!((has(&ann), has(&bob)), (3, 2));
    // Those who come begin with the least of the others.
    let eve = taker(&turns, "eve", 1);
    assert_eq!(has(&eve), 4);
    assert_eq!(turns.users()["eve"].service, Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_looks_again_when_others_are_busy_no_longer() {
    let turns = Turns::new(2);
    let [ann, bob] = [("ann", 1), ("bob", 1)].map(|(user, weight)| taker(&turns, user, weight));
    assert!(begins(&bob) && begins(&ann) && begins(&ann));
    turns.end(&ann, Duration::from_secs(1));
    let mut task = ann.clone().task(Box::pin(async {}));
    assert!(poll!(&mut task).is_pending(), "she has one, which is her share");
    turns.end(&bob, Duration::ZERO);
    task.await;
    assert_eq!(turns.users()["ann"].turns, 1);
}

#[tokio::test(start_paused = true)]
async fn pauses_are_no_credit_and_work_alone_is_no_debt() {
    let turns = Turns::new(2);
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|user| taker(&turns, user, 1));
    // Bob has a turn now and then, Ann all the time.
    for _ in 0..10 {
        assert!(begins(&ann) && begins(&bob));
        turns.end(&bob, Duration::from_millis(1));
        tokio::time::advance(ACTIVE / 2).await;
        turns.end(&ann, ACTIVE / 2);
    }
    let service = |user| turns.users()[user].service;
    assert!(begins(&ann) && begins(&bob));
    assert!(service("bob") + LEAD_MAX >= service("ann"));
    // Nobody else is busy when Ann works, and Eve comes later.
    turns.end(&bob, Duration::ZERO);
    tokio::time::advance(2 * BUSY).await;
    turns.end(&ann, Duration::from_secs(9));
    assert!(begins(&eve));
    assert_eq!(service("eve"), service("ann"));
}

#[tokio::test(start_paused = true)]
async fn tasks_have_turns_in_the_order_in_which_they_came() {
    let turns = Turns::new(1);
    let [ann, bob] = ["ann", "bob"].map(|user| taker(&turns, user, 1));
    assert!(begins(&bob) && begins(&ann));
    let [mut first, mut second] = [(); 2].map(|()| ann.clone().task(Box::pin(async {})));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    assert!(poll!(&mut first).is_pending(), "it stays in its place");
    turns.end(&ann, Duration::ZERO);
    assert!(poll!(&mut second).is_pending());
    first.await;
    second.await;
}
