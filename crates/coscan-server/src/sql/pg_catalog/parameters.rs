//! Parameters of parts of statements that are removed.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Value, Visit, Visitor};

/// The parameters of removed parts, each with its cast. Clients still send values for them.
pub(super) struct Parameters(Vec<String>);

impl Parameters {
    /// The parameters in a part of a statement.
    pub(super) fn of(removed: &impl Visit) -> Self {
        let mut found = Self(Vec::new());
        let _ = removed.visit(&mut found);
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A condition that mentions the parameters.
    pub(super) fn are_null(&self) -> String {
        let conditions = self.0.iter().map(|parameter| format!("{parameter} IS NULL"));
        conditions.chain(["true".to_owned()]).collect::<Vec<_>>().join(" AND ")
    }
}

impl Visitor for Parameters {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let is_parameter = |expression: &Expr| matches!(expression, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)));
        match expression {
            Expr::Cast { expr, .. } if is_parameter(expr) => self.0.push(expression.to_string()),
            expression if is_parameter(expression) => {
                let name = expression.to_string();
                let is_part = |cast: &String| {
                    cast.starts_with(&format!("{name}::")) || cast.contains(&format!("({name} "))
                };
                if !self.0.last().is_some_and(is_part) {
                    self.0.push(name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
