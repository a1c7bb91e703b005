//! What workers read: each page once in the whole cluster, whoever asks for it.

use std::collections::BTreeMap;
use std::ops::Range;

use coscan_bench::tpch::queries::TEMPLATES;
use futures::future::try_join_all;

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{SCALE, sorted_rows, tpch_session};

/// The ranges of files that all workers have read since the last call. Each has read something.
fn ranges(cluster: &TestCluster) -> BTreeMap<String, Vec<Range<u64>>> {
    let mut ranges: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, worker) in cluster.workers.iter().enumerate() {
        let reads = worker.reads.take_log();
        assert!(!reads.is_empty(), "worker {index} reads");
        for read in reads {
            let range = read.offset..read.offset + read.bytes;
            ranges.entry(read.path.to_string()).or_default().push(range);
        }
    }
    ranges
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_streams_of_a_query_read_each_page_once() {
    for number in [1, 3, 18] {
        let cluster = TestCluster::start(&TestOptions::small(3));
        let session = tpch_session(4, Some(&cluster.coscan)).await;
        // Opens the files on all workers.
        let sql = "SELECT count(l_linestatus), count(o_clerk), count(c_phone) FROM lineitem, orders, customer \
                   WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey";
        cluster.query(&session, sql).await.unwrap();
        ranges(&cluster);
        let template = TEMPLATES.iter().find(|template| template.number == number).unwrap();
        let sql = template.sql(&template.validation_parameters(SCALE));
        let streams = (0..8).map(|_| cluster.query(&session, &sql));
        let answers = try_join_all(streams).await.unwrap();
        let first = sorted_rows(&answers[0]);
        assert!(answers.iter().all(|answer| sorted_rows(answer) == first));
        for (path, mut ranges) in ranges(&cluster) {
            ranges.sort_unstable_by_key(|range| range.start);
            let twice = ranges.windows(2).find(|pair| pair[1].start < pair[0].end);
            assert_eq!(twice, None, "Q{number}: {path}");
        }
    }
}
