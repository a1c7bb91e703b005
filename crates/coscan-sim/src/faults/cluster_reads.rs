//! The number of times that clusters read a page when machines crash, start and are cut off.

use coscan_core::{Index, PageIndex, PolicyKind};
use coscan_ring::Sharing;

use super::random_cluster::{RandomCluster, random_cluster};
use crate::cluster::Incident;

/// A window is `WINDOWS / OF_SILENCES` times the silence after which an owner counts as gone: ten seconds for 1.5 s.
const WINDOWS: u64 = 20;
const OF_SILENCES: u64 = 3;

/// The most reads of one page within ten seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterReads {
    /// The reads without incidents, at least one.
    pub healthy: usize,
    /// The reads with incidents.
    pub reads: usize,
    /// The most reads that there may be. Each incident may cost the reads of a healthy cluster once more, since the
    /// pages of a machine are gone or out of reach. Some may do so twice: a start, because the machine may have crashed
    /// for it; one-way cuts and slow links, because the machine is taken for alive, so the runner-up reads for those
    /// that it does not answer in time, and others read for themselves.
    pub reads_max: usize,
}

/// Counts the reads of a page by the cluster of a seed. Its pools hold all tables, since evictions differ from run to
/// run, and no read fails. With one crash or cut this is the rule that a page is read at most twice as often as
/// without.
///
/// # Errors
/// The rule that it breaks.
pub fn cluster_reads(seed: u64) -> Result<ClusterReads, String> {
    let mut cluster = random_cluster(seed);
    cluster.case.options.faults = None;
    cluster.cluster.config.sharing = Sharing::All;
    let workload = &mut cluster.case.workload;
    let pages = workload.tables.iter().flat_map(|table| {
        let pages = (0..table.layout.page_count()).map(PageIndex::from_usize);
        pages.map(|page| table.layout.bytes_of(page))
    });
    // There is space for pages that are being read, too.
    workload.pool_bytes = 10 * pages.sum::<u64>();
    let within_ns = cluster.cluster.config.silence_ns * WINDOWS / OF_SILENCES;
    let reads_of = |cluster: &RandomCluster| {
        let outcome = cluster.run(PolicyKind::Relevance);
        let outcome = outcome.map_err(|broken| format!("cluster {seed}: {broken}"))?;
        Ok::<_, String>(outcome.page_reads_max(within_ns))
    };
    let reads = reads_of(&cluster)?;
    let incidents = std::mem::take(&mut cluster.cluster.incidents);
    let healthy = reads_of(&cluster)?.max(1);
    let costs = incidents.iter().map(|(_, incident)| match incident {
        Incident::Start(_) | Incident::CutOneWay(_) | Incident::Slow(..) => 2,
        _ => 1,
    });
    let reads_max = healthy * (1 + costs.sum::<usize>());
    Ok(ClusterReads { healthy, reads, reads_max })
}

/// The violation of the bound on reads of a page by the cluster of a seed, if there is one.
#[must_use]
pub fn read_too_often(seed: u64) -> Option<String> {
    match cluster_reads(seed) {
        Ok(ClusterReads { reads, reads_max, .. }) if reads <= reads_max => None,
        Ok(reads) => Some(format!("cluster {seed} reads a page too often: {reads:?}")),
        Err(broken) => Some(broken),
    }
}
