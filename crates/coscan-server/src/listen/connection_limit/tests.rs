#![allow(clippy::unwrap_used)]
use std::net::Ipv4Addr;

use futures::FutureExt;

use super::*;
use crate::users::{Users, Verifier};

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn must_leave(place: &Place) -> bool {
    place.must_leave().now_or_never().is_some()
}

#[test]
fn who_floods_the_server_leaves_places_to_others() {
    let connection_limit = ConnectionLimit::new(2);
    let flood: Vec<_> = (0..400).map(|_| connection_limit.enter(address(1))).collect();
    assert_eq!(connection_limit.connections(), 48);
    assert_eq!(connection_limit.logged_in(), 0);
    assert!(must_leave(&flood[351]) && !must_leave(&flood[352]));
    let other = connection_limit.enter(address(2));
    let more: Vec<_> = (0..200).map(|n| connection_limit.enter(address(3 + n % 30))).collect();
    assert_eq!(connection_limit.connections(), 64);
    assert!(!must_leave(&other), "the address with most of them gives way");
    drop((flood, more));
    assert_eq!(connection_limit.connections(), 1);
    drop(other);
    assert!(connection_limit.emptied().now_or_never().is_some());
}

fn ann_and_root() -> [Arc<User>; 2] {
    let verifier = Verifier::of_password("x").unwrap();
    let entry = |name, admin| format!("[users.{name}]\nverifier = '{verifier}'\nadmin = {admin}\n");
    let users = Users::parse(&(entry("ann", false) + &entry("root", true))).unwrap();
    ["ann", "root"].map(|name| users.find(name).unwrap())
}

#[test]
fn nobody_takes_all_connections() {
    let [ann, root] = ann_and_root();
    let connection_limit = ConnectionLimit::new(4);
    let admit = |user| {
        let place = connection_limit.enter(address(1));
        place.admit(user).map(|()| place)
    };
    let mut places: Vec<_> = (0..3).map(|_| admit(&ann).unwrap()).collect();
    assert_eq!(admit(&ann).unwrap_err(), TooManyConnections::OfUser);
    places.remove(0);
    places.push(admit(&ann).unwrap());
    places.push(admit(&root).unwrap());
    assert_eq!(admit(&ann).unwrap_err(), TooManyConnections::OfAll);
    drop(places);
    let anyone = Users::anyone().find("ann").unwrap();
    let places: Vec<_> = (0..4).map(|_| admit(&anyone).unwrap()).collect();
    assert_eq!(
        (connection_limit.connections(), places.len()),
        (4, 4),
        "everyone may take any name"
    );
}

#[test]
fn users_are_counted_once_and_administrators_find_a_place() {
    let [ann, root] = ann_and_root();
    let connection_limit = ConnectionLimit::new(1);
    let [first, second, third] = [1, 1, 1].map(|last| connection_limit.enter(address(last)));
    first.admit(&ann).unwrap();
    first.admit(&ann).unwrap();
    assert_eq!(second.admit(&ann), Err(TooManyConnections::OfAll));
    second.admit(&root).unwrap();
    drop(first);
    third.admit(&ann).unwrap();
    let flood: Vec<_> = (0..100).map(|_| connection_limit.enter(address(1))).collect();
    assert!(!must_leave(&second) && !must_leave(&third), "they are no strangers");
    assert_eq!(connection_limit.connections(), 50);
    drop((flood, second, third));
    assert_eq!(connection_limit.connections(), 0);
}
