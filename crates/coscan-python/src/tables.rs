//! The tables of a session: files, Arrow data, and tables for other programs.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Arc, LazyLock, Mutex, mpsc};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::error::ArrowError;
use coscan_cli::Session;
use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, TableReference, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as EngineResult;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{TaskContext, TaskContextProvider};
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use datafusion_ffi::table_provider::FFI_TableProvider;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow_table::ArrowTable;
use crate::capsules;
use crate::errors::{Error, from_engine};
use crate::process::{OfProcess, handle, receive};

/// The name by which `datafusion` knows tables of other packages.
const TABLE_PROVIDER: &CStr = c"datafusion_table_provider";

/// Adds a table of files, or a Delta table, in place of one of the same name.
pub(crate) async fn add_files(
    session: &Session,
    name: &str,
    locations: &[String],
    options: &[(String, String)],
) -> EngineResult<()> {
    if let [location] = locations {
        return session.create_table(name, location, options).await;
    }
    if !options.is_empty() {
        return plan_err!(
            "options are those of one location; leave them out, or register {name} as one"
        );
    }
    replace(session.context(), name, open(session, name, locations).await?)
}

/// Adds a table in place of one of the same name.
pub(crate) fn replace(
    context: &SessionContext,
    name: &str,
    table: Arc<dyn TableProvider>,
) -> EngineResult<()> {
    let name = TableReference::bare(name);
    context.deregister_table(name.clone())?;
    context.register_table(name, table).map(drop)
}

/// The files of several locations as one table.
async fn open(
    session: &Session,
    name: &str,
    locations: &[String],
) -> EngineResult<Arc<SharedTableProvider>> {
    let coscan = CoscanOptions::new(session.manager());
    SharedTableProvider::open_as(&coscan, name, locations).await.map(Arc::new)
}

/// A table of Arrow data, which is read to its end. It counts for the budget of the session.
pub(crate) fn of_data(
    py: Python<'_>,
    session: &SessionContext,
    name: &str,
    data: &Bound<'_, PyAny>,
) -> PyResult<Arc<ArrowTable>> {
    let reader = capsules::reader(data)?;
    let consumer = MemoryConsumer::new(format!("table {name}"));
    let memory = consumer.register(&session.runtime_env().memory_pool);
    // The data may come from Python, or from a query of ours, so the threads of queries must not wait for it.
    let (sender, receiver) = mpsc::sync_channel(1);
    let is_wanted = Arc::new(());
    let wanted = Arc::downgrade(&is_wanted);
    let read = move || {
        let schema = reader.schema();
        let is_wanted = |_: &Result<RecordBatch, ArrowError>| wanted.strong_count() > 0;
        let table = ArrowTable::read(schema, reader.take_while(is_wanted), memory);
        let _nobody_waits = sender.send(table);
    };
    std::thread::Builder::new()
        .name("coscan-reader".to_owned())
        .spawn(read)
        .map_err(|error| Error::new_err(format!("cannot start threads: {error}")))?;
    let table = receive(py, &Mutex::new(receiver))?;
    drop(is_wanted);
    let table = table.ok_or_else(|| Error::new_err("the data could not be read"))?;
    table.map(Arc::new).map_err(from_engine)
}

/// Columns of the rows that pass a condition, of a table of the session or of files.
pub(crate) async fn scan(
    session: &Session,
    locations: &[String],
    columns: Option<Vec<String>>,
    condition: Option<&str>,
) -> EngineResult<DataFrame> {
    let context = session.context();
    let mut rows = match locations {
        [name] => match context.table(TableReference::bare(name.as_str())).await {
            Ok(table) => table,
            // Says what is wrong with the files.
            Err(_) if name.contains(['/', '.']) => {
                context.read_table(open(session, name, locations).await?)?
            }
            Err(_) => return plan_err!("table '{name}' not found"),
        },
        _ => {
            let name = locations.first().map_or("", String::as_str);
            context.read_table(open(session, name, locations).await?)?
        }
    };
    if let Some(condition) = condition {
        Session::check_chains(condition)?;
        let condition = rows.parse_sql_expr(condition)?;
        rows = rows.filter(condition)?;
    }
    if let Some(columns) = columns {
        let columns = columns.into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
        rows = rows.select(columns)?;
    }
    Ok(rows)
}

/// The tables of files of a session, by name.
pub(crate) async fn files(
    session: &Session,
) -> EngineResult<BTreeMap<String, SharedTableProvider>> {
    let context = session.context();
    let mut tables = BTreeMap::new();
    let Some(catalog) = context.catalog(&default_catalog(context)) else { return Ok(tables) };
    let state = context.state();
    let Some(schema) = catalog.schema(&state.config_options().catalog.default_schema) else {
        return Ok(tables);
    };
    for name in schema.table_names() {
        let table = schema.table(&name).await?;
        if let Some(files) =
            table.as_deref().and_then(|table| table.downcast_ref::<SharedTableProvider>())
        {
            tables.insert(name, files.clone());
        }
    }
    Ok(tables)
}

fn default_catalog(context: &SessionContext) -> String {
    context.state().config_options().catalog.default_catalog.clone()
}

/// A table of a session, for the package `datafusion`: its contexts register it by `__datafusion_table_provider__`.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Table(OfProcess<Arc<dyn TableProvider>>);

impl Table {
    pub(crate) fn new(table: Arc<dyn TableProvider>) -> Self {
        Self(OfProcess::new(table))
    }
}

#[pymethods]
impl Table {
    /// The table by the interface that `datafusion` 55 has for foreign ones.
    #[pyo3(signature = (session=None))]
    fn __datafusion_table_provider__<'py>(
        &self,
        py: Python<'py>,
        session: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Filters are decoded here, with functions of our own.
        let _others_functions = session;
        let table = Arc::clone(self.0.get()?);
        let functions: Arc<dyn TaskContextProvider> = FUNCTIONS.clone();
        let table = FFI_TableProvider::new(table, true, Some(handle()?), &functions, None);
        PyCapsule::new_with_value(py, table, TABLE_PROVIDER)
    }
}

/// The functions by which filters are decoded. Tables refer to them weakly, and may outlive their session.
static FUNCTIONS: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(Functions(SessionContext::new().task_ctx())));

#[derive(Debug)]
struct Functions(Arc<TaskContext>);

impl TaskContextProvider for Functions {
    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::clone(&self.0)
    }
}
