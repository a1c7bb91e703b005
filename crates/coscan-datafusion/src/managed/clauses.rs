//! Clauses of statements that the engine would ignore or take for something else.

use std::ops::ControlFlow;

use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, DataType, Query, Set, Statement as SqlStatement,
    TransactionIsolationLevel, TransactionMode, Visit, Visitor,
};

/// Refuses clauses that would be ignored: rows that a SELECT locks, transactions that are serializable or follow each other
/// (`AND CHAIN`), generated columns, and places of tables.
///
/// # Errors
/// If the statement has one.
pub fn refuse_ignored_clauses(statement: &SqlStatement) -> Result<()> {
    let locked = statement.visit(&mut Locks);
    if locked.is_break() {
        return not_impl_err!(
            "SELECT … FOR UPDATE or FOR SHARE: update the rows, or run the transaction again if its COMMIT fails"
        );
    }
    let is_generated = |column: &ColumnDef| {
        let options = column.options.iter().map(|option| &option.option);
        options.into_iter().any(|option| matches!(option, ColumnOption::Generated { .. }))
    };
    let modes = match statement {
        SqlStatement::CreateTable(create) if create.query.is_some() && has_not_null(create) => {
            return not_impl_err!(
                "NOT NULL in CREATE TABLE … AS: create the table first, and insert the rows"
            );
        }
        SqlStatement::CreateTable(create) if has_location(create) => {
            return not_impl_err!(
                "CREATE TABLE … LOCATION: a table of a database is in the directory of the database, and CREATE EXTERNAL \
                 TABLE … LOCATION is a table of files elsewhere"
            );
        }
        SqlStatement::CreateTable(create) if create.columns.iter().any(is_generated) => {
            return not_impl_err!("GENERATED columns: leave it out, and insert the values");
        }
        SqlStatement::Commit { chain: true, .. } | SqlStatement::Rollback { chain: true, .. } => {
            return not_impl_err!("AND CHAIN: BEGIN again after it");
        }
        SqlStatement::StartTransaction { modes, .. } => modes,
        SqlStatement::Set(Set::SetTransaction { modes, .. }) => modes,
        _ => return Ok(()),
    };
    let serializable = TransactionMode::IsolationLevel(TransactionIsolationLevel::Serializable);
    if modes.contains(&serializable) {
        return not_impl_err!(
            "ISOLATION LEVEL SERIALIZABLE: transactions have snapshot isolation, which is REPEATABLE READ"
        );
    }
    Ok(())
}

/// Finds a query that locks rows.
struct Locks;

impl Visitor for Locks {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if query.locks.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

fn has_not_null(create: &CreateTable) -> bool {
    let options = create.columns.iter().flat_map(|column| &column.options);
    options.into_iter().any(|option| matches!(option.option, ColumnOption::NotNull))
}

fn has_location(create: &CreateTable) -> bool {
    !create.external && create.hive_formats.as_ref().is_some_and(|hive| hive.location.is_some())
}

/// Gives timestamps without a precision one of microseconds, as in PostgreSQL. The engine's have nanoseconds, which other engines
/// do not read ([`TablePublisher`](crate::TablePublisher)).
pub(crate) fn with_microseconds(data_type: &mut DataType) {
    if let DataType::Timestamp(precision @ None, _) = data_type {
        *precision = Some(6);
    }
}
