//! How large a plan is: a short text may be a large one. Rules of the optimizer walk through all of it, about a hundred
//! times.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use crate::engine::errors::from_engine;
use crate::engine::parsing::{EXPRESSIONS_MAX, PARTS_MAX};
use crate::queries::{ErrorKind, QueryError};

/// The most operators of a plan: a query may be a few.
const OPERATORS_MAX: usize = 4 * PARTS_MAX;

/// The most columns of all operators.
const COLUMNS_MAX: usize = 500_000;

/// About what an operator, a part of an expression, and a column take, in bytes.
const OPERATOR_BYTES: usize = 1_000;
const EXPRESSION_BYTES: usize = 300;
const COLUMN_BYTES: usize = 100;

/// What there is in a plan, with that of subqueries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlanSize {
    operators: usize,
    expressions: usize,
    columns: usize,
}

impl PlanSize {
    /// The size of a plan. The work is bounded by the limits.
    ///
    /// # Errors
    /// If there is more in it than admitted.
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
        .map_err(from_engine)?;
        match size.excess() {
            None => Ok(size),
            Some((count, what)) => Err(QueryError::new(
                ErrorKind::TooComplex,
                format!(
                    "the plan has more than {count} {what}, counting a WITH query or view once for each mention; split \
                     the statement"
                ),
            )),
        }
    }

    /// What it takes in memory, by and large.
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
