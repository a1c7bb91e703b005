//! Parts of psql's queries that DataFusion cannot run, and whose answer is known: no table has storage parameters, no
//! role is a member of another. They are replaced where a statement is parsed.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, Query, Statement, TableFactor, Value, visit_expressions_mut,
};

/// Puts the answers in their places.
pub(super) fn answer_known(statement: &mut Statement) {
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Expr::Function(function) = expression
            && let Some(answer) = answer(function)
        {
            *expression = Expr::value(Value::SingleQuotedString(answer.to_owned()));
        }
        ControlFlow::Continue(())
    });
}

fn answer(function: &Function) -> Option<&'static str> {
    let name = function.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    match (name.as_str(), &function.args) {
        // `\du` until psql 15.
        ("array", FunctionArguments::Subquery(query)) if is_of_role_members(query) => Some("{}"),
        // `\d+ NAME`
        ("array_to_string", FunctionArguments::List(arguments)) => {
            let text = arguments.to_string();
            let is_asked = text.starts_with("c.reloptions || array(")
                && text.contains("unnest(tc.reloptions)");
            is_asked.then_some("")
        }
        _ => None,
    }
}

fn is_of_role_members(query: &Query) -> bool {
    let Some([table, ..]) = query.body.as_select().map(|select| select.from.as_slice()) else {
        return false;
    };
    let TableFactor::Table { name, .. } = &table.relation else { return false };
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .is_some_and(|part| part.value == "pg_auth_members")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn answered(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        answer_known(&mut statements[0]);
        statements[0].to_string()
    }

    #[test]
    fn what_psql_asks_for_is_answered_and_nothing_else_is() {
        let members = "SELECT ARRAY(SELECT m.roleid FROM pg_catalog.pg_auth_members m) AS memberof";
        assert_eq!(answered(members), "SELECT '{}' AS memberof");
        let options = "SELECT pg_catalog.array_to_string(c.reloptions || array(select 'toast.' || x \
                       from pg_catalog.unnest(tc.reloptions) x), ', ') FROM c";
        assert_eq!(answered(options), "SELECT '' FROM c");
        for other in [
            "SELECT ARRAY(SELECT id FROM numbers) FROM t",
            "SELECT ARRAY(SELECT id FROM notes WHERE text = 'pg_auth_members')",
            "SELECT array_to_string(reloptions, ',') FROM t",
        ] {
            assert_eq!(answered(other), other);
        }
    }
}
