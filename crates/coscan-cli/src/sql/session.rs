//! A DataFusion session whose Parquet tables are shared.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use coscan_core::PolicyKind;
use coscan_datafusion::{
    CoscanOptions, ManagedDatabase, ManagedStatement, QueryError, run_managed_statement,
};
use coscan_runtime::{BufferManager, ManagerReport, Options};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::TableReference;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use futures::StreamExt;

use crate::Failure;
use crate::sql::copy_from::{CopyFrom, copied_file};
use crate::sql::dialect::VersionedDialect;
use crate::sql::output::{Format, Printer};
use crate::sql::refresh::refreshed_table;
use crate::sql::{advice, settings, statements};

/// A statement that was executed or can be.
pub enum Prepared {
    /// The statement can be executed in the session.
    Plan(LogicalPlan),
    /// It was executed, with these rows if it has any.
    Executed(Option<SendableRecordBatchStream>),
}

/// A session for statements, and the format of their results.
pub struct Session {
    context: SessionContext,
    manager: BufferManager,
    /// The names of the tables that were added as files.
    pub(super) tables: Vec<String>,
    /// The database whose tables it has, if there is one.
    database: Option<ManagedDatabase>,
    /// The prefix of messages on its statements, if several sessions run.
    name: Option<String>,
    pub(super) format: Format,
    pub(super) rows_max: Option<usize>,
    pub(super) timing: bool,
}

impl Session {
    /// Creates a session without tables. `memory_bytes` is the memory budget of the buffer manager.
    ///
    /// # Errors
    /// If that is too little, or the session cannot be set up.
    pub fn new(memory_bytes: Option<u64>, policy: PolicyKind) -> Result<Self, Failure> {
        let options = memory_bytes.map_or_else(Options::default, Options::with_memory_bytes);
        let manager = BufferManager::new(options.policy(policy))?;
        let context = new_context(&manager).map_err(QueryError::from)?;
        Ok(Self {
            context,
            manager,
            tables: Vec::new(),
            database: None,
            name: None,
            format: Format::Table,
            rows_max: None,
            timing: true,
        })
    }

    /// Creates another session with the tables that were added to this one, which are opened once for both. Neither
    /// sees tables and settings that the other adds from now on.
    pub(super) async fn another(&self, name: &str) -> Result<Self, Failure> {
        let context = new_context(&self.manager).map_err(QueryError::from)?;
        self.copy_tables_to(&context).await.map_err(QueryError::from)?;
        if let Some(database) = &self.database {
            database.add_to(&context).map_err(QueryError::from)?;
        }
        Ok(Self {
            context,
            manager: self.manager.clone(),
            tables: self.tables.clone(),
            database: self.database.clone(),
            name: Some(name.to_owned()),
            ..*self
        })
    }

    async fn copy_tables_to(&self, context: &SessionContext) -> EngineResult<()> {
        for table in &self.tables {
            let table = TableReference::bare(table.as_str());
            let provider = self.context.table_provider(table.clone()).await?;
            context.register_table(table, provider)?;
        }
        Ok(())
    }

    /// Opens the database of a directory, and adds its tables.
    pub(super) async fn open_database(&mut self, directory: &Path) -> Result<(), Failure> {
        let coscan = CoscanOptions::new(&self.manager);
        #[cfg(feature = "delta")]
        let database = coscan_delta::open_database(coscan, directory).await;
        #[cfg(not(feature = "delta"))]
        let database = ManagedDatabase::open(coscan, directory).await;
        let database = database.map_err(|error| self.failure(error))?;
        database.add_to(&self.context).map_err(|error| self.failure(error))?;
        self.database = Some(database);
        Ok(())
    }

    /// Runs one statement and prints its result. Dropping the future cancels it.
    pub(super) async fn execute(
        &mut self,
        sql: &str,
        out: impl Write + Send,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let rows = async {
            match self.prepare(sql).await? {
                Prepared::Executed(rows) => Ok(rows),
                Prepared::Plan(plan) => {
                    self.context.execute_logical_plan(plan).await?.execute_stream().await.map(Some)
                }
            }
        };
        let Some(mut batches) = rows.await.map_err(|error| self.failure(error))? else {
            return Ok(());
        };
        // Statements such as CREATE return a result without columns.
        let has_rows = !batches.schema().fields().is_empty();
        let out = BufWriter::new(out);
        let mut printer = Printer::new(out, self.format, self.rows_max, batches.schema());
        while let Some(batch) = batches.next().await {
            printer.print(&batch.map_err(|error| self.failure(error))?)?;
        }
        let rows = if has_rows { Some(printer.finish()?) } else { None };
        if self.timing {
            let name = self.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
            let rows = rows.map_or(String::new(), |rows| {
                format!("{rows} {}, ", if rows == 1 { "row" } else { "rows" })
            });
            eprintln!("{name}{rows}{:.3} s", started.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Refuses a statement or an expression whose chains would exhaust a stack of [`STACK_BYTES`](crate::STACK_BYTES).
    ///
    /// # Errors
    /// If there is such a chain.
    #[cfg_attr(not(feature = "server"), allow(clippy::unnecessary_wraps))]
    pub fn check_chains(_sql: &str) -> EngineResult<()> {
        #[cfg(feature = "server")]
        coscan_server::check_chains(_sql, crate::STACK_BYTES)
            .map_err(|error| DataFusionError::Plan(error.text))?;
        Ok(())
    }

    /// Executes a statement of coscan, or plans any other.
    ///
    /// # Errors
    /// If the statement is invalid, or fails.
    pub async fn prepare(&self, sql: &str) -> EngineResult<Prepared> {
        Self::check_chains(sql)?;
        if let Some(table) =
            refreshed_table(sql).map_err(|text| DataFusionError::External(text.into()))?
        {
            coscan_datafusion::refresh(&self.context, table).await?;
            return Ok(Prepared::Executed(None));
        }
        match copied_file(sql).map_err(|text| DataFusionError::External(text.into()))? {
            Some(copy) => self.copy(&copy).await,
            None => self.prepare_statement(sql).await,
        }
    }

    async fn prepare_statement(&self, sql: &str) -> EngineResult<Prepared> {
        let statement = match statements::names_version(sql) {
            true => DFParserBuilder::new(sql)
                .with_dialect(&VersionedDialect)
                .build()?
                .parse_statement()?,
            false => self.parse(sql)?,
        };
        let plan = match run_managed_statement(&self.context, statement).await? {
            ManagedStatement::Plan(plan) => plan,
            ManagedStatement::Executed(batches) => {
                return stream_of(batches).map(Prepared::Executed);
            }
        };
        match settings::run(&self.context, &plan)? {
            true => Ok(Prepared::Executed(None)),
            false => Ok(Prepared::Plan(plan)),
        }
    }

    /// Inserts the rows of a file.
    async fn copy(&self, copy: &CopyFrom) -> EngineResult<Prepared> {
        let insert = copy.start(&self.context).await?;
        let prepared = self.prepare_statement(&insert).await;
        // The statement has been planned.
        CopyFrom::finish(&self.context)?;
        prepared
    }

    /// The session of the engine.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The buffer manager.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        &self.manager
    }

    /// The statement in the dialect of the session.
    fn parse(&self, sql: &str) -> EngineResult<Statement> {
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        state.sql_to_statement(sql, &dialect)
    }

    /// The reason why a statement failed, with advice.
    pub(super) fn failure(&self, error: DataFusionError) -> Failure {
        advice::failure(error.into(), &self.context, self.name.is_none())
    }

    /// The report of the buffer manager.
    pub(super) fn report(&self) -> ManagerReport {
        self.manager.report()
    }
}

/// The result of a statement that was executed; `None` if it has none.
fn stream_of(batches: Vec<RecordBatch>) -> EngineResult<Option<SendableRecordBatchStream>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let schema = first.schema();
    Ok(Some(Box::pin(MemoryStream::try_new(batches, schema, None)?)))
}

fn new_context(manager: &BufferManager) -> EngineResult<SessionContext> {
    let config = SessionConfig::new().with_information_schema(true);
    // Queries may name files: SELECT … FROM 'trips.parquet'.
    let context = coscan_datafusion::enable_url_table(SessionContext::new_with_config(config));
    coscan_datafusion::install(&context, manager)?;
    #[cfg(feature = "delta")]
    coscan_delta::install(&context)?;
    Ok(context)
}
