//! Statements on databases that the engine does not execute: `CREATE TABLE`, `BEGIN`, `COMMIT`, `ROLLBACK`, `VACUUM`.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{TableReference, not_impl_err, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, cast,
};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Statement as SqlStatement, TransactionAccessMode, TransactionMode, VacuumStatement,
};

use crate::error::from_database;
use crate::managed::clauses::{refuse_ignored_clauses, with_microseconds};
use crate::managed::database::ManagedDatabase;
use crate::managed::schema::DefaultDatabase;
use crate::managed::table::ManagedTable;
use crate::managed::transactions::SessionTransaction;

/// A statement that was executed, or that the engine executes.
#[derive(Debug)]
pub enum ManagedStatement {
    /// It was executed, and this is its result.
    Executed(Vec<RecordBatch>),
    /// Its plan, to be executed by the engine.
    Plan(LogicalPlan),
}

/// Executes a statement that the engine does not execute on databases: `CREATE TABLE` and `DROP TABLE` in a schema that has the tables of a
/// database ([`ManagedDatabase::add_to`]), `BEGIN`, `COMMIT`, `ROLLBACK` and `VACUUM`. Other statements are planned.
///
/// `VACUUM` removes files that checkpoints have replaced, after their [retention](crate::DatabaseOptions::retention).
/// `VACUUM FULL`, of one table or all, writes all changed rows to new files first.
///
/// # Errors
/// If the statement cannot be planned or executed, or if the engine would ignore a part of it: rows that a SELECT locks, and
/// transactions that are serializable. Those of a database have snapshot isolation.
pub async fn run_managed_statement(
    context: &SessionContext,
    mut statement: ParsedStatement,
) -> Result<ManagedStatement> {
    if let ParsedStatement::Statement(statement) = &mut statement {
        refuse_ignored_clauses(statement)?;
        if run_transaction(context, statement).await? {
            return Ok(ManagedStatement::Executed(Vec::new()));
        }
        if let SqlStatement::Vacuum(vacuum) = &**statement {
            return run_vacuum(context, vacuum).await.map(ManagedStatement::Executed);
        }
        if let SqlStatement::CreateTable(create) = &mut **statement
            && DefaultDatabase::is_in(context.state().config())
        {
            create.columns.iter_mut().for_each(|column| with_microseconds(&mut column.data_type));
        }
    }
    let plan = context.state().statement_to_plan(statement).await?;
    let LogicalPlan::Ddl(ddl) = &plan else { return Ok(ManagedStatement::Plan(plan)) };
    let name = match ddl {
        DdlStatement::CreateMemoryTable(create) => &create.name,
        DdlStatement::DropTable(drop) => &drop.name,
        _ => return Ok(ManagedStatement::Plan(plan)),
    };
    let state = context.state();
    let Some(database) = DefaultDatabase::for_table(state.config(), name) else {
        return Ok(ManagedStatement::Plan(plan));
    };
    if SessionTransaction::of(&state).is_some_and(|transaction| transaction.is_open()) {
        return not_impl_err!(
            "CREATE TABLE and DROP TABLE in a transaction: COMMIT or ROLLBACK first"
        );
    }
    match (ddl, database.table(name.table())?) {
        (DdlStatement::CreateMemoryTable(create), existing) => {
            let created = create_table(context, &database, create, existing).await?;
            return Ok(ManagedStatement::Executed(created));
        }
        (DdlStatement::DropTable(_), Some(table)) => {
            database.drop_table(&table).await?;
            return Ok(ManagedStatement::Executed(Vec::new()));
        }
        _ => {}
    }
    Ok(ManagedStatement::Plan(plan))
}

/// Executes a statement that begins or ends a transaction. Returns whether it is one.
async fn run_transaction(context: &SessionContext, statement: &SqlStatement) -> Result<bool> {
    let Some(transaction) = SessionTransaction::of(&context.state()) else { return Ok(false) };
    match statement {
        SqlStatement::StartTransaction { modes, statements, .. } if statements.is_empty() => {
            if modes.contains(&TransactionMode::AccessMode(TransactionAccessMode::ReadOnly)) {
                return not_impl_err!("READ ONLY: leave it out");
            }
            transaction.begin()?;
        }
        SqlStatement::Commit { chain: false, .. } => transaction.commit().await?,
        SqlStatement::Rollback { chain: false, savepoint: None } => transaction.roll_back()?,
        SqlStatement::Rollback { savepoint: Some(_), .. } | SqlStatement::Savepoint { .. } => {
            return not_impl_err!("SAVEPOINT: roll back the whole transaction");
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Executes VACUUM.
async fn run_vacuum(
    context: &SessionContext,
    vacuum: &VacuumStatement,
) -> Result<Vec<RecordBatch>> {
    let VacuumStatement { full, table_name, .. } = vacuum;
    let plain = VacuumStatement {
        sort_only: false,
        delete_only: false,
        reindex: false,
        recluster: false,
        threshold: None,
        boost: false,
        ..vacuum.clone()
    };
    if plain != *vacuum {
        return not_impl_err!(
            "an option of VACUUM: there are VACUUM, VACUUM FULL and VACUUM FULL t"
        );
    }
    let state = context.state();
    let (table, name) = match table_name {
        Some(name) => {
            let name = TableReference::parse_str(&name.to_string());
            let provider = context.table_provider(name.clone()).await?;
            match provider.downcast_ref::<ManagedTable>() {
                Some(table) => (Some(table.clone()), name),
                None => {
                    return plan_err!("{name} is not a table of a database: VACUUM one that is");
                }
            }
        }
        None => (None, TableReference::bare("")),
    };
    let database = match &table {
        Some(table) => Some(table.database().clone()),
        None => DefaultDatabase::for_table(state.config(), &name),
    };
    let Some(database) = database else {
        return plan_err!("VACUUM is for the tables of a database: start with --database DIR");
    };
    if SessionTransaction::of(&state).is_some_and(|transaction| transaction.is_open()) {
        return not_impl_err!("VACUUM in a transaction: COMMIT or ROLLBACK first");
    }
    match (*full, table) {
        (true, Some(table)) => drop(database.checkpoint(&table).await?),
        (true, None) => database.checkpoint_all().await?,
        (false, _) => drop(database.remove_retired().await?),
    }
    Ok(Vec::new())
}

/// Creates a table with its rows, all at once.
async fn create_table(
    context: &SessionContext,
    database: &ManagedDatabase,
    create: &CreateMemoryTable,
    existing: Option<ManagedTable>,
) -> Result<Vec<RecordBatch>> {
    let name = create.name.table();
    if create.temporary {
        return not_impl_err!("TEMPORARY: leave it out, and drop the table when it is done with");
    }
    if create.constraints.iter().next().is_some() || !create.column_defaults.is_empty() {
        return not_impl_err!(
            "PRIMARY KEY, UNIQUE and DEFAULT in a database; table {name} can be created without them"
        );
    }
    match (create.if_not_exists, create.or_replace, &existing) {
        (true, false, _) if context.table_exist(create.name.clone())? => return Ok(Vec::new()),
        (false, true, Some(_)) => {}
        _ if context.table_exist(create.name.clone())? => {
            return plan_err!("table {name} exists already: drop it first, or choose another name");
        }
        _ => {}
    }
    let mut transaction = database.versions().begin();
    if let Some(existing) = &existing {
        transaction.drop_table(existing.id()).map_err(from_database)?;
    }
    let schema = create.input.schema().as_arrow();
    let is_filled = !matches!(create.input.as_ref(), LogicalPlan::EmptyRelation(_));
    // That a query has no NULL now is no constraint, as in PostgreSQL.
    let table = match is_filled {
        true => database.create_in(&mut transaction, name, &nullable(schema))?,
        false => database.create_in(&mut transaction, name, schema)?,
    };
    let transaction = Arc::new(SessionTransaction::begun(database, transaction));
    let inserted = match is_filled {
        true => insert(context, create, &table, &transaction).await?,
        false => Vec::new(),
    };
    transaction.commit().await?;
    database.forget_dropped();
    Ok(inserted)
}

/// The same columns, all of which may be NULL.
fn nullable(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Schema::new(fields.collect::<Vec<_>>())
}

/// Inserts the rows with which a table is created, as values of the types that it has.
async fn insert(
    context: &SessionContext,
    create: &CreateMemoryTable,
    table: &ManagedTable,
    transaction: &Arc<SessionTransaction>,
) -> Result<Vec<RecordBatch>> {
    let given = create.input.schema().columns().into_iter();
    let columns = given.zip(table.columns().fields()).map(|(column, field)| {
        cast(Expr::Column(column), field.data_type().clone()).alias(field.name())
    });
    let input = LogicalPlanBuilder::from(Arc::clone(&create.input)).project(columns)?.build()?;
    let target = provider_as_source(Arc::new(table.clone()));
    let insert =
        LogicalPlanBuilder::insert_into(input, create.name.clone(), target, InsertOp::Append)?;
    let mut state = context.state();
    state.config_mut().set_extension(Arc::clone(transaction));
    let plan = state.create_physical_plan(&insert.build()?).await?;
    collect(plan, state.task_ctx()).await
}
