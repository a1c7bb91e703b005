//! Standalone latencies: the base of normalized latencies [CS07 §5.2].

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, GroupIndex, Order, PageIndex, PolicyKind, Time};

use crate::machine::Machine;
use crate::simulation::{Options, run};
use crate::violation::Violation;
use crate::workload::{Cost, Query, Stream, Workload};

/// The properties that determine the standalone latency of a query.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Shape {
    table: usize,
    groups: Vec<GroupIndex>,
    version: Option<usize>,
    /// The chunks that it replaces.
    replaced: Vec<ChunkIndex>,
    /// The starts and ends of its row ranges.
    rows: Vec<(u64, u64)>,
    selected: Option<Vec<PageIndex>>,
    in_order: bool,
    workers: usize,
    cost: Cost,
}

impl Shape {
    fn of(query: &Query) -> Self {
        Self {
            table: query.table,
            groups: query.groups.clone(),
            version: query.version,
            replaced: query.change.iter().flat_map(|change| change.replaced.clone()).collect(),
            rows: query.rows.iter().map(|rows| (rows.start, rows.end)).collect(),
            selected: query.selected.clone(),
            in_order: query.order == Order::InOrder,
            workers: query.workers,
            cost: query.cost,
        }
    }
}

/// Nanoseconds that each query takes when it runs alone on this machine, with an empty pool of the workload's size,
/// under the policy `normal`, on tables that do not change after time 0, in the order of [`crate::Outcome::queries`]; 0 for a query that the pool is too small
/// for.
///
/// # Errors
/// If the manager breaks one of its rules.
///
/// # Panics
/// As [`run`].
pub fn standalone(workload: &Workload, machine: &Machine) -> Result<Vec<u64>, Box<Violation>> {
    let mut known = BTreeMap::new();
    let mut latencies = Vec::new();
    for query in workload.queries() {
        let shape = Shape::of(query);
        let latency_ns = match known.get(&shape) {
            Some(&latency_ns) => latency_ns,
            None => latency_alone_ns(workload, machine, query)?,
        };
        known.insert(shape, latency_ns);
        latencies.push(latency_ns);
    }
    Ok(latencies)
}

fn latency_alone_ns(
    workload: &Workload,
    machine: &Machine,
    query: &Query,
) -> Result<u64, Box<Violation>> {
    let query = Query { think_ns: 0, cancel_after_ns: None, ..query.clone() };
    let at_start = workload.table_changes.iter().filter(|(at, _)| *at == Time(0));
    let alone = Workload {
        tables: workload.tables.clone(),
        streams: vec![Stream { queries: vec![query], ..Stream::default() }],
        pool_bytes: workload.pool_bytes,
        pool_changes: Vec::new(),
        table_changes: at_start.cloned().collect(),
    };
    let outcome = run(&alone, machine, PolicyKind::Normal.build(), Options::default())?;
    Ok(outcome.total_ns)
}
