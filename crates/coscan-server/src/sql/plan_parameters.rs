//! The parameters of a plan: their types, and the memory of their values.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Statement, Value, visit_expressions};

use crate::queries::{ErrorKind, QueryError};
use crate::sql::errors::from_datafusion;

/// The maximum number of parameters of a statement, as in PostgreSQL.
const PARAMETERS_MAX: usize = 65_535;

/// The maximum bytes of parameter values in a plan.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// The bytes of values in a plan, where each mention of a parameter is a copy of its value.
///
/// # Errors
/// If they exceed the limit.
pub(super) fn value_bytes(plan: &LogicalPlan, values: &ParamValues) -> Result<usize, QueryError> {
    let ParamValues::List(values) = values else { return Ok(0) };
    if values.is_empty() {
        return Ok(0);
    }
    let sizes: Vec<_> = values.iter().map(|value| value.value().size()).collect();
    let mut bytes = 0_usize;
    let walked = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::Placeholder(parameter) = expression
                    && let Some(number) = parameter.id.strip_prefix('$')
                    && let Ok(number) = number.parse::<usize>()
                    && let Some(size) = sizes.get(number.wrapping_sub(1))
                {
                    bytes = bytes.saturating_add(*size);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(from_datafusion)?;
    if bytes > VALUE_BYTES_MAX {
        let text = format!(
            "the values of the parameters take {bytes} bytes, counted once for each mention; the most is \
             {VALUE_BYTES_MAX}"
        );
        return Err(QueryError::new(ErrorKind::TooComplex, text));
    }
    Ok(bytes)
}

/// The highest number of a parameter in a statement, at most [`PARAMETERS_MAX`]. A plan may lack parameters of
/// expressions that need not be computed.
pub(super) fn parameters_max(statement: &Statement) -> usize {
    let mut highest = 0;
    let _: ControlFlow<()> = visit_expressions(statement, |expression| {
        if let SqlExpr::Value(value) = expression
            && let Value::Placeholder(name) = &value.value
            && let Some(number) = number_of(name)
        {
            highest = highest.max(number);
        }
        ControlFlow::Continue(())
    });
    highest
}

fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix('$')?.parse().ok()?;
    (1..=PARAMETERS_MAX).contains(&number).then_some(number)
}

/// The types of parameters, starting with `$1`, at least `at_least` of them. `None` for unknown types.
///
/// # Errors
/// If there is a parameter with another name.
pub(super) fn parameters(
    plan: &LogicalPlan,
    at_least: usize,
) -> Result<Vec<Option<FieldRef>>, QueryError> {
    let mut parameters = vec![None; at_least];
    let casts = casts(plan).map_err(from_datafusion)?;
    for (name, field) in plan.get_parameter_fields().map_err(from_datafusion)? {
        let number = number_of(&name).ok_or_else(|| {
            let text = format!("`{name}` is no parameter; they are called $1 to ${PARAMETERS_MAX}");
            QueryError::new(ErrorKind::Syntax, text)
        })?;
        if parameters.len() < number {
            parameters.resize(number, None);
        }
        parameters[number - 1] = field.or_else(|| casts.get(&name).cloned());
    }
    Ok(parameters)
}

/// The types of parameters with casts, as in `$1::int` and `CAST($1 AS int)`, and of numbers of rows, as in `LIMIT $1`.
fn casts(plan: &LogicalPlan) -> Result<HashMap<String, FieldRef>, DataFusionError> {
    let mut casts = HashMap::new();
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::Limit(limit) = plan {
            for rows in [&limit.skip, &limit.fetch].into_iter().flatten() {
                if let Expr::Placeholder(parameter) = rows.as_ref() {
                    let field = Field::new(&parameter.id, DataType::Int64, true);
                    casts.insert(parameter.id.clone(), Arc::new(field));
                }
            }
        }
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::Cast(cast) = expression
                    && let Expr::Placeholder(parameter) = cast.expr.as_ref()
                {
                    let data_type = cast.field.data_type().clone();
                    let field = Field::new(&parameter.id, data_type, true);
                    casts.insert(parameter.id.clone(), Arc::new(field));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(casts)
}
