//! Reports of servers on themselves and on each other.

use std::time::Duration;

use coscan_runtime::ExtentReport;

use super::servers::{FILES, ROWS_OF_FILE, Server, Servers};
use crate::{PeerState, PeerStatus, node_id};

fn state_of(server: &Server, address: &str) -> PeerState {
    let mut nodes = server.transport.nodes().into_iter();
    nodes.find(|node| node.address == address).unwrap()
}

fn extents(server: &Server) -> Vec<ExtentReport> {
    server.transport.cluster().shared_files().flat_map(|file| file.extents).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_knows_who_owns_and_sends_what() {
    let servers = Servers::start(2).await;
    assert!(servers.scan(0).await);
    let (here, there) = (servers.running(0), servers.running(1));
    let (own, other) = (state_of(here, servers.address(0)), state_of(here, servers.address(1)));
    assert_eq!((own.status, own.zone.as_deref()), (PeerStatus::ThisServer, Some("here")));
    assert_eq!(own.share.extents + other.share.extents, FILES as u64);
    assert_eq!(own.share.bytes + other.share.bytes, servers.table_bytes);
    assert!(own.share.extents > 0 && other.share.extents > 0);
    assert_eq!((other.bytes_received, other.bytes_sent), (other.share.bytes, 0));
    let back = state_of(there, servers.address(0));
    assert_eq!((back.bytes_received, back.share), (0, own.share));
    // It is counted just after it is sent.
    while state_of(there, servers.address(0)).bytes_sent < other.share.bytes {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(state_of(there, servers.address(0)).bytes_sent, other.share.bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_reports_extents_as_they_are() {
    let servers = Servers::start(2).await;
    let [here, there] = [0, 1].map(|server| servers.running(server));
    let [owner_here, owner_there] = [0, 1].map(|server| node_id(servers.address(server)));
    let files: Vec<_> = here.transport.cluster().shared_files().collect();
    assert_eq!(files.len(), FILES);
    let mut urls: Vec<_> = files.iter().map(|file| &*file.url).collect();
    urls.sort_unstable();
    assert_eq!(urls[1], "memory:///shared/01.parquet");
    for extent in extents(here) {
        let runner_up = if extent.owner == owner_here { owner_there } else { owner_here };
        assert_eq!(extent.runner_up, Some(runner_up));
        // Two columns of two chunks.
        assert_eq!((&extent.rows, extent.pages), (&(0..ROWS_OF_FILE as u64), 4));
        assert_eq!((extent.pages_in_pool, extent.pages_at_owner, extent.wanted_by), (0, 0, 0));
    }
    assert!(servers.scan(1).await);
    for extent in extents(there) {
        assert_eq!((extent.pages_in_pool, extent.bytes_in_pool), (4, extent.bytes), "all fits");
        let at_owner = if extent.owner == owner_there { 4 } else { 0 };
        assert!(extent.pages_at_owner >= at_owner && extent.wanted_by == 0, "{extent:?}");
    }
    for extent in extents(here).iter().filter(|extent| extent.owner == owner_here) {
        assert_eq!(extent.pages_at_owner, extent.pages_in_pool, "{extent:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_told_what_scans_elsewhere_want_and_those_what_it_has() {
    let servers = Servers::start(2).await;
    assert!(servers.scan(1).await);
    let [here, there] = [0, 1].map(|server| servers.running(server));
    let owner = node_id(servers.address(1));
    // A scan that takes its rows slowly.
    let rows = 0..ROWS_OF_FILE as u64 * FILES as u64;
    let scan = here.manager.scan(&here.table, &[0, 1], std::slice::from_ref(&rows)).unwrap();
    let is_wanted = |extent: &ExtentReport| extent.owner == owner && extent.wanted_by == 1;
    while !extents(there).iter().any(is_wanted) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let is_known = |extent: &ExtentReport| extent.owner == owner && extent.pages_at_owner > 0;
    while !extents(here).iter().any(is_known) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(scan);
    while extents(there).iter().any(|extent| extent.wanted_by > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
