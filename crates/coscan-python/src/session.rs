//! Sessions.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use coscan_cli::{Prepared, Session as SqlSession};
use coscan_core::PolicyKind;
use coscan_runtime::usable_memory_bytes;
use coscan_server::queries::ErrorKind;
use coscan_server::query_error;
use datafusion::common::{ParamValues, TableReference};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::errors::{from_any, from_engine, wrong};
use crate::plans::PlanError;
use crate::process::{OfProcess, detached, wait};
use crate::result::Result;
use crate::server::{Server, Settings};
use crate::statement::Statement;
use crate::tables::Table;
use crate::{capsules, parameters, plans, tables};

/// The least default memory, in bytes.
const MEMORY_BYTES_MIN: u64 = 256 << 20;

/// A session: tables, settings, and memory that all its queries share.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Session(OfProcess<Arc<SqlSession>>);

#[pymethods]
impl Session {
    /// `memory` is the budget in bytes, a quarter of what this process may use by default.
    #[new]
    #[pyo3(signature = (memory=None, policy=None))]
    fn new(py: Python<'_>, memory: Option<u64>, policy: Option<&str>) -> PyResult<Self> {
        let policy = match policy {
            None => PolicyKind::Relevance,
            Some(name) => name
                .parse::<PolicyKind>()
                .map_err(|error| PyValueError::new_err(error.to_string()))?,
        };
        let default = || (usable_memory_bytes().unwrap_or_default() / 4).max(MEMORY_BYTES_MIN);
        let memory = memory.unwrap_or_else(default);
        let session = detached(py, || SqlSession::new(Some(memory), policy)).map_err(from_any)?;
        Ok(Self(OfProcess::new(Arc::new(session))))
    }

    /// The memory budget in bytes.
    #[getter]
    fn memory(&self) -> PyResult<u64> {
        Ok(self.0.get()?.manager().options().memory_bytes)
    }

    /// The bytes that pages, decoded columns, footers and operators take of the budget now.
    #[getter]
    fn memory_used(&self) -> PyResult<u64> {
        let report = self.0.get()?.manager().report();
        Ok(report.pool_held_bytes
            + report.decoded_bytes
            + report.operator_bytes
            + report.metadata_bytes)
    }

    /// The bytes that operators and results take of the budget now.
    #[getter]
    fn operator_memory(&self) -> PyResult<u64> {
        Ok(self.0.get()?.manager().report().operator_bytes)
    }

    /// Plans a query. Runs any other statement at once.
    #[pyo3(signature = (text, parameters=None))]
    fn sql(
        &self,
        py: Python<'_>,
        text: String,
        parameters: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Result> {
        let session = Arc::clone(self.0.get()?);
        let is_listed = parameters.as_ref().is_some_and(|given| given.cast::<PyMapping>().is_err());
        let text = if is_listed { parameters::numbered(&text)?.into_owned() } else { text };
        let parameters = parameters.map(|given| parameters::all(&given)).transpose()?;
        let run = async move { query(&session, &text, parameters).await };
        wait(py, run)?.map(Result::of).map_err(from_engine)
    }

    /// Adds a table of files.
    fn register_files(
        &self,
        py: Python<'_>,
        name: String,
        locations: Vec<String>,
        options: Vec<(String, String)>,
    ) -> PyResult<()> {
        let session = Arc::clone(self.0.get()?);
        wait(py, async move { tables::add_files(&session, &name, &locations, &options).await })?
            .map_err(from_engine)
    }

    /// Adds a table of Arrow data, which it keeps.
    fn register_data(&self, py: Python<'_>, name: &str, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let context = self.0.get()?.context();
        let table = tables::of_data(py, context, name, data)?;
        tables::replace(context, name, table).map_err(from_engine)
    }

    /// Plans a scan of a table or of files.
    fn scan(
        &self,
        py: Python<'_>,
        locations: Vec<String>,
        columns: Option<Vec<String>>,
        condition: Option<String>,
    ) -> PyResult<Result> {
        let session = Arc::clone(self.0.get()?);
        let scan = async move {
            let query = tables::scan(&session, &locations, columns, condition.as_deref()).await?;
            // Errors of planning come now, not when rows are first asked for.
            query.clone().create_physical_plan().await?;
            Ok(query)
        };
        wait(py, scan)?.map(Result::new).map_err(from_engine)
    }

    /// A table for the package `datafusion`.
    fn table(&self, py: Python<'_>, name: String) -> PyResult<Table> {
        let session = Arc::clone(self.0.get()?);
        let find =
            async move { session.context().table_provider(TableReference::bare(name)).await };
        wait(py, find)?.map(Table::new).map_err(from_engine)
    }

    /// Plans the bytes of a plan of the package `datafusion`. Returns the reason instead if it cannot be executed here.
    fn plan(&self, py: Python<'_>, bytes: Vec<u8>) -> PyResult<(Option<Result>, String)> {
        let session = Arc::clone(self.0.get()?);
        match wait(py, async move { plans::decoded(session.context(), &bytes).await })? {
            Ok(query) => Ok((Some(Result::new(query)), String::new())),
            Err(PlanError::NotHere(reason)) => Ok((None, query_error(reason).text)),
            Err(PlanError::Failed(error)) => Err(from_engine(error)),
        }
    }

    /// Rows that another package computes when they are asked for. `schema` has that of the rows, `note` says why.
    fn foreign(
        &self,
        schema: &Bound<'_, PyAny>,
        rows: Py<PyAny>,
        note: String,
    ) -> PyResult<Result> {
        let schema = capsules::read_schema(schema)?;
        let rows = plans::foreign(self.0.get()?.context(), &schema, rows).map_err(from_engine)?;
        Ok(Result::new(rows).with_note(note))
    }

    /// Starts a server on the files of this session.
    #[pyo3(signature = (config, users_file, postgres, flight, http))]
    fn serve(
        &self,
        py: Python<'_>,
        config: Option<PathBuf>,
        users_file: Option<PathBuf>,
        postgres: Option<String>,
        flight: Option<String>,
        http: Option<String>,
    ) -> PyResult<Server> {
        let settings = Settings { config, users_file, postgres, flight, http };
        Server::start(py, Arc::clone(self.0.get()?), settings)
    }

    /// Removes a table.
    fn deregister(&self, name: &str) -> PyResult<()> {
        let removed = self.0.get()?.context().deregister_table(TableReference::bare(name));
        match removed.map_err(from_engine)? {
            Some(_) => Ok(()),
            None => Err(wrong(ErrorKind::UnknownTable, format!("there is no table {name}"))),
        }
    }
}

/// A query that can be executed. Other statements are executed here, and the query gives their rows.
async fn query(
    session: &SqlSession,
    text: &str,
    parameters: Option<ParamValues>,
) -> EngineResult<Statement> {
    let context = session.context();
    if let Some(given) = &parameters {
        SqlSession::check_chains(text)?;
        parameters::check_kind(given, context, text)?;
    }
    let plan = match session.prepare(text).await? {
        Prepared::Plan(plan) => plan,
        Prepared::Executed(rows) => {
            let batches = match rows {
                Some(rows) => rows.try_collect().await?,
                None => vec![RecordBatch::new_empty(Arc::new(Schema::empty()))],
            };
            return Statement::executed(context.read_batches(batches.clone())?, batches);
        }
    };
    // PREPARE gets its parameters later.
    if !matches!(plan, LogicalPlan::Statement(_)) {
        parameters::check(parameters.as_ref(), &plan)?;
    }
    let plan = match parameters {
        Some(parameters) => plan.with_param_values(parameters)?,
        None => plan,
    };
    let is_query = !matches!(
        plan,
        LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
    );
    let query = context.execute_logical_plan(plan).await?;
    if is_query {
        // Errors of planning come now, not when rows are first asked for.
        query.clone().create_physical_plan().await?;
        return Ok(Statement::new(query));
    }
    let schema = Arc::clone(query.schema().inner());
    let mut batches = query.collect().await?;
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    Statement::executed(context.read_batches(batches.clone())?, batches)
}
