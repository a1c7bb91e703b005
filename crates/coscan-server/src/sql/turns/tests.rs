#![allow(clippy::unwrap_used)]
use futures::poll;

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
    (0..5).for_each(|_| turns.end(&ann));
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
    turns.end(&ann);
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
