//! Expressions on columns of a table, as far as they are known to give the same for the same rows in every session.
//!
//! Physical expressions are not compared themselves: their equality includes the configuration of a session, and functions of
//! one name may differ from session to session.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::projection::ProjectionExec;

use super::built_in;
use crate::execution::exec::SharedScanExec;
use crate::filtering::engine_filter;
use crate::operator::Plan;

/// The most parts of all expressions of a fragment, and the most bytes of a literal: longer ones cost more to compare.
const PARTS_MAX: usize = 256;
const LITERAL_BYTES_MAX: usize = 1024;

/// An expression on columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Expression {
    /// A column, by a number, with the type that it is read as.
    Column(usize, DataType),
    Literal(ScalarValue),
    Call(Operation, Vec<Expression>),
}

/// An operation that depends on its operands only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Binary { operator: Operator, fails_on_overflow: bool },
    Not,
    IsNull,
    IsNotNull,
    Negative,
    Cast { to: DataType, gives_null: bool },
    InList { negated: bool },
    Like { negated: bool, case_insensitive: bool },
    Case { has_operand: bool, has_else: bool },
    Function { name: &'static str, returns: DataType },
}

impl Expression {
    /// Numbers the columns anew.
    pub(super) fn renumber(&mut self, number: &mut impl FnMut(usize) -> usize) {
        match self {
            Self::Column(column, _) => *column = number(*column),
            Self::Literal(_) => {}
            Self::Call(_, operands) => {
                operands.iter_mut().for_each(|operand| operand.renumber(number));
            }
        }
    }
}

/// Reads physical expressions above a shared scan.
pub(super) struct ExpressionReader {
    parts_left: usize,
}

impl ExpressionReader {
    pub(super) fn new() -> Self {
        Self { parts_left: PARTS_MAX }
    }

    /// An expression on the rows of a plan as one on columns of the table below it. `None` if it is not known to be the same
    /// everywhere, or too long.
    pub(super) fn read(
        &mut self,
        expr: &Arc<dyn PhysicalExpr>,
        input: &Plan,
    ) -> Option<Expression> {
        self.parts_left = self.parts_left.checked_sub(1)?;
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.column(column.index(), input);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            let value = literal.value();
            return (value.size() <= LITERAL_BYTES_MAX).then(|| Expression::Literal(value.clone()));
        }
        let (operation, operands) = operation(expr)?;
        let operands = operands.into_iter().map(|operand| self.read(operand, input));
        Some(Expression::Call(operation, operands.collect::<Option<_>>()?))
    }

    /// A column of the rows of a plan.
    fn column(&mut self, index: usize, plan: &Plan) -> Option<Expression> {
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
            let column = *scan.projection().get(index)?;
            let table = scan.table().table();
            let data_type = table.schema().field(column).data_type();
            // Names of nested fields may differ from those in files, and row numbers are those of a table.
            let is_of_file = !data_type.is_nested() && table.row_number_column() != Some(column);
            return is_of_file.then(|| Expression::Column(column, data_type.clone()));
        }
        let input = *plan.children().first()?;
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return self.read(&projection.expr().get(index)?.expr, input);
        }
        let filter = engine_filter(plan)?;
        let projected = filter.projection().as_ref();
        self.column(projected.map_or(Some(index), |columns| columns.get(index).copied())?, input)
    }
}

/// The operation and the operands of an expression.
fn operation(expr: &Arc<dyn PhysicalExpr>) -> Option<(Operation, Vec<&Arc<dyn PhysicalExpr>>)> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        let wrapping = BinaryExpr::new(Arc::clone(left), *binary.op(), Arc::clone(right));
        let fails_on_overflow = *binary != wrapping;
        let operation = Operation::Binary { operator: *binary.op(), fails_on_overflow };
        return Some((operation, vec![left, right]));
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return Some((Operation::Not, vec![not.arg()]));
    }
    if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
        return Some((Operation::IsNull, vec![is_null.arg()]));
    }
    if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
        return Some((Operation::IsNotNull, vec![is_not_null.arg()]));
    }
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        return Some((Operation::Negative, vec![negative.arg()]));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let options = cast.cast_options();
        let (to, gives_null) = (cast.cast_type().clone(), options.safe);
        let is_usual = options.format_options == DEFAULT_FORMAT_OPTIONS;
        return is_usual.then(|| (Operation::Cast { to, gives_null }, vec![cast.expr()]));
    }
    if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        let operation = Operation::Cast { to: cast.cast_type().clone(), gives_null: true };
        return Some((operation, vec![cast.expr()]));
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let operands = std::iter::once(list.expr()).chain(list.list()).collect();
        return Some((Operation::InList { negated: list.negated() }, operands));
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let (negated, case_insensitive) = (like.negated(), like.case_insensitive());
        let operation = Operation::Like { negated, case_insensitive };
        return Some((operation, vec![like.expr(), like.pattern()]));
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        let (operand, otherwise) = (case.expr(), case.else_expr());
        let operation =
            Operation::Case { has_operand: operand.is_some(), has_else: otherwise.is_some() };
        let branches = case.when_then_expr().iter().flat_map(|(when, then)| [when, then]);
        return Some((operation, operand.into_iter().chain(branches).chain(otherwise).collect()));
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let name = built_in::scalar_function(call.fun())?;
    let operation = Operation::Function { name, returns: call.return_type().clone() };
    Some((operation, call.args().iter().collect()))
}
