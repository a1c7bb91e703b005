//! The groups of a partition, and the states of their aggregates.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{
    AggregateExec, aggregate_expressions, evaluate_group_by, evaluate_many,
};

use super::group_values::GroupValues;

/// Whether rows were aggregated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// They were, but there is no memory for what all groups hold now.
    WithoutMemory,
    /// None of them: they are for the engine to aggregate. Nothing more can be aggregated here.
    No,
}

/// The groups so far, and the states of their aggregates.
pub(super) struct Groups {
    values: GroupValues,
    /// The group of each row of a batch.
    indices: Vec<usize>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// The arguments of each accumulator.
    arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    memory: MemoryReservation,
}

impl Groups {
    pub(super) fn new(
        aggregate: &AggregateExec,
        partition: usize,
        context: &TaskContext,
    ) -> Result<Self> {
        let functions = aggregate.aggr_expr();
        let schema = aggregate.schema();
        let keys = schema.fields().iter().take(aggregate.group_expr().num_group_exprs());
        let accumulators = functions.iter().map(|function| function.create_groups_accumulator());
        let consumer = MemoryConsumer::new(format!("PartialAggregate[{partition}]"));
        Ok(Self {
            values: GroupValues::new(keys.map(|key| key.data_type().clone()).collect()),
            indices: Vec::new(),
            accumulators: accumulators.collect::<Result<_>>()?,
            arguments: aggregate_expressions(functions, aggregate.mode(), 0)?,
            memory: consumer.with_can_spill(true).register(context.memory_pool()),
        })
    }

    pub(super) fn aggregate(
        &mut self,
        aggregate: &AggregateExec,
        batch: &RecordBatch,
    ) -> Result<Taken> {
        let keys = evaluate_group_by(aggregate.group_expr(), batch)?;
        let [keys] = keys.as_slice() else { return internal_err!("there is one set of keys") };
        if !self.values.intern(keys, &mut self.indices) {
            return Ok(Taken::No);
        }
        let groups = self.values.len();
        let arguments = evaluate_many(&self.arguments, batch)?;
        let mut bytes = self.values.size() + size_of_val(self.indices.as_slice());
        let filters = aggregate.filter_expr();
        for ((accumulator, arguments), filter) in
            self.accumulators.iter_mut().zip(&arguments).zip(filters)
        {
            let filter = filter.as_ref().map(|filter| filter.evaluate(batch)).transpose()?;
            let filter = filter.map(|filter| filter.into_array(batch.num_rows())).transpose()?;
            let filter = filter.as_ref().map(|filter| filter.as_boolean());
            accumulator.update_batch(arguments, &self.indices, filter, groups)?;
            bytes += accumulator.size();
        }
        Ok(if self.memory.try_resize(bytes).is_ok() { Taken::Yes } else { Taken::WithoutMemory })
    }

    /// The states of all groups, with the memory that they hold. `None` without groups.
    pub(super) fn into_states(
        mut self,
        schema: &SchemaRef,
    ) -> Result<Option<(RecordBatch, MemoryReservation)>> {
        if self.values.len() == 0 {
            return Ok(None);
        }
        let mut columns = self.values.into_arrays()?;
        for accumulator in &mut self.accumulators {
            columns.extend(accumulator.state(EmitTo::All)?);
        }
        let states = RecordBatch::try_new(Arc::clone(schema), columns)?;
        // What it has already is enough, or all that there is.
        _ = self.memory.try_resize(states.get_array_memory_size());
        Ok(Some((states, self.memory)))
    }
}
