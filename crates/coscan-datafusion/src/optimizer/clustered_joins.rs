//! Joins of tables that are clustered on the join key are executed joint chunk by joint chunk.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;

use crate::aggregating::cheaper_aggregates;
use crate::chunkwise::cooperative_join::CooperativeJoin;
#[cfg(doc)]
use crate::chunkwise::cooperative_join::CooperativeJoinExec;
use crate::chunkwise::joint_chunks::Clustering;
use crate::chunkwise::joint_cost::JointCost;
use crate::filtering::cheaper_filters;
use crate::operator::Plan;
use crate::optimizer::cluster_search::{Clustered, Leaf, Search};
use crate::optimizer::rule::{Changed, Rule, change_down};

/// A joint chunk takes at most this part of the pool, since several are read and joined at the same time.
const POOL_DIVISOR: u64 = 4;

/// The maximum ratio of the rows of joint chunks to those of separate scans. Separate scans read fewer rows of a narrow
/// range, since joint chunks are larger.
const ROWS_FACTOR: u64 = 2;

/// At most this part of the rows is searched for the beginnings of joint chunks.
const SEARCH_DIVISOR: u64 = 2;

/// Replaces plans of hash joins on the key of clustered tables by [`CooperativeJoinExec`], with the filters,
/// projections and aggregations by the key between and above them.
///
/// It runs before the rule that repartitions rows for joins.
pub(crate) const CLUSTERED_JOINS: Rule = Rule::new("coscan_clustered_joins", |plan, config| {
    change_down(plan, |plan| joint(plan, config))
});

/// The largest part of a plan, from its root, that can be executed joint chunk by joint chunk, if it has a join for
/// which that pays.
fn joint(plan: &Plan, config: &ConfigOptions) -> Changed {
    let search = Search::new(config);
    let Some(Clustered { leaves, collected, plan: filling, needed }) = search.clustered(plan)?
    else {
        return Ok(None);
    };
    let [first, _, ..] = leaves.as_slice() else { return Ok(None) };
    let (manager, options) = (first.scan.manager().clone(), first.options);
    let tables = leaves.iter().map(Leaf::table).collect();
    let Some(clustering) = Clustering::new(tables, options)? else { return Ok(None) };
    let scans: Vec<_> = leaves.iter().map(|leaf| &leaf.scan).collect();
    let cost = JointCost::new(&clustering, &scans, &needed)?;
    let scanned: u64 = scans.iter().map(|scan| scan.row_count()).sum();
    // The pool may shrink to its floor, and its maximum may have been changed.
    let pool_bytes = manager.report().pool_limit_bytes / POOL_DIVISOR;
    let pays = !cost.is_impossible
        && cost.chunk_bytes_max <= pool_bytes.min(manager.options().pool_bytes_min)
        && cost.rows <= scanned.saturating_mul(ROWS_FACTOR)
        && (clustering.is_known(&manager) || cost.rows_to_search <= cost.rows / SEARCH_DIVISOR);
    if !pays || filling.schema() != plan.schema() {
        return Ok(None);
    }
    let scans = leaves.into_iter().map(|leaf| leaf.scan).collect();
    // The rules that run last do not look into the plan of a chunk.
    let filling = cheaper_filters(&filling)?.unwrap_or(filling);
    let filling = cheaper_aggregates(&filling)?.unwrap_or(filling);
    let join = CooperativeJoin::above(filling, scans, collected, clustering, needed)?;
    Ok(Some(Arc::new(join)))
}
