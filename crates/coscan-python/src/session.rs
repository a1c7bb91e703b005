//! Sessions.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use coscan_cli::{Prepared, Session as SqlSession};
use coscan_core::PolicyKind;
use coscan_runtime::usable_memory_bytes;
use datafusion::common::{ParamValues, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::logical_expr::LogicalPlan;

use futures::TryStreamExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{Error, from_any, from_engine};
use crate::process::{OfProcess, wait};
use crate::result::Result;
use crate::{capsules, parameters};

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
                .parse()
                .map_err(|error| PyValueError::new_err(format!("{name} is no policy: {error}")))?,
        };
        let default = || (usable_memory_bytes().unwrap_or_default() / 4).max(MEMORY_BYTES_MIN);
        let memory = memory.unwrap_or_else(default);
        let session = py.detach(|| SqlSession::new(Some(memory), policy)).map_err(from_any)?;
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
        let parameters = parameters.map(|given| parameters::all(&given)).transpose()?;
        let run = async move { query(&session, &text, parameters).await };
        wait(py, run)?.map(Result::new).map_err(from_engine)
    }

    /// Adds a table of files.
    fn register_files(&self, py: Python<'_>, name: String, location: String) -> PyResult<()> {
        let session = Arc::clone(self.0.get()?);
        wait(py, async move { session.create_table(&name, &location, &[]).await })?
            .map_err(from_engine)
    }

    /// Adds a table of Arrow data, which it copies.
    fn register_data(&self, py: Python<'_>, name: String, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let session = Arc::clone(self.0.get()?);
        let reader = capsules::reader(data)?;
        // The data may come from Python, or from a query of ours, so the threads of queries must not wait for it.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let read = move || {
            let schema = arrow::array::RecordBatchReader::schema(&reader);
            let batches: std::result::Result<Vec<RecordBatch>, _> = reader.collect();
            let table = batches
                .map_err(DataFusionError::from)
                .and_then(|batches| MemTable::try_new(Arc::clone(&schema), vec![batches]));
            let _nobody_waits = sender.send(table);
        };
        std::thread::Builder::new()
            .name("coscan-reader".to_owned())
            .spawn(read)
            .map_err(|error| Error::new_err(format!("cannot start threads: {error}")))?;
        let table = crate::process::receive(py, &std::sync::Mutex::new(receiver))?;
        let table = table.ok_or_else(|| Error::new_err("the data could not be read"))?;
        let table = Arc::new(table.map_err(from_engine)?);
        let name = TableReference::bare(name);
        session.context().register_table(name, table).map(drop).map_err(from_engine)
    }

    /// Removes a table.
    fn deregister(&self, name: &str) -> PyResult<()> {
        let removed = self.0.get()?.context().deregister_table(TableReference::bare(name));
        match removed.map_err(from_engine)? {
            Some(_) => Ok(()),
            None => Err(Error::new_err(format!("there is no table {name}"))),
        }
    }
}

/// A query that can be executed. Other statements are executed here, and the query gives their rows.
async fn query(
    session: &SqlSession,
    text: &str,
    parameters: Option<ParamValues>,
) -> EngineResult<DataFrame> {
    let context = session.context();
    let plan = match session.prepare(text).await? {
        Prepared::Plan(plan) => plan,
        Prepared::Executed(rows) => {
            let batches = match rows {
                Some(rows) => rows.try_collect().await?,
                None => vec![RecordBatch::new_empty(Arc::new(Schema::empty()))],
            };
            return context.read_batches(batches);
        }
    };
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
        // Says now what is wrong.
        query.clone().create_physical_plan().await?;
        return Ok(query);
    }
    let schema = Arc::clone(query.schema().inner());
    let mut batches = query.collect().await?;
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    context.read_batches(batches)
}
