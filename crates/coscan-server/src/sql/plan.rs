//! Plans SQL statements.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use coscan_datafusion::refuse_ignored_clauses;
use datafusion::common::ParamValues;
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement;

use crate::queries::{ErrorKind, QueryError};
use crate::sql::array_parameters::infer_arrays;
use crate::sql::column_names::shown_schema;
use crate::sql::command_tag::{Command, query_command};
use crate::sql::errors::from_datafusion;
use crate::sql::pg_catalog::{catalog_field, catalog_schema, reads_catalog_only};
use crate::sql::plan_parameters::{parameters, parameters_max, value_bytes};
use crate::sql::plan_size::PlanSize;
use crate::sql::statements::{SessionStatement, session_statement};
use crate::sql::write_statements::{check, check_table_statement};
use crate::sql::{Session, SqlService};
use crate::users::User;

/// A text of at most this length, with few parentheses, is parsed within microseconds, whatever it contains.
const SHORT_BYTES: usize = 256;
const FEW_PARENTHESES: usize = 6;

/// One statement.
#[derive(Clone, Debug)]
pub enum Sql<'a> {
    /// The text of a statement.
    Text(&'a str),
    /// A statement that [`SqlService::parse`] returned for a text, and that text.
    Parsed(Box<Statement>, &'a str),
}

/// A planned statement, which may be run several times.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The command of the statement.
    pub command: Command,
    /// The columns of its result. Statements without a result have none.
    pub schema: SchemaRef,
    /// The types of its parameters, starting with `$1`. `None` for unknown types.
    pub parameters: Vec<Option<FieldRef>>,
    pub(super) sql: Arc<str>,
    /// Whether it reads only the catalog.
    pub(super) is_of_catalog: bool,
    bytes: usize,
    pub(super) work: Work,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Session(SessionStatement),
    Query(Arc<LogicalPlan>),
    /// A statement that concerns which tables there are.
    Tables(Box<Statement>),
}

impl Work {
    /// The plan of a query, or of a change of rows.
    pub(super) fn plan(&self) -> Option<&LogicalPlan> {
        match self {
            Self::Query(plan) => Some(plan),
            Self::Session(_) | Self::Tables(_) => None,
        }
    }
}

impl Planned {
    /// A change of rows, without parameters.
    pub(super) fn of_plan(command: Command, sql: String, work: Work) -> Self {
        Self {
            command,
            schema: Arc::new(Schema::empty()),
            parameters: Vec::new(),
            bytes: sql.len(),
            sql: sql.into(),
            is_of_catalog: false,
            work,
        }
    }

    /// The statement with values for its parameters, starting with `$1`. The result has no parameters, and its schema
    /// is final.
    ///
    /// # Errors
    /// If there are more or fewer values than parameters, or the statement is invalid with them.
    pub fn bind(&self, values: Vec<ScalarValue>) -> Result<Self, QueryError> {
        let (given, expected) = (values.len(), self.parameters.len());
        if given != expected {
            let text = format!("the statement has {expected} parameters, and {given} were given");
            return Err(QueryError::new(ErrorKind::InvalidValue, text));
        }
        let Work::Query(plan) = &self.work else { return Ok(self.clone()) };
        if values.is_empty() {
            return Ok(self.clone());
        }
        let values = ParamValues::from(values);
        let bound_bytes = value_bytes(plan, &values)?;
        let plan = plan.as_ref().clone().replace_params_with_values(&values);
        let plan = plan.map_err(from_datafusion)?;
        Ok(Self {
            command: self.command,
            schema: self.command.result_schema(&plan, self.is_of_catalog),
            parameters: Vec::new(),
            sql: Arc::clone(&self.sql),
            is_of_catalog: self.is_of_catalog,
            bytes: self.bytes + bound_bytes,
            work: Work::Query(Arc::new(plan)),
        })
    }

    /// The approximate bytes of its text, its plan, and the values in it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it has rows as its result. SET, BEGIN and similar statements have none, since they concern the session only;
    /// statements that change tables have a number at most.
    #[must_use]
    pub fn returns_rows(&self) -> bool {
        match &self.work {
            Work::Session(_) => !self.schema.fields().is_empty(),
            Work::Query(_) => !self.command.is_change(),
            Work::Tables(_) => false,
        }
    }

    /// The text of the statement.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

impl SqlService {
    /// The statements in a text.
    ///
    /// # Errors
    /// If it cannot be parsed, takes too much work or time, or is cancelled.
    pub async fn parse(&self, session: &Session, text: &str) -> Result<Vec<Statement>, QueryError> {
        // Waking another thread would take longer. A text that cannot be parsed here is parsed
        // again there.
        if text.len() <= SHORT_BYTES
            && text.matches('(').count() <= FEW_PARENTHESES
            && let Ok(statements) = self.parser.parse(text)
        {
            return Ok(statements);
        }
        let (parser, owned) = (Arc::clone(&self.parser), text.to_owned());
        self.on_planning_thread(session, text, async move { parser.parse(&owned) }).await
    }

    /// Plans a statement, with the tables granted to the user. It needs no slot of queries and reads no data.
    ///
    /// # Errors
    /// If it cannot be parsed or planned, does more than read granted tables, takes too much work or time, or is
    /// cancelled.
    pub async fn plan(&self, session: &Session, sql: Sql<'_>) -> Result<Planned, QueryError> {
        let has_database = self.database().is_some();
        let text = match &sql {
            Sql::Parsed(statement, text) => match of_the_session(statement, has_database)? {
                Some((command, statement)) => return Ok(of_session(command, statement, text)),
                None => *text,
            },
            Sql::Text(text) => text,
        };
        let (parser, state) = (Arc::clone(&self.parser), self.state(session));
        let user = Arc::clone(&session.user);
        let (sql, owned): (_, Arc<str>) = (sql.into_parsed(), text.into());
        let _memory = self.reserve_for_plan(text)?;
        self.on_planning_thread(session, text, async move {
            let statement = match sql {
                Some(statement) => *statement,
                None => single(parser.parse(&owned)?)?,
            };
            match of_the_session(&statement, has_database)? {
                Some((command, statement)) => Ok(of_session(command, statement, &owned)),
                None => planned(&state, statement, owned, &user, has_database).await,
            }
        })
        .await
    }
}

impl Sql<'_> {
    fn into_parsed(self) -> Option<Box<Statement>> {
        match self {
            Self::Text(_) => None,
            Self::Parsed(statement, _) => Some(statement),
        }
    }
}

/// The effect of a statement on the session. With a database, its clauses have to be true.
fn of_the_session(
    statement: &Statement,
    has_database: bool,
) -> Result<Option<(Command, SessionStatement)>, QueryError> {
    if has_database {
        refuse_ignored_clauses(statement).map_err(from_datafusion)?;
    }
    session_statement(statement)
}

fn of_session(command: Command, statement: SessionStatement, text: &str) -> Planned {
    Planned {
        command,
        schema: statement.schema(),
        parameters: Vec::new(),
        sql: text.into(),
        is_of_catalog: false,
        bytes: text.len(),
        work: Work::Session(statement),
    }
}

async fn planned(
    state: &SessionState,
    statement: Statement,
    sql: Arc<str>,
    user: &User,
    has_database: bool,
) -> Result<Planned, QueryError> {
    let command = query_command(&statement);
    if command.is_of_tables() && has_database {
        let size = check_table_statement(state, &statement, command, user).await?;
        return Ok(Planned {
            command,
            schema: Arc::new(Schema::empty()),
            parameters: Vec::new(),
            bytes: sql.len() + size.bytes(),
            sql,
            is_of_catalog: false,
            work: Work::Tables(Box::new(statement)),
        });
    }
    let is_of_catalog = reads_catalog_only(&statement);
    let mentioned = parameters_max(&statement);
    let statement = DataFusionStatement::Statement(Box::new(statement));
    let plan = state.statement_to_plan(statement).await.map_err(from_datafusion)?;
    let size = PlanSize::of(&plan)?; // Before anything walks all of it.
    let plan = infer_arrays(plan).map_err(from_datafusion)?;
    check(&plan, user)?;
    let mut parameters = parameters(&plan, mentioned)?;
    if is_of_catalog {
        parameters.iter_mut().flatten().for_each(|field| *field = catalog_field(field));
    }
    Ok(Planned {
        command,
        schema: command.result_schema(&plan, is_of_catalog),
        parameters,
        bytes: sql.len() + size.bytes(),
        sql,
        is_of_catalog,
        work: Work::Query(Arc::new(plan)),
    })
}

impl Command {
    /// The columns of the result of a plan. Statements that change tables have none.
    fn result_schema(self, plan: &LogicalPlan, is_of_catalog: bool) -> SchemaRef {
        match self.is_change() {
            true => Arc::new(Schema::empty()),
            false => result_schema(plan.schema().as_arrow(), is_of_catalog),
        }
    }
}

/// The columns of a result, as clients see them.
pub(super) fn result_schema(schema: &Schema, is_of_catalog: bool) -> SchemaRef {
    shown_schema(match is_of_catalog {
        true => catalog_schema(schema),
        false => Arc::new(schema.clone()),
    })
}

fn single(mut statements: Vec<Statement>) -> Result<Statement, QueryError> {
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (None, _) => Err(QueryError::new(ErrorKind::Syntax, "there is no statement")),
        (Some(_), false) => {
            Err(QueryError::new(ErrorKind::Syntax, "there is more than one statement"))
        }
    }
}
