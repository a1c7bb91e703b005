//! `MERGE` as a join of its source and its target.

use std::sync::Arc;

use datafusion::common::{JoinType, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::dml::{
    MergeIntoAction, MergeIntoClause, MergeIntoClauseKind, MergeIntoOp,
};
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, cast, ident, lit, when,
};

use crate::dml::operation::{MergeAction, Operation};
use crate::dml::row_numbers::{number_of, scan_with_row_numbers};
use crate::managed::table::ManagedTable;

/// The rows to be changed and inserted, as [`Operation::Merge`] describes them.
pub(crate) fn plan_merge(
    statement: &DmlStatement,
    merge: &MergeIntoOp,
    table: &ManagedTable,
) -> Result<(LogicalPlan, Operation)> {
    let target = scan_with_row_numbers(statement.table_name.clone(), table)?;
    let number = number_of(&target);
    let is_free = |name: &str| {
        let taken = statement.input.schema().columns().into_iter().chain(target.schema().columns());
        taken.into_iter().all(|column| column.name != name)
    };
    let (marker, action) = (unused("is source", is_free), unused("action", is_free));
    let joined = joined(statement, merge, target.clone(), &marker)?;
    let clauses = merge.clauses.iter().enumerate();
    let conditions = clauses.map(|(position, clause)| {
        let condition = condition(clause, &number, &ident(&marker));
        Ok((condition, lit(i32::try_from(position).unwrap_or(i32::MAX))))
    });
    let chosen = case(conditions.collect::<Result<Vec<_>>>()?)?;
    let all = joined.schema().columns().into_iter().map(Expr::Column);
    let with_action: Vec<_> = all.chain([chosen.alias(&action)]).collect();
    let (actions, values) = actions(merge, table)?;
    let (columns, values): (Vec<_>, Vec<_>) = values
        .into_iter()
        .map(|(column, of_clauses)| {
            let field = table.columns().field(column);
            let cases = of_clauses.into_iter().map(|(clause, value)| {
                (ident(&action).eq(lit(clause)), cast(value, field.data_type().clone()))
            });
            Ok((column, case(cases.collect())?.alias(field.name())))
        })
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let changes = [number, ident(&action)].into_iter().chain(values);
    let plan = LogicalPlanBuilder::from(joined)
        .project(with_action)?
        .filter(ident(&action).is_not_null())?
        .project(changes)?
        .build()?;
    Ok((plan, Operation::Merge { actions, columns }))
}

/// A name that no column has.
fn unused(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_owned();
    while !is_free(&name) {
        name.push('\'');
    }
    name
}

/// The source joined with the target. Rows of the source have a column that is not NULL.
fn joined(
    statement: &DmlStatement,
    merge: &MergeIntoOp,
    target: LogicalPlan,
    marker: &str,
) -> Result<LogicalPlan> {
    let has = |kind: MergeIntoClauseKind| {
        merge.clauses.iter().any(|clause| clause.kind.canonical() == kind)
    };
    let join_type = match (
        has(MergeIntoClauseKind::NotMatchedByTarget),
        has(MergeIntoClauseKind::NotMatchedBySource),
    ) {
        (false, false) => JoinType::Inner,
        (true, false) => JoinType::Left,
        (false, true) => JoinType::Right,
        (true, true) => JoinType::Full,
    };
    let source = statement.input.schema().columns().into_iter().map(Expr::Column);
    let marked: Vec<_> = source.chain([lit(true).alias(marker)]).collect();
    LogicalPlanBuilder::from(Arc::clone(&statement.input))
        .project(marked)?
        .join_on(target, join_type, [merge.on.clone()])?
        .build()
}

/// Whether a clause applies to a row of the join, if none before it does.
fn condition(clause: &MergeIntoClause, number: &Expr, marker: &Expr) -> Expr {
    let kind = match clause.kind.canonical() {
        MergeIntoClauseKind::Matched => {
            number.clone().is_not_null().and(marker.clone().is_not_null())
        }
        MergeIntoClauseKind::NotMatchedBySource => marker.clone().is_null(),
        _ => number.clone().is_null(),
    };
    match &clause.predicate {
        Some(predicate) => kind.and(predicate.clone()),
        None => kind,
    }
}

/// The value of the first condition that is true, or NULL.
fn case(cases: Vec<(Expr, Expr)>) -> Result<Expr> {
    let mut cases = cases.into_iter();
    let Some((condition, value)) = cases.next() else {
        return Ok(lit(ScalarValue::Null));
    };
    let mut builder = when(condition, value);
    cases.for_each(|(condition, value)| {
        builder.when(condition, value);
    });
    builder.end()
}

/// The values of a column by clause.
type ColumnValues = (usize, Vec<(i32, Expr)>);

/// The actions of the clauses, and the values that they give to columns.
fn actions(
    merge: &MergeIntoOp,
    table: &ManagedTable,
) -> Result<(Vec<MergeAction>, Vec<ColumnValues>)> {
    let mut values: Vec<ColumnValues> =
        (0..table.columns().fields().len()).map(|column| (column, Vec::new())).collect();
    let mut actions = Vec::with_capacity(merge.clauses.len());
    for (clause, number) in merge.clauses.iter().zip(0..) {
        let mut assign = |assigned: Vec<(usize, Expr)>| {
            let columns = assigned.iter().map(|(column, _)| *column).collect::<Vec<_>>();
            assigned.into_iter().for_each(|(column, value)| values[column].1.push((number, value)));
            columns
        };
        actions.push(match &clause.action {
            MergeIntoAction::Delete => MergeAction::Delete,
            MergeIntoAction::Update(assignments) => {
                let assigned = assignments
                    .iter()
                    .map(|(name, value)| Ok((table.columns().index_of(name)?, value.clone())));
                MergeAction::Update(assign(assigned.collect::<Result<_>>()?))
            }
            MergeIntoAction::Insert { columns, values } => {
                assign(inserted(columns, values, table)?);
                MergeAction::Insert
            }
        });
    }
    let inserts = actions.contains(&MergeAction::Insert);
    values.retain(|(_, of_clauses)| inserts || !of_clauses.is_empty());
    Ok((actions, values))
}

/// The values of an inserted row by column.
fn inserted(
    columns: &[String],
    values: &[Expr],
    table: &ManagedTable,
) -> Result<Vec<(usize, Expr)>> {
    let places = match columns.is_empty() {
        true => (0..table.columns().fields().len()).collect(),
        false => {
            let places = columns.iter().map(|name| table.columns().index_of(name));
            places.collect::<Result<Vec<_>, _>>()?
        }
    };
    if places.len() != values.len() {
        return plan_err!(
            "INSERT names {} columns of {} and has {} values",
            places.len(),
            table.name(),
            values.len()
        );
    }
    Ok(places.into_iter().zip(values.iter().cloned()).collect())
}
