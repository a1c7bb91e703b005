//! From SQL to a plan that may run.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::Statement;
use futures::FutureExt;

use crate::engine::array_parameters::infer_arrays;
use crate::engine::depth::check_depth;
use crate::engine::errors::{from_engine, from_parser};
use crate::engine::pg_catalog::rewrite;
use crate::engine::statements::{Command, SessionStatement, query_command, session_statement};
use crate::engine::{CATALOG, Engine, SCHEMA, Session};
use crate::queries::{ErrorKind, QueryError};

/// The most parameters of a statement, as in PostgreSQL.
const PARAMETERS_MAX: usize = 65_535;

/// The most bytes that the values of parameters may take in a plan.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// One statement.
#[derive(Clone, Debug)]
pub enum Sql<'a> {
    /// As text.
    Text(&'a str),
    /// As one of those that [`Engine::parse`] returned for a text.
    Parsed(Box<Statement>, &'a str),
}

/// A statement that is planned and may run, several times if need be.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What it is.
    pub command: Command,
    /// The columns of its result; none for statements without one.
    pub schema: SchemaRef,
    /// The types of its parameters, `$1` first; `None` where nothing tells.
    pub parameters: Vec<Option<FieldRef>>,
    pub(super) sql: Arc<str>,
    bound_bytes: usize,
    pub(super) work: Work,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Session(SessionStatement),
    Query(Arc<LogicalPlan>),
}

impl Planned {
    /// The statement with values for its parameters, `$1` first. It then has none, and its schema is certain.
    ///
    /// # Errors
    /// If there are more or fewer values than parameters, or the statement makes no sense with them.
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
        let plan = plan.map_err(from_engine)?;
        Ok(Self {
            command: self.command,
            schema: Arc::new(plan.schema().as_arrow().clone()),
            parameters: Vec::new(),
            sql: Arc::clone(&self.sql),
            bound_bytes,
            work: Work::Query(Arc::new(plan)),
        })
    }

    /// The bytes of its text and of the values in it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sql.len() + self.bound_bytes
    }

    /// Whether it has a result. SET, BEGIN and their like have none: they concern the session only.
    #[must_use]
    pub fn returns_rows(&self) -> bool {
        !matches!(self.work, Work::Session(_)) || !self.schema.fields().is_empty()
    }

    /// The text.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

impl Engine {
    /// The statements in a text.
    ///
    /// # Errors
    /// If it cannot be parsed, or has expressions that are too deep.
    pub fn parse(&self, text: &str) -> Result<Vec<Statement>, QueryError> {
        check_depth(text)?;
        let parsed = std::panic::catch_unwind(AssertUnwindSafe(|| self.parser.parse(text)));
        let parsed = parsed.map_err(|_| panicked("parsing"))?;
        let mut statements = parsed.map_err(|error| from_parser(&error))?;
        statements.iter_mut().for_each(rewrite);
        Ok(statements)
    }

    /// Plans a statement, within what the user was granted. It needs no slot and reads no data.
    ///
    /// # Errors
    /// If it cannot be parsed or planned, or does something else than reading granted tables.
    pub async fn plan(&self, session: &Session, sql: Sql<'_>) -> Result<Planned, QueryError> {
        let (statement, text) = match sql {
            Sql::Parsed(statement, text) => (*statement, text),
            Sql::Text(text) => (self.single(text)?, text),
        };
        if let Some((command, statement)) = session_statement(&statement)? {
            return Ok(Planned {
                command,
                schema: statement.schema(),
                parameters: Vec::new(),
                sql: text.into(),
                bound_bytes: 0,
                work: Work::Session(statement),
            });
        }
        let command = query_command(&statement);
        let state = self.state(session, None);
        let statement = EngineStatement::Statement(Box::new(statement));
        let planning = AssertUnwindSafe(state.statement_to_plan(statement)).catch_unwind();
        let plan = planning.await.map_err(|_| panicked("planning"))?;
        let plan = plan.and_then(infer_arrays).map_err(from_engine)?;
        check(&plan)?;
        Ok(Planned {
            command,
            schema: Arc::new(plan.schema().as_arrow().clone()),
            parameters: parameters(&plan)?,
            sql: text.into(),
            bound_bytes: 0,
            work: Work::Query(Arc::new(plan)),
        })
    }

    fn single(&self, text: &str) -> Result<Statement, QueryError> {
        let mut statements = self.parse(text)?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => Ok(statement),
            (None, _) => Err(QueryError::new(ErrorKind::Syntax, "there is no statement")),
            (Some(_), false) => {
                Err(QueryError::new(ErrorKind::Syntax, "there is more than one statement"))
            }
        }
    }
}

/// The error after a fault of the server; the details are in its log.
pub(super) fn panicked(what: &str) -> QueryError {
    QueryError::new(
        ErrorKind::Internal,
        format!("{what} the statement failed; the server's log says where"),
    )
}

/// Only what reads tables may run.
pub(super) fn check(plan: &LogicalPlan) -> Result<(), QueryError> {
    let reads_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads_only.verify_plan(plan).map_err(|_| {
        let text = "this server reads tables only: SELECT, EXPLAIN, SHOW, SET; it changes no data, tables or files";
        QueryError::new(ErrorKind::NotAllowed, text)
    })
}

/// Whether a plan takes so little that it needs no slot: it looks at system tables, or at none, one at a time.
pub(super) fn is_light(plan: &LogicalPlan) -> bool {
    let mut is_light = true;
    let walked = plan.apply_with_subqueries(|plan| {
        is_light &= match plan {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::SubqueryAlias(_) => true,
            LogicalPlan::TableScan(scan) => {
                let table = scan.table_name.clone().resolve(CATALOG, SCHEMA);
                &*table.schema == "system"
            }
            _ => false,
        };
        Ok(if is_light { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && is_light
}

/// The bytes that values take in a plan: each mention of a parameter copies its value.
///
/// # Errors
/// If they take too many.
pub(super) fn value_bytes(plan: &LogicalPlan, values: &ParamValues) -> Result<usize, QueryError> {
    let ParamValues::List(values) = values else { return Ok(0) };
    if values.is_empty() {
        return Ok(0);
    }
    let sizes: Vec<_> = values.iter().map(|value| value.value().size()).collect();
    let mut bytes = 0_usize;
    let walked = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::Placeholder(parameter) = expression
                    && let Some(number) = parameter.id.strip_prefix('$')
                    && let Ok(number) = number.parse::<usize>()
                    && let Some(size) = sizes.get(number.wrapping_sub(1))
                {
                    bytes = bytes.saturating_add(*size);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(from_engine)?;
    if bytes > VALUE_BYTES_MAX {
        let text = format!(
            "the values of the parameters take {bytes} bytes, counted once for each mention; the most is \
             {VALUE_BYTES_MAX}"
        );
        return Err(QueryError::new(ErrorKind::TooComplex, text));
    }
    Ok(bytes)
}

fn parameters(plan: &LogicalPlan) -> Result<Vec<Option<FieldRef>>, QueryError> {
    let mut parameters = Vec::new();
    let casts = casts(plan).map_err(from_engine)?;
    for (name, field) in plan.get_parameter_fields().map_err(from_engine)? {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let number = number.filter(|number| (1..=PARAMETERS_MAX).contains(number));
        let number = number.ok_or_else(|| {
            let text = format!("`{name}` is no parameter; they are called $1 to ${PARAMETERS_MAX}");
            QueryError::new(ErrorKind::Syntax, text)
        })?;
        if parameters.len() < number {
            parameters.resize(number, None);
        }
        parameters[number - 1] = field.or_else(|| casts.get(&name).cloned());
    }
    Ok(parameters)
}

/// The types of parameters that are cast: `$1::int`, `CAST($1 AS int)`.
fn casts(plan: &LogicalPlan) -> Result<HashMap<String, FieldRef>, DataFusionError> {
    let mut casts = HashMap::new();
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::Cast(cast) = expression
                    && let Expr::Placeholder(parameter) = cast.expr.as_ref()
                {
                    let data_type = cast.field.data_type().clone();
                    let field = Field::new(&parameter.id, data_type, true);
                    casts.insert(parameter.id.clone(), Arc::new(field));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(casts)
}
