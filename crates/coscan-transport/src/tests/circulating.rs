//! Servers between which pages go round.

use futures::future::join_all;

use super::servers::Servers;
use crate::PeerStatus;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_is_read_once_for_all_servers() {
    let servers = Servers::start_circulating(3).await;
    let scans = (0..3).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), servers.table_bytes);
    assert!(servers.bytes_received() >= 2 * servers.table_bytes);
    let asked = (0..3).map(|server| servers.report(server).requests_made);
    assert_eq!(asked.sum::<u64>(), 0, "nothing is asked for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_shares_nothing_with_one_that_does_not_do_the_same() {
    let servers = Servers::circulating(vec![true, false]).await;
    servers.becomes(0, 1, PeerStatus::OtherStores).await;
    servers.becomes(1, 0, PeerStatus::OtherStores).await;
    servers.metrics.reset();
    let scans = (0..2).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), 2 * servers.table_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_was_started_again_gets_all_fragments() {
    let mut servers = Servers::start_circulating(2).await;
    let scans = (0..2).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    for _ in 0..4 {
        servers.stop(1);
        servers.restart(1).await;
        assert!(servers.scan(1).await);
        assert_eq!(servers.report(1).bytes_read_instead, 0);
    }
}
