//! Rules of the physical optimizer, each as a name and a function.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use crate::operator::Plan;

/// A changed plan, or `None` if it stays as it is.
pub(crate) type Changed = Result<Option<Plan>>;

/// A rule of the physical optimizer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Its name in the session.
    pub(crate) name: &'static str,
    /// Changes a whole plan.
    pub(crate) change: fn(&Plan, &ConfigOptions) -> Changed,
    /// Whether the schema of the plan stays the same, which the engine then checks.
    pub(crate) keeps_schema: bool,
}

impl Rule {
    /// A rule that keeps the schema of a plan.
    pub(crate) const fn new(
        name: &'static str,
        change: fn(&Plan, &ConfigOptions) -> Changed,
    ) -> Self {
        Self { name, change, keeps_schema: true }
    }
}

impl PhysicalOptimizerRule for Rule {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        Ok((self.change)(&plan, config)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        self.keeps_schema
    }
}

/// Changes the operators of a plan from the root down: each before the ones below it.
pub(crate) fn change_down(plan: &Plan, change: impl Fn(&Plan) -> Changed) -> Changed {
    let changed = Arc::clone(plan).transform_down(|plan| transformed(plan, &change))?;
    Ok(changed.transformed.then_some(changed.data))
}

/// Changes the operators of a plan from the leaves up: each after the ones below it.
pub(crate) fn change_up(plan: &Plan, change: impl Fn(&Plan) -> Changed) -> Changed {
    let changed = Arc::clone(plan).transform_up(|plan| transformed(plan, &change))?;
    Ok(changed.transformed.then_some(changed.data))
}

fn transformed(plan: Plan, change: impl Fn(&Plan) -> Changed) -> Result<Transformed<Plan>> {
    Ok(change(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
}
