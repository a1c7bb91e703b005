//! Plans statements so that workers can execute all parts of them.

use std::sync::Arc;

use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use crate::aggregating::CHEAPER_AGGREGATES;
use crate::filtering::CHEAPER_FILTERS;
use crate::optimizer::clustered_joins::CLUSTERED_JOINS;
use crate::optimizer::common_subplans::COMMON_SUBPLANS;
use crate::optimizer::dynamic_filters::DYNAMIC_FILTERS;
use crate::optimizer::in_order_tasks::IN_ORDER_TASKS;
use crate::optimizer::needed_order::NEEDED_ORDER;
use crate::optimizer::ordered_aggregates::ORDERED_AGGREGATES;
use crate::optimizer::remove_repartition::REMOVE_REPARTITION;
use crate::optimizer::rule::Rule;
use crate::optimizer::shared_aggregates::SHARED_AGGREGATES;

/// The rules whose operators start plans anew for each chunk, change the number of tasks, or have no form in which they
/// can be sent.
const NOT_FOR_WORKERS: [Rule; 10] = [
    CHEAPER_AGGREGATES,
    CHEAPER_FILTERS,
    CLUSTERED_JOINS,
    COMMON_SUBPLANS,
    DYNAMIC_FILTERS,
    IN_ORDER_TASKS,
    NEEDED_ORDER,
    ORDERED_AGGREGATES,
    REMOVE_REPARTITION,
    SHARED_AGGREGATES,
];

/// Marks a session that plans for workers.
struct ForWorkers;

/// A session like this one, whose plans consist of operators that can be sent to workers: scans are shared scans of the
/// table itself in any order, and nothing is executed chunk by chunk.
#[must_use]
pub fn for_workers(state: SessionState) -> SessionState {
    let mut rules = state.physical_optimizers().to_vec();
    rules.retain(|rule| NOT_FOR_WORKERS.iter().all(|other| other.name != rule.name()));
    let creates_defaults = state.config().options().catalog.create_default_catalog_and_schema;
    let id = state.session_id().to_owned();
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_session_id(id)
        .with_physical_optimizer_rules(rules)
        .build();
    let config = state.config_mut();
    config.set_extension(Arc::new(ForWorkers));
    config.options_mut().catalog.create_default_catalog_and_schema = creates_defaults;
    state
}

/// Whether a session plans for workers.
pub(crate) fn is_for_workers(config: &SessionConfig) -> bool {
    config.get_extension::<ForWorkers>().is_some()
}
