//! A rule of the analyzer that rewrites changes of managed tables into queries for the rows to be changed.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, not_impl_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Expr, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
    WriteOp, cast,
};
use datafusion::optimizer::AnalyzerRule;

use crate::dml::merge::plan_merge;
use crate::dml::operation::Operation;
use crate::dml::row_numbers::{number_of, scan_with_row_numbers};
use crate::dml::target::ChangeTarget;
use crate::managed::table::ManagedTable;

/// Rewrites changes of managed tables. It must run before all other rules, since these assume that a statement keeps its
/// form.
#[derive(Debug)]
pub(crate) struct RewriteDml;

impl RewriteDml {
    pub(crate) const NAME: &'static str = "coscan_rewrite_dml";
}

impl AnalyzerRule for RewriteDml {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_down(|plan| match plan {
            LogicalPlan::Dml(statement) => rewrite(statement),
            plan => Ok(Transformed::no(plan)),
        });
        Ok(rewritten?.data)
    }
}

fn rewrite(statement: DmlStatement) -> Result<Transformed<LogicalPlan>> {
    let target = source_as_provider(&statement.target)?;
    let Some(table) = target.downcast_ref::<ManagedTable>() else {
        return Ok(Transformed::no(LogicalPlan::Dml(statement)));
    };
    let name = statement.table_name.clone();
    let (input, operation) = match &statement.op {
        WriteOp::Insert(operation) => {
            (statement.input.as_ref().clone(), Operation::of_insert(*operation)?)
        }
        WriteOp::Delete => {
            let rows = with_row_numbers(&statement.input, table)?;
            (rows.project([number_of(&rows)])?, Operation::Delete)
        }
        WriteOp::Truncate => {
            let rows = scan_with_row_numbers(name.clone(), table)?;
            (rows.project([number_of(&rows)])?, Operation::Delete)
        }
        WriteOp::Update => update(&statement.input, table)?,
        WriteOp::MergeInto(merge) => plan_merge(&statement, merge, table)?,
        operation => return not_impl_err!("{operation} of a managed table"),
    };
    let target = ChangeTarget::new(table.clone(), operation);
    let rewritten = DmlStatement::new(
        name,
        provider_as_source(Arc::new(target)),
        WriteOp::Insert(InsertOp::Append),
        Arc::new(input),
    );
    Ok(Transformed::yes(LogicalPlan::Dml(rewritten)))
}

/// The rows to be changed with the new values of the columns that are assigned.
fn update(input: &LogicalPlan, table: &ManagedTable) -> Result<(LogicalPlan, Operation)> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = input else {
        return not_impl_err!("UPDATE … FROM of a managed table: use MERGE");
    };
    let rows = with_row_numbers(input, table)?;
    let fields = table.columns().fields().iter();
    let assigned = fields.zip(expr).enumerate().filter(|(_, (field, value))| {
        let value = (*value).clone().unalias();
        !matches!(value, Expr::Column(Column { name, .. }) if name == *field.name())
    });
    let (columns, values): (Vec<_>, Vec<_>) =
        assigned.map(|(column, (field, value))| (column, typed(value, field))).unzip();
    let numbered = std::iter::once(number_of(&rows)).chain(values);
    let input = rows.project(numbered)?;
    Ok((input, Operation::Update { columns }))
}

/// A value as one of the type of a column. The planner has cast it already, but rules that run later may change its type:
/// that of a CASE, for example.
fn typed(value: &Expr, field: &FieldRef) -> Expr {
    cast(value.clone().unalias(), field.data_type().clone()).alias(field.name())
}

/// The plan of the rows to be changed, read with their numbers, which are the last column.
fn with_row_numbers(plan: &LogicalPlan, table: &ManagedTable) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => scan_with_row_numbers(scan.table_name.clone(), table)?,
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let input = Arc::new(with_row_numbers(input, table)?);
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input, alias.clone())?)
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let input = Arc::new(with_row_numbers(input, table)?);
            LogicalPlan::Filter(Filter::try_new(predicate.clone(), input)?)
        }
        LogicalPlan::Limit(limit) => {
            let input = Arc::new(with_row_numbers(&limit.input, table)?);
            LogicalPlan::Limit(Limit { input, ..limit.clone() })
        }
        _ => {
            return not_impl_err!("UPDATE … FROM and DELETE … USING of a managed table: use MERGE");
        }
    })
}

/// Projections of plans.
trait Project {
    fn project(&self, values: impl IntoIterator<Item = Expr>) -> Result<LogicalPlan>;
}

impl Project for LogicalPlan {
    fn project(&self, values: impl IntoIterator<Item = Expr>) -> Result<LogicalPlan> {
        LogicalPlanBuilder::from(self.clone()).project(values)?.build()
    }
}
