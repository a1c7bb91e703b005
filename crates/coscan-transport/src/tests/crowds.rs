//! More strangers than a server can listen to.

use std::net::IpAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::servers::Servers;
use super::strangers::{answer, connect, hello, introduced, welcomed};
use crate::strangers::{STRANGERS_MAX, Strangers};

#[cfg(target_os = "linux")] // All of 127.0.0.0/8 is this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_keeps_itself_out_and_nobody_else() {
    let servers = Servers::start(2).await;
    let elsewhere = tokio::net::TcpSocket::new_v4().unwrap();
    elsewhere.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let elsewhere = elsewhere.connect(servers.address(0).parse().unwrap()).await.unwrap();
    let mut crowd = Vec::new();
    for _ in 0..STRANGERS_MAX + 10 {
        crowd.push(TcpStream::connect(servers.address(0)).await.unwrap());
    }
    for oldest in &mut crowd[..10] {
        assert!(answer(oldest).await.is_empty(), "it has made room");
    }
    // One came before all of them from elsewhere, and one comes last.
    let mut elsewhere = introduced(elsewhere, &servers.credentials(0)).await.unwrap();
    let mut last = connect(&servers, &servers.credentials(0)).await.unwrap();
    for stream in [&mut elsewhere, &mut last] {
        stream.write_all(&hello()).await.unwrap();
        welcomed(stream).await;
    }
    assert!(servers.scan(0).await);
}

#[test]
fn the_oldest_from_the_place_with_most_makes_room() {
    let strangers = Strangers::default();
    let enter = |address: &str| strangers.enter(address.parse().unwrap());
    let alone = enter("10.0.0.1");
    // All addresses of a network of IPv6 are one place.
    let mut crowd: Vec<_> =
        (1..STRANGERS_MAX).map(|host| enter(&format!("fd00::{host:x}"))).collect();
    assert!(!crowd[0].sent_away.is_cancelled(), "there is room for all of them");
    let late = enter("10.0.0.2");
    assert!(crowd[0].sent_away.is_cancelled());
    strangers.leave(&crowd.remove(0));
    strangers.leave(&crowd.pop().unwrap());
    let later = enter("10.0.0.3");
    let stay = [alone, late, later].into_iter().chain(crowd);
    assert!(stay.into_iter().all(|stranger| !stranger.sent_away.is_cancelled()));
}

#[test]
fn each_address_is_warned_of_once_until_one_is_welcome_there() {
    let strangers = Strangers::default();
    let [one, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
    assert!(strangers.is_news(one) && strangers.is_news(other));
    assert!(!strangers.is_news(one));
    strangers.welcome(one);
    assert!(strangers.is_news(one) && !strangers.is_news(other));
}
