//! Cheaper arithmetic of decimals, with the values, types and errors of the engine's own expressions.
//!
//! Plans are rewritten once, when they are optimized: rules of the optimizer know what a product is, and would neither look
//! through a function nor move conditions with it as they do.

mod literals;
mod product;

pub(crate) use product::PRODUCT as DECIMAL_PRODUCT;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

/// A plan in which [literals] have the scale of their partners, and [64-bit values](product) are multiplied as such. `None` if
/// it has no such arithmetic.
///
/// # Errors
/// If the plan is malformed.
pub(crate) fn cheaper(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut has_any = false;
    plan.apply_with_subqueries(|plan| {
        has_any = has_any || has_arithmetic(plan)?;
        Ok(if has_any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_any {
        return Ok(None);
    }
    let changed = plan.clone().transform_up_with_subqueries(cheaper_node)?;
    Ok(changed.transformed.then_some(changed.data))
}

fn cheaper_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if plan.inputs().is_empty() || !has_arithmetic(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        // An alias would hide that these are several groupings.
        if matches!(expr, Expr::GroupingSet(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| Ok(cheaper_expr(expr, &schema)))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })
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
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = expr else { return false };
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
}

fn cheaper_expr(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = &expr else { return Transformed::no(expr) };
    let cheaper = literals::with_equal_scales(binary, schema);
    match cheaper.or_else(|| product::of_decimals(binary, schema)) {
        Some(cheaper) => Transformed::yes(cheaper),
        None => Transformed::no(expr),
    }
}
