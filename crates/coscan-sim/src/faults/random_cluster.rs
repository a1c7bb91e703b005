//! Small random workloads on a few machines, some of which crash, start and are cut off.

use coscan_core::{PolicyKind, Time};
use coscan_ring::{Choosing, Config, Sharing};

use super::random_case::{RandomCase, SPACE_TIMEOUT_NS, case_at_rest};
use crate::cluster::{Cluster, ClusterOutcome, Incident, Network, Racks, run_cluster};
use crate::random::Random;
use crate::simulation::SharedFiles;
use crate::violation::Violation;

/// The longest wait, as a multiple of the times that a machine may wait for its own pool, for its store and for others.
const WAIT_MAX: u64 = 12;

/// A workload, its machines and their faults.
#[derive(Clone, Debug)]
pub struct RandomCluster {
    /// The workload, and the faults of each machine.
    pub case: RandomCase,
    /// The machines.
    pub cluster: Cluster,
}

impl RandomCluster {
    /// Runs it.
    ///
    /// # Errors
    /// If a manager breaks a rule, an assertion of its own among them.
    pub fn run(&self, policy: PolicyKind) -> Result<ClusterOutcome, Box<Violation>> {
        let RandomCase { workload, options, .. } = &self.case;
        self.case.catch_panic(policy, || run_cluster(workload, &self.cluster, policy, *options))
    }

    /// A smaller cluster that breaks a rule. Incidents, streams, queries and kinds of faults are left out one by one as
    /// long as a rule is still broken.
    #[must_use]
    pub fn shrink(mut self, policy: PolicyKind) -> Self {
        while let Some(smaller) =
            self.smaller().into_iter().find(|cluster| cluster.run(policy).is_err())
        {
            self = smaller;
        }
        self
    }

    fn smaller(&self) -> Vec<Self> {
        let without_incident = (0..self.cluster.incidents.len()).map(|incident| {
            let mut smaller = self.clone();
            smaller.cluster.incidents.remove(incident);
            smaller
        });
        let cases = self.case.smaller().into_iter();
        without_incident.chain(cases.map(|case| Self { case, ..self.clone() })).collect()
    }
}

/// The rule that the cluster of a seed breaks under a policy, a different one for each seed, and the smallest one that still
/// breaks one. Half of the seeds are run under `relevance`.
#[must_use]
pub fn broken_cluster(seed: u64) -> Option<String> {
    let policies: Vec<_> = PolicyKind::variants().collect();
    let policy = match seed % 2 {
        0 => PolicyKind::Relevance,
        _ => policies[(seed / 2 % policies.len() as u64) as usize],
    };
    let cluster = random_cluster(seed);
    let violation = cluster.run(policy).err()?;
    let small = cluster.shrink(policy);
    let still = small.run(policy).err()?;
    Some(format!("cluster {seed} under {policy}: {violation}\nsmallest: {still}\n{small:#?}"))
}

/// The cluster of a seed: the workload and faults of [`super::random_case`], without changes of
/// tables, on one to five machines, with a fast or slow network and
/// up to four incidents.
#[must_use]
pub fn random_cluster(seed: u64) -> RandomCluster {
    let mut case = case_at_rest(seed);
    let mut random = Random::new(!seed);
    let nodes = random.count(1, 5);
    let queued_ns = random.between(1, SPACE_TIMEOUT_NS / 5);
    let sharings = [Sharing::Off, Sharing::Reads, Sharing::Needs, Sharing::All, Sharing::All];
    let silence_ns = queued_ns * random.between(6, 10);
    let config = Config {
        sharing: *random.choose(&sharings),
        chooses: random.percent(30).then(|| Choosing {
            measured_ns: random.below(SPACE_TIMEOUT_NS / 10),
            measured_bytes: random.between(1, 200),
            others_min_percent: random.between(50, 200),
            lasts_ns: random.below(SPACE_TIMEOUT_NS),
            trial_after_ns: random.below(2 * SPACE_TIMEOUT_NS),
        }),
        transit_bytes_max: *random.choose(&[0, 20, 100, u64::MAX]),
        have_delay_ns: random.below(SPACE_TIMEOUT_NS / 10),
        queued_ns,
        silence_ns,
        patience_ns: silence_ns * random.between(1, 20),
    };
    let network = Network {
        bytes_per_second: random.between(50_000_000, 2_000_000_000),
        latency_ns: random.below(queued_ns),
        racks: random.percent(30).then(|| Racks {
            machines: random.count(1, 3),
            bytes_per_second: random.between(50_000_000, 2_000_000_000),
        }),
    };
    let notice_ns = random.below(SPACE_TIMEOUT_NS);
    let incidents = (0..random.below(5)).map(|_| incident(&mut random, nodes)).collect();
    let Network { latency_ns, .. } = network;
    let waits = SPACE_TIMEOUT_NS + 2 * config.silence_ns + notice_ns + latency_ns;
    let delay_ns = case.options.faults.map_or(0, |faults| faults.rates.within_ns);
    case.options.wait_ns_max = Some(WAIT_MAX * (waits + delay_ns));
    let machine = case.machine.clone();
    let files = SharedFiles {
        first_identity: random.next_u64() >> 1,
        extent_bytes: random.between(1, 100),
        need_chunks_min: random.count(1, 4),
    };
    let cluster = Cluster { nodes, machine, network, config, files, incidents, notice_ns };
    RandomCluster { case, cluster }
}

fn incident(random: &mut Random, nodes: usize) -> (Time, Incident) {
    let machine = random.count(0, nodes - 1);
    let mut some = || (0..nodes).filter(|_| random.percent(50)).collect();
    let (some, other) = (some(), some());
    let incident = match random.below(7) {
        0 => Incident::Crash(machine),
        1 => Incident::Start(machine),
        2 => Incident::Leave(machine),
        3 => Incident::Cut(some),
        4 => Incident::CutOneWay(other),
        5 => Incident::Heal,
        _ => Incident::Slow(machine, u32::try_from(random.between(1, 50)).expect("few")),
    };
    (Time(random.below(2 * SPACE_TIMEOUT_NS)), incident)
}
