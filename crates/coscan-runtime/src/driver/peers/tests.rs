#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use coscan_ring::{Config, NodeId};
use tokio::runtime::Handle;

use crate::driver::tests::table_of_chunks;
use crate::driver::walk::Walk;
use crate::{
    BufferManager, CirculatingMessage, Cluster, ClusterOptions, Network, Options, Outgoing,
    OutgoingFragment, ScanRequest,
};

#[derive(Debug)]
struct Nowhere;

impl Network for Nowhere {
    fn send(&self, _: Outgoing) {}
    fn send_circulating(&self, _: NodeId, _: CirculatingMessage) {}
    fn send_fragment(&self, _: OutgoingFragment) {}
}

/// A manager in a cluster whose messages are lost.
pub(super) fn cluster() -> (BufferManager, Cluster) {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(64 << 20), &Handle::current())
            .unwrap();
    let stores: Vec<url::Url> = vec!["memory:///".parse().unwrap()];
    let options =
        ClusterOptions { stores: stores.into(), ring: Config::default(), circulates: false };
    let cluster = manager.join_cluster(NodeId(0), 0, options, Arc::new(Nowhere)).unwrap();
    (manager, cluster)
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_connects_again_and_again_piles_up_nothing() {
    let (manager, cluster) = cluster();
    // There are so many members that another one owns the file.
    cluster.set_members((0..100).map(NodeId));
    let table = manager.register(table_of_chunks(10).await);
    let request = || ScanRequest::of_columns(&table, vec![0]);
    let [runs, ends] = [(); 2].map(|()| manager.start_scan(&table, request()).unwrap());
    let driver = manager.operator_memory().driver;
    let (runs, ends) = (runs.handle().id(), ends.handle().id());
    for _ in 0..100 {
        cluster.reconnected(NodeId(1));
    }
    driver.call(|state, now| {
        let walks = state.walks.iter().filter(|walk| matches!(walk, Walk::AnnounceAgain));
        assert_eq!(walks.count(), 1);
        for scan in [runs, ends] {
            state.announce_end(scan);
        }
        // This simulates a scan whose needs are being dropped.
        state.scans.get_mut(&ends).unwrap().has_ended = true;
        state.make_all_steps(now);
        let node = &state.peers.as_ref().unwrap().node;
        assert!(node.has_told(u64::from(runs.0)), "what runs is announced again");
        assert!(!node.has_told(u64::from(ends.0)), "what has ended is not");
        state.scans.get_mut(&ends).unwrap().has_ended = false;
    });
}
