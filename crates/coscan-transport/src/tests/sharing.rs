//! Servers that are connected read each page once. Those that are not read alone.

use futures::future::join_all;

use super::servers::Servers;
use crate::PeerStatus;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_is_read_once_for_all_servers() {
    let servers = Servers::start(3).await;
    let scans = (0..3).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), servers.table_bytes);
    assert_eq!(servers.bytes_received(), 2 * servers.table_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_costs_no_row_and_takes_part_again_when_it_is_back() {
    let mut servers = Servers::start(3).await;
    let scan = tokio::spawn(servers.scan(0));
    servers.stop(2);
    assert!(scan.await.unwrap());
    assert!(servers.scan(1).await);
    servers.restart(2).await;
    let before = servers.bytes_read();
    assert!(servers.scan(2).await);
    let read_again = servers.bytes_read() - before;
    assert!(read_again < servers.table_bytes, "others have some of it: {read_again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_come_and_go_under_load_cost_no_row() {
    for mut servers in [Servers::start(3).await, Servers::start_circulating(3).await] {
        for round in 0..10 {
            let server = 1 + round % 2;
            let scans: Vec<_> = (0..3).map(|_| tokio::spawn(servers.scan(0))).collect();
            servers.stop(server);
            for scan in scans {
                assert!(scan.await.unwrap());
            }
            let scan = tokio::spawn(servers.scan(0));
            servers.restart(server).await;
            assert!(scan.await.unwrap() && servers.scan(server).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_stay_in_their_zone() {
    let servers = Servers::in_zones(vec!["a", "a", "b"]).await;
    servers.becomes(0, 1, PeerStatus::Sharing).await;
    servers.becomes(1, 0, PeerStatus::Sharing).await;
    servers.becomes(0, 2, PeerStatus::OtherZone).await;
    servers.becomes(2, 1, PeerStatus::OtherZone).await;
    servers.metrics.reset();
    let scans = (0..3).map(|server| servers.scan(server));
    assert!(join_all(scans).await.into_iter().all(|is_right| is_right));
    assert_eq!(servers.bytes_read(), 2 * servers.table_bytes, "once for each zone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_of_servers_that_cannot_answer() {
    let mut servers = Servers::in_zones(vec!["here"; 2]).await;
    servers.all_share().await;
    servers.stop(1);
    servers.restart_out_of_reach(1).await;
    servers.becomes(1, 0, PeerStatus::OneWay).await;
    servers.becomes(0, 1, PeerStatus::Unreachable).await;
    servers.metrics.reset();
    assert!(servers.scan(1).await);
    assert_eq!(servers.bytes_read(), servers.table_bytes, "it reads all itself");
    assert_eq!(servers.bytes_received(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_stalls_in_the_middle_of_a_page_costs_no_row() {
    let (servers, line) = Servers::behind_a_line().await;
    // Some pages come, and a part of one: each is larger than that.
    line.stall_after(servers.table_bytes as i64 / 4);
    assert!(servers.scan(0).await);
    let report = servers.report(0);
    assert!(report.bytes_received > 0 && report.bytes_read_instead > 0, "{report:?}");
}
