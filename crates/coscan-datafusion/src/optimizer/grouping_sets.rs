//! ROLLUP, CUBE and GROUPING SETS do not rely on the order of their input.
//!
//! DataFusion 55.2 returns groups as soon as an ordered input has passed them, including groups of other sets that are
//! not complete. Some groups are then returned twice, each with a part of the rows
//! ([how](https://github.com/apache/datafusion/issues/24421)). Later versions do not use the order, and do not need
//! this rule.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    replace_children_if_necessary,
};

type Plan = Arc<dyn ExecutionPlan>;

/// Puts [`UnorderedExec`] below aggregations with several grouping sets. It must run before all rules that sort.
#[derive(Debug)]
pub(crate) struct GroupingSets;

impl GroupingSets {
    pub(crate) const NAME: &'static str = "coscan_grouping_sets";
}

impl PhysicalOptimizerRule for GroupingSets {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let with_unordered_input = |plan: Plan| {
            let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(plan));
            };
            let input = aggregate.input();
            // The groups of a first step have no order if its input has none.
            if aggregate.group_expr().groups().len() < 2
                || input.is::<AggregateExec>()
                || input.is::<UnorderedExec>()
            {
                return Ok(Transformed::no(plan));
            }
            let input = Arc::new(UnorderedExec::new(Arc::clone(input)));
            replace_children_if_necessary(plan, vec![input]).map(Transformed::yes)
        };
        plan.transform_up(with_unordered_input).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes rows on without declaring their order.
#[derive(Debug)]
struct UnorderedExec {
    input: Plan,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    fn new(input: Plan) -> Self {
        let unordered = EquivalenceProperties::new(input.schema());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(unordered);
        Self { input, properties: Arc::new(properties) }
    }

    /// Creates the operator above another input.
    fn above(mut children: Vec<Plan>) -> Result<Plan> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input))),
            _ => internal_err!("UnorderedExec has one child"),
        }
    }
}

impl DisplayAs for UnorderedExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match kind {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "UnorderedExec"),
        }
    }
}

impl ExecutionPlan for UnorderedExec {
    fn name(&self) -> &str {
        "UnorderedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Plan>,
        _: ReplaceChildrenOptions,
    ) -> Result<Plan> {
        Self::above(children)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Self::above(children)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("UnorderedExec has one child"),
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
