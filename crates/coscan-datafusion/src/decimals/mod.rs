//! Cheaper arithmetic of decimals: a rule of the logical optimizer, with the values, types and errors that the engine's own
//! expressions give.

mod literals;
mod product;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Gives [literals](literals) the scale of their partners, and multiplies [64-bit values](product) as such. It must run
/// after the rules that fold casts of literals.
#[derive(Debug)]
pub(crate) struct CheaperDecimals;

impl CheaperDecimals {
    pub(crate) const NAME: &'static str = "coscan_cheaper_decimals";
}

impl OptimizerRule for CheaperDecimals {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // Most plans have no arithmetic: their columns are not looked at.
        if plan.inputs().is_empty() || !has_arithmetic(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| Ok(cheaper(expr, &schema)))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }
}

fn has_arithmetic(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = expr.exists(|part| Ok(is_arithmetic(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_arithmetic(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::Plus | Operator::Minus | Operator::Multiply,
            ..
        })
    )
}

fn cheaper(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = &expr else { return Transformed::no(expr) };
    let cheaper = literals::with_equal_scales(binary, schema);
    match cheaper.or_else(|| product::of_decimals(binary, schema)) {
        Some(cheaper) => Transformed::yes(cheaper),
        None => Transformed::no(expr),
    }
}
