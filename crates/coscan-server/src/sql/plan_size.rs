//! The size of a plan, which may be large for a short text. The rules of the optimizer visit all of it about a hundred
//! times.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::queries::{ErrorKind, QueryError};
use crate::sql::errors::from_datafusion;
use crate::sql::parsing::{EXPRESSIONS_MAX, PARTS_MAX};

/// The maximum number of operators of a plan. A query may have several.
const OPERATORS_MAX: usize = 4 * PARTS_MAX;

/// The maximum number of columns of all operators.
const COLUMNS_MAX: usize = 500_000;

/// The approximate bytes of an operator, a part of an expression, and a column.
const OPERATOR_BYTES: usize = 1_000;
const EXPRESSION_BYTES: usize = 300;
const COLUMN_BYTES: usize = 100;

/// The numbers of parts of a plan, including those of subqueries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlanSize {
    operators: usize,
    expressions: usize,
    columns: usize,
}

impl PlanSize {
    /// Computes the size of a plan. The work is bounded by the limits.
    ///
    /// # Errors
    /// If the plan exceeds a limit.
    pub(super) fn of(plan: &LogicalPlan) -> Result<Self, QueryError> {
        let mut size = Self::default();
        plan.apply_with_subqueries(|plan| {
            size.operators += 1;
            size.columns += plan.schema().fields().len();
            plan.apply_expressions(|expression| {
                expression.apply(|_| {
                    size.expressions += 1;
                    Ok(size.go_on())
                })
            })?;
            Ok(size.go_on())
        })
        .map_err(from_datafusion)?;
        match size.excess() {
            None => weigh(plan).map(|_| size),
            Some((count, what)) => Err(QueryError::new(
                ErrorKind::TooComplex,
                format!(
                    "the plan has more than {count} {what}, counting a WITH query or view once for each mention; split \
                     the statement"
                ),
            )),
        }
    }

    /// The approximate bytes of the plan.
    pub(super) fn bytes(&self) -> usize {
        self.operators * OPERATOR_BYTES
            + self.expressions * EXPRESSION_BYTES
            + self.columns * COLUMN_BYTES
    }

    fn go_on(&self) -> TreeNodeRecursion {
        match self.excess() {
            None => TreeNodeRecursion::Continue,
            Some(_) => TreeNodeRecursion::Stop,
        }
    }

    fn excess(&self) -> Option<(usize, &'static str)> {
        [
            (self.operators, OPERATORS_MAX, "operators"),
            (self.expressions, EXPRESSIONS_MAX, "expressions"),
            (self.columns, COLUMNS_MAX, "columns"),
        ]
        .into_iter()
        .find_map(|(count, most, what)| (count > most).then_some((most, what)))
    }
}

/// The maximum weight of an expression, which is the size that it may grow to. Rules write some expressions twice:
/// `coalesce(a, b)` becomes a CASE with `a` in its condition and its value. A filter on a column becomes a filter on
/// the expression that computes the column.
const WEIGHT_MAX: usize = 200_000;

/// Functions whose arguments are written twice.
const DOUBLED: [&str; 5] = ["coalesce", "ifnull", "nullif", "nvl", "nvl2"];

/// Computes the weights of the columns of a plan.
///
/// # Errors
/// If an expression exceeds the maximum weight.
fn weigh(plan: &LogicalPlan) -> Result<Vec<usize>, QueryError> {
    let mut inputs = Vec::new();
    for input in plan.inputs() {
        inputs.push((input.schema(), weigh(input)?));
    }
    let column = |column: &Column| {
        let of = |(schema, weights): &(&DFSchemaRef, Vec<usize>)| {
            Some(*weights.get(schema.maybe_index_of_column(column)?)?)
        };
        inputs.iter().find_map(of).unwrap_or(1)
    };
    let mut weights = Vec::new();
    let mut too_heavy = false;
    plan.apply_expressions(|expression| {
        let weight = weight(expression, &column);
        too_heavy |= weight > WEIGHT_MAX;
        weights.push(weight);
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    if too_heavy {
        let text = "an expression is too large once it is written out; compute parts of it in an aggregation, or split \
                    the statement";
        return Err(QueryError::new(ErrorKind::TooComplex, text));
    }
    let mut within = Ok(Vec::new());
    plan.apply_subqueries(|subquery| {
        within = weigh(subquery);
        Ok(if within.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })
    .map_err(from_datafusion)?;
    within?;
    let columns = plan.schema().fields().len();
    Ok(match plan {
        LogicalPlan::Projection(_) => weights,
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Join(_) => {
            let mut all: Vec<_> = inputs.into_iter().flat_map(|(_, weights)| weights).collect();
            all.resize(columns, 1);
            all
        }
        _ => vec![1; columns],
    })
}

fn weight(expression: &Expr, column: &impl Fn(&Column) -> usize) -> usize {
    let mut parts = 0_usize;
    // There are few parts, which were counted before.
    let counted = expression.apply_children(|part| {
        parts = parts.saturating_add(weight(part, column));
        Ok(TreeNodeRecursion::Continue)
    });
    let is_doubled = counted.is_err()
        || matches!(expression, Expr::Between(_))
        || matches!(expression, Expr::ScalarFunction(call) if DOUBLED.contains(&call.func.name()));
    let itself = match expression {
        Expr::Column(name) => column(name),
        _ => 1,
    };
    parts.saturating_mul(if is_doubled { 2 } else { 1 }).saturating_add(itself)
}
