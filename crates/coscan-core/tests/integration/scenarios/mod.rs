//! Readable scenarios: the decisions of each policy in small worlds, most of them with pages of 10 bytes that take 10 ns
//! to read.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod attach;
mod elevator;
mod memory;
mod normal;
mod pool;
mod processors;
mod refusals;
mod relevance_deliveries;
mod relevance_loads;
mod relevance_victims;
mod scans;
mod space;

use crate::world::World;
use coscan_core::PolicyKind;
use coscan_core::policy::{Relevance2007, Scores};

fn world(policy: PolicyKind, pool_bytes: u64) -> World {
    World::new(policy.build(), pool_bytes, 1)
}

/// A world under `relevance-2007` with these scores.
fn scored_world(scores: Scores, pool_bytes: u64) -> World {
    World::new(Box::new(Relevance2007::with_scores(scores)), pool_bytes, 1)
}
