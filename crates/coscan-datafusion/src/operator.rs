//! The operators of coscan above others: the part that all of them have in common, as one [`ExecutionPlan`].

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions, StatisticsArgs,
};

/// An operator with all operators below it.
pub(crate) type Plan = Arc<dyn ExecutionPlan>;

/// The part in which operators differ. A copy of it has no state of an execution, except for the rows that consumers of
/// a common subplan share.
pub(crate) trait Operator: Clone + fmt::Debug + Send + Sync + 'static {
    /// Its name in EXPLAIN.
    const NAME: &'static str;
    /// Whether its rows come in the order of its inputs' rows.
    const KEEPS_ORDER: bool = false;
    /// Whether its rows are all rows of its only input. It then has the statistics of the input.
    const KEEPS_ROWS: bool = false;
    /// Whether filters pass through it.
    const PASSES_FILTERS: bool = Self::KEEPS_ROWS;

    /// The properties of its output above these inputs.
    ///
    /// # Errors
    /// If it cannot be above them.
    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>>;

    /// The fields in EXPLAIN, such as `tasks=4`. A plan that is drawn as a tree shows the first one only.
    fn fields(&self, inputs: &[Plan]) -> Vec<String>;

    /// The engine's operator in whose place it is, if there is one. It then has that one's text in EXPLAIN and statistics.
    fn replaced(&self) -> Option<&Plan> {
        None
    }

    /// The distribution that it needs of each input.
    fn distributions(&self, inputs: &[Plan]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution; inputs.len()]
    }

    /// Executes a partition of its output.
    ///
    /// # Errors
    /// If an input cannot be executed.
    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// An operator above others. It does not benefit from more partitions of its inputs.
#[derive(Debug)]
pub(crate) struct OperatorExec<O> {
    pub(crate) operator: O,
    pub(crate) inputs: Vec<Plan>,
    pub(crate) metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl<O: Operator> OperatorExec<O> {
    /// Puts an operator above its inputs.
    ///
    /// # Errors
    /// If it cannot be above them.
    pub(crate) fn above(operator: O, inputs: Vec<Plan>) -> Result<Self> {
        let properties = operator.properties(&inputs)?;
        Ok(Self { operator, inputs, metrics: ExecutionPlanMetricsSet::new(), properties })
    }
}

/// The input of an operator that has one.
pub(crate) fn only_input(inputs: &[Plan]) -> Result<&Plan> {
    match inputs {
        [input] => Ok(input),
        _ => internal_err!("an operator with one input got {}", inputs.len()),
    }
}

impl<O: Operator> DisplayAs for OperatorExec<O> {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(replaced) = self.operator.replaced() {
            return replaced.fmt_as(kind, f);
        }
        let fields = self.operator.fields(&self.inputs);
        match (kind, fields.first()) {
            (DisplayFormatType::TreeRender, None) => Ok(()),
            (DisplayFormatType::TreeRender, Some(first)) => writeln!(f, "{first}"),
            (_, None) => write!(f, "{}", O::NAME),
            (_, Some(_)) => write!(f, "{}: {}", O::NAME, fields.join(", ")),
        }
    }
}

impl<O: Operator> ExecutionPlan for OperatorExec<O> {
    fn name(&self) -> &str {
        O::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(self.operator.distributions(&self.inputs))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![O::KEEPS_ORDER; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, inputs: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self::above(self.operator.clone(), inputs)?))
    }

    fn replace_children(
        self: Arc<Self>,
        inputs: Vec<Plan>,
        options: ReplaceChildrenOptions,
    ) -> Result<Plan> {
        if options.children_properties == ChildrenPropertiesMode::Recompute {
            return Ok(Arc::new(Self::above(self.operator.clone(), inputs)?));
        }
        let (operator, properties) = (self.operator.clone(), Arc::clone(&self.properties));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { operator, inputs, metrics, properties }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Plan> {
        let inputs = self.inputs.clone();
        self.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        if let Some(replaced) = self.operator.replaced() {
            return replaced.child_stats_requests(partition);
        }
        let request = || if O::KEEPS_ROWS { ChildStats::At(partition) } else { ChildStats::Skip };
        self.inputs.iter().map(|_| request()).collect()
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if let Some(replaced) = self.operator.replaced() {
            return replaced.statistics_from_inputs(inputs, arguments);
        }
        Ok(match inputs {
            [input] if O::KEEPS_ROWS => Arc::clone(input),
            _ => Arc::new(Statistics::new_unknown(&self.schema())),
        })
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        match O::PASSES_FILTERS {
            true => FilterDescription::from_children(filters, &self.children()),
            false => Ok(FilterDescription::all_unsupported(&filters, &self.children())),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.partitioning.partition_count();
        if partition >= partitions {
            return internal_err!("partition {partition} of {partitions}");
        }
        O::execute(self, partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
