#![allow(clippy::unwrap_used)]

use std::pin::pin;
use std::task::Poll;

use futures::poll;

use super::*;
use crate::users::{Users, Verifier};

const LONG: Duration = Duration::from_secs(3600);

fn admission(running_max: usize, waiting_max: usize, wait_max: Duration) -> Admission {
    let (of_user_max, texts) = (running_max, ("queries run", ""));
    Admission::new(Bounds { running_max, of_user_max, waiting_max, wait_max, texts })
}

/// Admits a query of a user without a password.
async fn admit(admission: &Admission, user: &str, weight: u32) -> Result<Slot, QueryError> {
    let user = Users::anyone().find(user).unwrap();
    admission.admit(&user, weight).await
}

fn waiting(admission: &Admission) -> usize {
    admission.slots.state().waiting.len()
}

/// Users with passwords. Root is an administrator.
fn known_users() -> Users {
    let verifier = Verifier::of_password("x").unwrap();
    let entry = |name, admin| format!("[users.{name}]\nverifier = '{verifier}'\nadmin = {admin}\n");
    Users::parse(&(entry("ann", false) + &entry("bob", false) + &entry("root", true))).unwrap()
}

#[tokio::test]
async fn a_user_does_not_get_all_slots_and_who_waits_behind_gets_the_rest() {
    let users = known_users();
    let [ann, bob] = ["ann", "bob"].map(|name| users.find(name).unwrap());
    let texts = ("queries run", "");
    let bounds = Bounds { running_max: 4, of_user_max: 3, waiting_max: 9, wait_max: LONG, texts };
    let admission = Admission::new(bounds);
    let mut of_ann = Vec::new();
    for _ in 0..3 {
        of_ann.push(admission.admit(&ann, 1).await.unwrap());
    }
    let mut fourth = pin!(admission.admit(&ann, 1));
    assert!(poll!(&mut fourth).is_pending());
    let of_bob = admission.admit(&bob, 1).await.unwrap();
    drop(of_bob);
    assert!(poll!(&mut fourth).is_pending(), "the slot of others");
    drop(of_ann.pop());
    fourth.await.unwrap();
}

#[tokio::test]
async fn administrators_are_admitted_when_all_slots_are_taken() {
    let users = known_users();
    let [ann, root] = ["ann", "root"].map(|name| users.find(name).unwrap());
    let admission = admission(1, 9, LONG);
    let _running = admission.admit(&ann, 1).await.unwrap();
    let [first, second] = [(); 2].map(|()| admission.admit(&root, 1));
    let (first, _second) = (first.await.unwrap(), second.await.unwrap());
    assert!(poll!(pin!(admission.admit(&root, 1))).is_pending());
    drop(first);
    admission.admit(&root, 1).await.unwrap();
    // Without passwords every name may be that of an administrator, and gives no privilege.
    assert!(poll!(pin!(admit(&admission, "eve", 1))).is_pending());
}

#[tokio::test]
async fn who_fills_the_queue_gives_up_places_to_others() {
    let admission = admission(1, 3, LONG);
    let running = admit(&admission, "ann", 1).await.unwrap();
    let mut of_ann: Vec<_> = (0..3).map(|_| Box::pin(admit(&admission, "ann", 1))).collect();
    for waiting in &mut of_ann {
        assert!(poll!(waiting).is_pending());
    }
    let mut of_bob = Box::pin(admit(&admission, "bob", 1));
    assert!(poll!(&mut of_bob).is_pending());
    let Poll::Ready(Err(refused)) = poll!(&mut of_ann[2]) else { panic!("Ann's newest stays") };
    assert_eq!(refused.kind, ErrorKind::Busy);
    // Bob has one and Ann two, so that each refusal now affects the new query.
    for user in ["ann", "bob"] {
        assert_eq!(admit(&admission, user, 1).await.unwrap_err().kind, ErrorKind::Busy, "{user}");
    }
    drop(running);
    let first = of_ann.remove(0).await.unwrap();
    drop(first);
    of_bob.await.unwrap();
}

#[tokio::test]
async fn queries_beyond_the_slots_wait_in_their_order_and_beyond_the_queue_are_refused() {
    let admission = admission(1, 2, LONG);
    let first = admit(&admission, "ann", 1).await.unwrap();
    let mut second = pin!(admit(&admission, "ann", 1));
    let mut third = pin!(admit(&admission, "ann", 1));
    assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
    assert_eq!(admit(&admission, "ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
    drop(first);
    let second = second.await.unwrap();
    assert!(poll!(&mut third).is_pending());
    drop(second);
    third.await.unwrap();
}

#[tokio::test]
async fn who_leaves_the_queue_makes_place() {
    let admission = admission(1, 1, LONG);
    let _first = admit(&admission, "ann", 1).await.unwrap();
    {
        let mut second = pin!(admit(&admission, "ann", 1));
        assert!(poll!(&mut second).is_pending());
        assert_eq!(waiting(&admission), 1);
    }
    assert_eq!(waiting(&admission), 0);
    let mut third = pin!(admit(&admission, "ann", 1));
    assert!(poll!(&mut third).is_pending());
}

#[tokio::test]
async fn waiting_ends_in_time_and_when_the_server_stops() {
    let refusing = admission(1, 2, Duration::ZERO);
    let _first = admit(&refusing, "ann", 1).await.unwrap();
    assert_eq!(admit(&refusing, "ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
    let admission = admission(1, 2, LONG);
    let _first = admit(&admission, "ann", 1).await.unwrap();
    let mut second = pin!(admit(&admission, "ann", 1));
    assert!(poll!(&mut second).is_pending());
    admission.close();
    assert_eq!(second.await.unwrap_err().kind, ErrorKind::Stopping);
    assert_eq!(admit(&admission, "ann", 1).await.unwrap_err().kind, ErrorKind::Stopping);
}

#[tokio::test]
async fn who_gives_up_with_a_slot_gives_it_back() {
    let admission = admission(1, 2, LONG);
    let first = admit(&admission, "ann", 1).await.unwrap();
    {
        let mut second = pin!(admit(&admission, "ann", 1));
        assert!(poll!(&mut second).is_pending());
        drop(first);
    }
    admit(&admission, "ann", 1).await.unwrap();
}

#[tokio::test]
async fn users_get_slots_in_proportion_to_their_weights() {
    let admission = admission(1, 100, LONG);
    let mut slot = Some(admit(&admission, "ann", 1).await.unwrap());
    let mut waiting = Vec::new();
    for (user, weight) in [("ann", 1), ("bob", 3)] {
        for _ in 0..10 {
            let mut query = Box::pin(admit(&admission, user, weight));
            assert!(poll!(&mut query).is_pending());
            waiting.push((user, query));
        }
    }
    let mut order = String::new();
    for _ in 0..8 {
        drop(slot.take());
        for (at, (user, query)) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(admitted) = poll!(query) {
                slot = Some(admitted.unwrap());
                order.push_str(user);
                drop(waiting.remove(at));
                break;
            }
        }
    }
    assert_eq!((order.matches("ann").count(), order.matches("bob").count()), (2, 6), "{order}");
}
