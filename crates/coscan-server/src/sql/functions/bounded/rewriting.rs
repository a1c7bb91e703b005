//! Puts bounds around functions anywhere in a statement.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};

use super::growth::{GROWTH, Growth};
use super::joined::Joined;
use super::{Bounded, bounded};

/// Bounds functions that need it, including those that stand for operators.
#[derive(Debug)]
pub(in crate::sql) struct BoundFunctions;

impl FunctionRewrite for BoundFunctions {
    fn name(&self) -> &str {
        "BoundFunctions"
    }

    fn rewrite(
        &self,
        expression: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expression {
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                let bounds = GROWTH.iter().find(|(name, _)| *name == func.name());
                let (func, is_new) = match bounds {
                    Some((_, growth)) if !func.inner().is::<Bounded>() => {
                        (bounded(func, *growth), true)
                    }
                    _ => (func, false),
                };
                let call = Expr::ScalarFunction(ScalarFunction { func, args });
                Ok(Transformed::new(call, is_new, TreeNodeRecursion::Continue))
            }
            Expr::BinaryExpr(operator) if operator.op == Operator::StringConcat => {
                let operator = Expr::BinaryExpr(operator);
                let result = operator.get_type(schema)?;
                let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = operator else {
                    return Ok(Transformed::no(operator));
                };
                if !result.is_string() {
                    let op = Operator::StringConcat;
                    return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
                }
                let joined = Arc::new(ScalarUDF::new_from_impl(Joined::new(result)));
                let func = bounded(joined, Growth::Concatenate);
                let args = vec![*left, *right];
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
            }
            Expr::BinaryExpr(operator) if is_match(operator.op) => match *operator.right {
                Expr::Literal(..) | Expr::Placeholder(_) => {
                    Ok(Transformed::no(Expr::BinaryExpr(operator)))
                }
                _ => Err(DataFusionError::NotImplemented(format!(
                    "a pattern of {} that is no literal; use regexp_like",
                    operator.op
                ))),
            },
            other => Ok(Transformed::no(other)),
        }
    }
}

/// Whether an operator compiles a pattern, and keeps it for all rows of a batch.
fn is_match(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    )
}
