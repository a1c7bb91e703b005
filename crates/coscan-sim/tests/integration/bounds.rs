//! No run reads less than the lower bound: under every policy, in small workloads with pages of all shapes and index
//! selections, and in some like those of real installations.

#[path = "../../examples/out_of_sample/generator/mod.rs"]
mod generator;

use coscan_core::PolicyKind;
use coscan_sim::faults::random_case;
use coscan_sim::{End, Machine, Options, Spec, Workload, bound, run};

use generator::random_file;

/// Runs a workload under every policy. Returns the most bytes that one read, as a multiple of the bound.
fn most_to_bound(name: &str, workload: &Workload, machine: &Machine) -> f64 {
    let compulsory = bound::compulsory_bytes(workload);
    let least = bound::lower_bound_bytes(workload);
    assert!(compulsory <= least, "{name}: {compulsory} {least}");
    let read = PolicyKind::variants().map(|policy| {
        let outcome = run(workload, machine, policy.build(), Options::default()).unwrap();
        // Checkpoints that run only while other queries do may be skipped: they are not in the bound.
        let ended = |end| matches!(end, End::Done | End::Skipped);
        assert!(outcome.queries.iter().all(|query| ended(query.end)), "{name} under {policy}");
        let bytes = outcome.bytes_read;
        assert!(bytes >= least, "{name} under {policy}: {bytes} of at least {least} bytes");
        bytes
    });
    read.max().unwrap() as f64 / least.max(1) as f64
}

#[test]
fn no_small_run_reads_less_than_the_bound() {
    let small = (0..400).map(|seed| {
        let mut case = random_case(seed);
        let queries = case.workload.streams.iter_mut().flat_map(|stream| &mut stream.queries);
        queries.for_each(|query| query.computation = None); // Those that take results read less.
        most_to_bound(&format!("case {seed}"), &case.workload, &case.machine)
    });
    let to_bound: Vec<f64> = small.collect();
    // The bound is near: often all policies read just that.
    let met = to_bound.iter().filter(|&&most| most == 1.0).count();
    assert!(met > 50, "{met} of {}", to_bound.len());
}

#[test]
fn no_run_like_a_real_one_reads_less_than_the_bound() {
    for seed in 0..20 {
        let spec = Spec::parse(&random_file(seed)).unwrap();
        most_to_bound(&spec.title, &spec.cases[0].workload(1), &spec.cases[0].machine);
    }
}
