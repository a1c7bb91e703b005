//! Fragments: what a query computes of each chunk by itself.

use std::sync::Arc;

use coscan_runtime::core::ChunkIndex;
use coscan_storage::table::ParquetTable;
use datafusion::arrow::datatypes::DataType;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::built_in;
use super::expression::{Expression, ExpressionReader};
use super::groups;
use crate::execution::exec::SharedScanExec;
use crate::filtering::engine_filter;
use crate::operator::Plan;
use crate::optimizer::scan_path::scan_below;

/// The first stage of an aggregation with the filters below it. Equal fragments over equal rows have equal states.
///
/// Its columns are numbered in the order in which they first appear.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fragment {
    /// The names of its columns, so that tables of other columns have fragments of their own.
    columns: Vec<String>,
    conjuncts: Vec<Expression>,
    group_by: Vec<Expression>,
    aggregates: Vec<Aggregate>,
}

/// An aggregate of a fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Aggregate {
    function: &'static str,
    ignores_nulls: bool,
    arguments: Vec<Expression>,
    filter: Option<Expression>,
    returns: DataType,
    state: Vec<DataType>,
}

/// A fragment as a query has it, with all its conjuncts, on the columns of its table.
#[derive(Clone, Debug)]
pub(crate) struct QueryFragment {
    fragment: Fragment,
}

impl QueryFragment {
    /// The fragment of a first stage of an aggregation above a shared scan. `None` if it is not known to have equal states in
    /// every session.
    pub(crate) fn of(aggregate: &AggregateExec) -> Option<Self> {
        let is_plain = *aggregate.mode() == AggregateMode::Partial
            && aggregate.group_expr().is_single()
            && aggregate.limit_options().is_none()
            && aggregate.dynamic_expressions_produced().is_empty()
            && *aggregate.input_order_mode() == InputOrderMode::Linear;
        if !is_plain {
            return None;
        }
        let mut reader = ExpressionReader::new();
        let input = aggregate.input();
        let mut conjuncts = Vec::new();
        read_filters(input, &mut reader, &mut conjuncts)?;
        let mut read = |expr: &Arc<dyn PhysicalExpr>| reader.read(expr, input);
        let group_by = aggregate.group_expr().expr().iter().map(|(expr, _)| read(expr));
        let group_by = group_by.collect::<Option<_>>()?;
        let filters = aggregate.filter_expr().iter();
        let aggregates = aggregate.aggr_expr().iter().zip(filters).map(|(function, filter)| {
            let mut read = |expr: &Arc<dyn PhysicalExpr>| reader.read(expr, input);
            Aggregate::read(function, filter.as_ref(), &mut read)
        });
        let aggregates = aggregates.collect::<Option<_>>()?;
        let columns = scan_below(input)?.table().table().schema().fields().iter();
        let columns = columns.map(|field| field.name().clone()).collect();
        Some(Self { fragment: Fragment { columns, conjuncts, group_by, aggregates } })
    }

    /// Whether its groups may be so few that its states are published, as far as the footer of a chunk tells.
    pub(crate) fn may_have_few_groups(&self, table: &ParquetTable, chunk: ChunkIndex) -> bool {
        groups::may_be_few(table, chunk, &self.fragment.group_by)
    }

    /// The conditions that rows have to meet.
    pub(super) fn conjuncts(&self) -> &[Expression] {
        &self.fragment.conjuncts
    }

    /// The fragment without some of its conjuncts, and the columns of the table that it reads, by their numbers in it.
    pub(super) fn without(&self, is_dropped: impl Fn(usize) -> bool) -> (Fragment, Vec<usize>) {
        let mut fragment = self.fragment.clone();
        let conjuncts = std::mem::take(&mut fragment.conjuncts).into_iter().enumerate();
        let kept = conjuncts.filter(|(index, _)| !is_dropped(*index));
        fragment.conjuncts = kept.map(|(_, conjunct)| conjunct).collect();
        let mut columns = Vec::new();
        let mut number = |column| {
            columns.iter().position(|&other| other == column).unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            })
        };
        fragment.expressions_mut().for_each(|expression| expression.renumber(&mut number));
        fragment.columns =
            columns.iter().map(|&column| self.fragment.columns[column].clone()).collect();
        (fragment, columns)
    }
}

impl Fragment {
    fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expression> {
        let of_aggregates = self.aggregates.iter_mut();
        let of_aggregates = of_aggregates
            .flat_map(|aggregate| aggregate.arguments.iter_mut().chain(&mut aggregate.filter));
        self.conjuncts.iter_mut().chain(&mut self.group_by).chain(of_aggregates)
    }
}

impl Aggregate {
    fn read(
        function: &AggregateFunctionExpr,
        filter: Option<&Arc<dyn PhysicalExpr>>,
        read: &mut impl FnMut(&Arc<dyn PhysicalExpr>) -> Option<Expression>,
    ) -> Option<Self> {
        if function.is_distinct() || function.is_reversed() || !function.order_bys().is_empty() {
            return None;
        }
        let arguments = function.expressions();
        let state = function.state_fields().ok()?;
        Some(Self {
            function: built_in::aggregate(function.fun())?,
            ignores_nulls: function.ignore_nulls(),
            arguments: arguments.iter().map(&mut *read).collect::<Option<_>>()?,
            filter: match filter {
                Some(filter) => Some(read(filter)?),
                None => None,
            },
            returns: function.field().data_type().clone(),
            state: state.iter().map(|field| field.data_type().clone()).collect(),
        })
    }
}

/// Reads the conditions of all filters between a plan and its scan, those of the lowest filter first.
fn read_filters(
    plan: &Plan,
    reader: &mut ExpressionReader,
    conjuncts: &mut Vec<Expression>,
) -> Option<()> {
    if plan.is::<SharedScanExec>() {
        return Some(());
    }
    let input = *plan.children().first()?;
    read_filters(input, reader, conjuncts)?;
    if plan.is::<ProjectionExec>() {
        return Some(());
    }
    let filter = engine_filter(plan).filter(|filter| filter.fetch().is_none())?;
    for conjunct in split_conjunction(filter.predicate()) {
        conjuncts.push(reader.read(conjunct, input)?);
    }
    Some(())
}
