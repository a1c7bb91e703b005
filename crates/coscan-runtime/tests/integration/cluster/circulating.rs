//! Servers between which pages go round: right rows for each, one read for all, and nothing lost with one of them.

use std::sync::atomic::Ordering;

use coscan_runtime::Options;
use coscan_runtime::ring::NodeId;

use crate::cluster::servers::{Servers, all_rows};
use crate::cluster::{pool_for_all, reads};

#[tokio::test]
async fn each_page_is_read_once_and_goes_round() {
    for count in [2, 3, 5] {
        let servers = Servers::start_circulating(count as u64, pool_for_all(), reads()).await;
        servers.scan_all(0..count).await;
        assert_eq!(servers.pages_read(), servers.table_bytes);
        let asked: u64 = servers.reports().map(|report| report.requests_made).sum();
        assert_eq!(asked, 0, "nothing is asked for");
        let received: u64 = servers.reports().map(|report| report.bytes_received).sum();
        assert!(received >= (count as u64 - 1) * servers.table_bytes);
        servers.assert_free(0..count).await;
    }
}

#[tokio::test]
async fn little_memory_costs_reads_but_no_row() {
    for pool_bytes in [120_000, 300_000, 1_000_000] {
        // Without transit, all pages are too large to go round.
        for transit_bytes_max in [0, 3_000_000, 32 << 20] {
            let ring = coscan_runtime::ring::Config { transit_bytes_max, ..reads() };
            let options = Options::with_pool_bytes(pool_bytes, 128 << 20);
            let servers = Servers::start_circulating(3, options, ring).await;
            servers.scan_all([0, 1, 2, 0, 1, 2]).await;
            let carried = servers.wires.fragments_carried.load(Ordering::Relaxed);
            assert_eq!(carried > 0, transit_bytes_max > 0);
            servers.assert_free(0..3).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_costs_time_but_no_row() {
    for members_know in [false, true] {
        let servers = Servers::start_circulating(3, pool_for_all(), reads()).await;
        let cut_off = async {
            servers.reports_some(0, |report| report.bytes_received).await;
            servers.cut_off(2);
            if members_know {
                servers.clusters[0].set_members([0, 1].map(NodeId));
                servers.clusters[1].set_members([0, 1].map(NodeId));
            }
        };
        let (is_right, ()) = tokio::join!(servers.scan(0), cut_off);
        assert!(is_right);
        let read_instead = servers.clusters[0].report().bytes_read_instead;
        assert!(members_know || read_instead > 0, "it was gone too late");
        assert!(servers.pages_read() < 2 * servers.table_bytes);
        servers.assert_free(0..2).await;
    }
}

#[tokio::test]
async fn a_table_that_goes_ends_what_its_loads_wait_for() {
    let mut servers = Servers::start_circulating(2, pool_for_all(), reads()).await;
    let own = servers.tables.remove(1);
    let stream = servers.managers[1].scan(&own, &[0, 1, 2], &all_rows()).unwrap();
    let goes = async {
        servers.reports_some(1, |report| report.bytes_received).await;
        drop((own, stream));
    };
    let (is_right, ()) = tokio::join!(servers.scan(0), goes);
    assert!(is_right);
    servers.assert_free(0..2).await;
}

#[tokio::test]
async fn a_server_that_leaves_reads_alone_from_then_on() {
    let servers = Servers::start_circulating(2, pool_for_all(), reads()).await;
    let leaves = async {
        servers.reports_some(0, |report| report.bytes_received).await;
        servers.clusters[0].leave();
    };
    let (is_right, ()) = tokio::join!(servers.scan(0), leaves);
    assert!(is_right);
    servers.assert_free([0]).await;
    let (read, carried) =
        (servers.pages_read(), || servers.wires.fragments_carried.load(Ordering::Relaxed));
    let before = carried();
    assert!(servers.scan(0).await);
    assert_eq!(servers.pages_read() - read, servers.table_bytes);
    assert_eq!(carried(), before);
}
