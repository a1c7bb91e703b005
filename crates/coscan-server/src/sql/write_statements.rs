//! Statements that change tables, and the right to them.

use coscan_datafusion::{ManagedStatement, ManagedTable, run_managed_statement};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, DmlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement;

use crate::queries::{ErrorKind, QueryError};
use crate::sql::command_tag::Command;
use crate::sql::errors::from_datafusion;
use crate::sql::functions::check_aggregates;
use crate::sql::plan_size::PlanSize;
use crate::users::{Granted, User};

/// Accepts plans that read tables, and those that change rows of tables that the user may change. They hold little before
/// they reserve memory.
///
/// # Errors
/// If the plan does something else, or the user has no right to the change.
pub(super) fn check(plan: &LogicalPlan, user: &User) -> Result<(), QueryError> {
    let explained = match plan {
        LogicalPlan::Explain(explain) => &explain.plan,
        LogicalPlan::Analyze(analyze) => &analyze.input,
        plan => plan,
    };
    let read = match explained {
        LogicalPlan::Dml(change) => {
            check_change(change, user)?;
            &change.input
        }
        plan => plan,
    };
    let reads_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads_only.verify_plan(read).map_err(|_| {
        let text = "this server reads tables only, apart from those of its own database, if it has one: SELECT, EXPLAIN, SHOW, SET";
        QueryError::new(ErrorKind::NotAllowed, text)
    })?;
    check_aggregates(read).map_err(from_datafusion)
}

fn check_change(change: &DmlStatement, user: &User) -> Result<(), QueryError> {
    let table = change.table_name.table();
    let provider = source_as_provider(&change.target).map_err(from_datafusion)?;
    if !provider.is::<ManagedTable>() {
        let text = format!(
            "this server reads tables only, apart from those of its own database, and {table} is none of these"
        );
        return Err(QueryError::new(ErrorKind::NotAllowed, text));
    }
    if user.writes.includes(table) {
        return Ok(());
    }
    let name = &user.name;
    let text = format!(
        "user {name} may not change table {table}: an administrator can add it to `writes` of {name} in the users file"
    );
    Err(QueryError::new(ErrorKind::NotAllowed, text))
}

/// Checks a statement that concerns which tables there are, and their files.
///
/// # Errors
/// If the user has no right to it, or it is too large.
pub(super) async fn check_table_statement(
    state: &SessionState,
    statement: &Statement,
    command: Command,
    user: &User,
) -> Result<PlanSize, QueryError> {
    if user.writes != Granted::All {
        let text = format!(
            "user {} may not create, drop or vacuum tables: that needs `writes = \"*\"` in the users file",
            user.name
        );
        return Err(QueryError::new(ErrorKind::NotAllowed, text));
    }
    if command == Command::Vacuum {
        return Ok(PlanSize::default());
    }
    let statement = DataFusionStatement::Statement(Box::new(statement.clone()));
    let plan = state.statement_to_plan(statement).await.map_err(from_datafusion)?;
    let size = PlanSize::of(&plan)?;
    match &plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
            check(&create.input, user)?;
            Ok(size)
        }
        LogicalPlan::Ddl(DdlStatement::DropTable(_)) => Ok(size),
        _ => {
            let text = "only CREATE TABLE t (columns), CREATE TABLE t AS SELECT … and DROP TABLE t work here";
            Err(QueryError::new(ErrorKind::NotSupported, text))
        }
    }
}

/// Executes such a statement.
pub(super) async fn execute(state: SessionState, statement: Statement) -> Result<(), QueryError> {
    let context = SessionContext::new_with_state(state);
    let statement = DataFusionStatement::Statement(Box::new(statement));
    match run_managed_statement(&context, statement).await.map_err(from_datafusion)? {
        ManagedStatement::Executed(_) => Ok(()),
        ManagedStatement::Plan(LogicalPlan::Ddl(DdlStatement::DropTable(drop)))
            if !context.table_exist(drop.name.clone()).map_err(from_datafusion)? =>
        {
            let text = format!("table \"{}\" does not exist", drop.name);
            let unknown = QueryError::new(ErrorKind::UnknownTable, text);
            if drop.if_exists { Ok(()) } else { Err(unknown) }
        }
        ManagedStatement::Plan(_) => {
            let text = "this server changes tables of its own database only";
            Err(QueryError::new(ErrorKind::NotAllowed, text))
        }
    }
}
