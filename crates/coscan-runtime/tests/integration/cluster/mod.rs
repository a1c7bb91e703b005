//! Managers that share what they read: right rows for each, one read for all, and nothing lost when one of them is gone.

mod circulating;
mod servers;

use std::sync::atomic::Ordering;

use crate::common::{ids, in_time};
use coscan_runtime::ring::{Config, NodeId, Sharing};
use coscan_runtime::{BufferManager, Options};
use futures::StreamExt;
use servers::{ROWS, Servers, all_rows};

fn pool_for_all() -> Options {
    Options::with_pool_bytes(64 << 20, 16 << 20)
}

fn reads() -> Config {
    sharing(Sharing::Reads)
}

fn sharing(sharing: Sharing) -> Config {
    Config { sharing, ..Config::default() }
}

const ALL: [Sharing; 3] = [Sharing::Reads, Sharing::Needs, Sharing::All];

#[tokio::test]
async fn each_page_is_read_once_for_all_servers() {
    for level in ALL {
        let servers = Servers::start(3, pool_for_all(), sharing(level)).await;
        servers.scan_all([0, 1, 2]).await;
        assert_eq!(servers.pages_read(), servers.table_bytes, "{level:?}");
        let received: u64 = servers.reports().map(|report| report.bytes_received).sum();
        assert_eq!(received, 2 * servers.table_bytes, "two of three get each page from the third");
        let read: u64 = servers.managers.iter().map(|manager| manager.report().bytes_read).sum();
        assert_eq!(read, servers.table_bytes, "what comes from others is not read");
        servers.assert_free(0..3).await;
    }
}

#[tokio::test]
async fn what_others_will_need_is_kept_until_they_do_not() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::Needs)).await;
    let [asker, owner] = [&servers.managers[0], &servers.managers[1]];
    servers.scan_all([1]).await;
    let stream = asker.scan(&servers.tables[0], &[0], &all_rows()).unwrap();
    // The owner is told, and opens its files for that.
    in_time(async {
        let kept = || {
            owner.evict_unneeded();
            owner.report().pool_held_bytes
        };
        while kept() == servers.table_bytes || !has_interest(owner) {
            servers.scan_all([1]).await;
        }
        let id_bytes = kept();
        assert!(0 < id_bytes && id_bytes < servers.table_bytes / 2, "a column of its own files");
        drop(stream);
        while kept() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_had_left_this_one_out_is_told_again() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::Needs)).await;
    let _stream = servers.managers[0].scan(&servers.tables[0], &[0], &all_rows()).unwrap();
    let told = async |is_told: bool| {
        in_time(async {
            while has_interest(&servers.managers[1]) != is_told {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    told(true).await;
    servers.clusters[1].set_members([NodeId(1)]);
    told(false).await;
    servers.clusters[1].set_members([NodeId(0), NodeId(1)]);
    servers.clusters[0].reconnected(NodeId(1));
    told(true).await;
}

/// Whether a server knows of a scan of another one.
fn has_interest(manager: &BufferManager) -> bool {
    manager.tables().iter().any(|table| table.scans > 0)
}

#[tokio::test]
async fn servers_that_share_nothing_read_all_themselves() {
    let off = Config { sharing: Sharing::Off, ..Config::default() };
    let servers = Servers::start(3, pool_for_all(), off).await;
    servers.scan_all([0, 1, 2]).await;
    assert_eq!(servers.pages_read(), 3 * servers.table_bytes);
}

#[tokio::test]
async fn little_memory_costs_reads_but_no_row() {
    let mut bypassed_in_all = 0;
    for pool_bytes in [120_000, 300_000, 1_000_000] {
        for transit_bytes_max in [0, 100_000, 32 << 20] {
            for level in ALL {
                let ring = Config { transit_bytes_max, ..sharing(level) };
                let options = Options::with_pool_bytes(pool_bytes, 64 << 20);
                let servers = Servers::start(3, options, ring).await;
                servers.scan_all([0, 1, 2, 0, 1, 2]).await;
                servers.assert_free(0..3).await;
                let bypassed: u64 = servers.reports().map(|report| report.bytes_bypassed).sum();
                assert!(transit_bytes_max > 0 || bypassed == 0);
                bypassed_in_all += bypassed;
            }
        }
    }
    assert!(bypassed_in_all > 0, "pools were never too small");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_costs_time_but_no_row() {
    for (members_know, level) in
        [false, true].into_iter().flat_map(|know| ALL.map(|level| (know, level)))
    {
        let servers = Servers::start(3, pool_for_all(), sharing(level)).await;
        *servers.wires.cut_off_when_asked.lock().unwrap() = Some(NodeId(2));
        let cut_off = async {
            while !servers.wires.is_cut_off(NodeId(2)) {
                tokio::task::yield_now().await;
            }
            if members_know {
                servers.clusters[0].set_members([0, 1].map(NodeId));
                servers.clusters[1].set_members([0, 1].map(NodeId));
            }
        };
        let (is_right, ()) = tokio::join!(servers.scan(0), cut_off);
        assert!(is_right);
        assert!(servers.wires.lost.load(Ordering::Relaxed) > 0);
        let healthy = servers.table_bytes..2 * servers.table_bytes;
        assert!(healthy.contains(&servers.pages_read()), "who stands in for it reads");
        servers.assert_free(0..2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_reads_from_the_store_what_it_asked_for() {
    let servers = Servers::start(3, pool_for_all(), reads()).await;
    let cut_off = async {
        servers.has_asked(0).await;
        servers.cut_off(1);
        servers.cut_off(2);
    };
    let (is_right, ()) = tokio::join!(servers.scan(0), cut_off);
    assert!(is_right);
    let instead = servers.clusters[0].report().bytes_read_instead;
    assert!(instead > 0 && instead < servers.table_bytes);
    servers.assert_free([0]).await;
}

#[tokio::test]
async fn a_scan_that_is_dropped_takes_back_what_it_asked_for() {
    for servers in [
        Servers::start(2, pool_for_all(), sharing(Sharing::All)).await,
        Servers::start_circulating(2, pool_for_all(), reads()).await,
    ] {
        let (manager, table) = (&servers.managers[0], &servers.tables[0]);
        for take in 0..6 {
            let stream = manager.scan(table, &[0, 1], &all_rows()).unwrap();
            let some: Vec<_> = in_time(stream.take(take).collect()).await;
            assert!(some.iter().all(Result::is_ok));
        }
        servers.scan_all([0, 1]).await;
        servers.assert_free(0..2).await;
    }
}

#[tokio::test]
async fn a_table_may_go_while_others_read_it() {
    // One is held up before the owner is asked, and one while it answers.
    for held_up in [1, 0] {
        let mut servers = Servers::start(2, pool_for_all(), sharing(Sharing::All)).await;
        let own = servers.tables.remove(1);
        let (manager, table) = (servers.managers[0].clone(), servers.tables[0].clone());
        servers.wires.held_up.send_replace(Some(NodeId(held_up)));
        let scan = tokio::spawn(async move {
            let stream = manager.scan(&table, &[0, 1, 2], &all_rows()).unwrap();
            in_time(ids(stream)).await.unwrap().len() as u64
        });
        servers.has_asked(0).await;
        if held_up == 0 {
            servers.reports_some(1, |report| report.requests_served).await;
        }
        drop(own);
        assert_eq!(servers.clusters[0].report().bytes_received, 0);
        servers.wires.held_up.send_replace(None);
        assert_eq!(scan.await.unwrap(), ROWS);
        assert!(servers.clusters[1].report().requests_served > 0);
        assert!(
            servers.clusters[0].report().bytes_received > 0,
            "the owner still serves its files"
        );
        let read: u64 = servers.managers.iter().map(|manager| manager.report().bytes_read).sum();
        assert_eq!(read, servers.table_bytes, "once for both");
        servers.assert_free(0..2).await;
    }
}

#[tokio::test]
async fn a_server_that_leaves_reads_alone_from_then_on() {
    let servers = Servers::start(2, pool_for_all(), sharing(Sharing::All)).await;
    servers.scan_all([0]).await;
    servers.assert_free([0]).await;
    let before = servers.pages_read();
    servers.managers[0].evict_unneeded();
    servers.clusters[0].leave();
    assert!(servers.scan(0).await);
    assert_eq!(servers.pages_read() - before, servers.table_bytes);
}
