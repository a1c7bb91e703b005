//! The sink of a statement that changes a managed table: it applies the rows of its input to a transaction, and commits.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, collect};

use crate::dml::apply::{AppliedChanges, Changes};
use crate::dml::operation::Operation;
use crate::error::from_database;
use crate::managed::snapshot::ManagedSnapshot;
use crate::managed::table::ManagedTable;

/// How often a statement is executed before its conflict with another one is an error.
const ATTEMPTS_MAX: u32 = 4;

/// The number of times that a statement was executed before, in the configuration of a session.
#[derive(Debug)]
struct Attempts(u32);

/// Plans the changes of a statement, which is planned and executed again after a conflict.
///
/// # Errors
/// If the session is not one of the engine.
pub(crate) fn plan_change(
    session: &dyn Session,
    table: &ManagedTable,
    snapshot: ManagedSnapshot,
    operation: Operation,
    input: Arc<dyn ExecutionPlan>,
    statement: Arc<LogicalPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
        return internal_err!("changes are planned in a session of the engine");
    };
    let attempts = state.config().get_extension::<Attempts>().map_or(0, |attempts| attempts.0);
    let may_repeat = snapshot.is_own() && attempts + 1 < ATTEMPTS_MAX;
    let retry = may_repeat.then(|| {
        let mut state = state.clone();
        state.config_mut().set_extension(Arc::new(Attempts(attempts + 1)));
        Retry { statement, state: Box::new(state) }
    });
    let (table, schema) = (table.clone(), input.schema());
    let sink = ChangeSink { table, snapshot, operation, schema, retry };
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
}

/// Applies rows as changes.
struct ChangeSink {
    table: ManagedTable,
    snapshot: ManagedSnapshot,
    operation: Operation,
    schema: SchemaRef,
    retry: Option<Retry>,
}

/// A statement that can be planned and executed again.
struct Retry {
    statement: Arc<LogicalPlan>,
    state: Box<SessionState>,
}

impl Retry {
    /// Executes the statement on the tables as they are now. Returns the number of changed rows.
    async fn execute(&self, context: &Arc<TaskContext>) -> Result<u64> {
        let Self { statement, state } = self;
        let plan = state.query_planner().create_physical_plan(statement, &**state).await?;
        let batches = collect(plan, Arc::clone(context)).await?;
        let counts = batches.iter().map(|batch| batch.column(0).as_primitive::<UInt64Type>());
        Ok(counts.flat_map(|counts| counts.iter().flatten()).sum())
    }
}

#[async_trait]
impl DataSink for ChangeSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let transaction = self.snapshot.transaction();
        let mut changes = Changes::new(&self.table, &self.operation, transaction, context)?;
        changes.apply_all(data).await?;
        let AppliedChanges { transaction, count, file, memory } = changes.finish().await?;
        let bytes = memory.size() as u64;
        drop(memory);
        let Err(error) = self.snapshot.finish(transaction, bytes).await else { return Ok(count) };
        // After an error of the log, the commit may be durable.
        if let (Some(path), coscan_database::Error::Conflict { .. }) = (file, &error) {
            self.table.database().files().remove(&path).await;
        }
        match (error, &self.retry) {
            (coscan_database::Error::Conflict { after, .. }, Some(retry)) => {
                // Or the statement would not see the commit that it has lost to, and lose again.
                let durable = self.table.database().versions().durable(after).await;
                durable.map_err(from_database)?;
                Box::pin(retry.execute(context)).await
            }
            (error, _) => Err(from_database(error)),
        }
    }
}

impl DisplayAs for ChangeSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, table) = (&self.operation, self.table.name());
        write!(f, "{operation} table={table}")?;
        let columns = match operation {
            Operation::Update { columns } | Operation::Merge { columns, .. } => columns,
            _ => return Ok(()),
        };
        let fields = self.table.columns().fields();
        let names: Vec<_> = columns.iter().map(|&column| fields[column].name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))
    }
}

impl fmt::Debug for ChangeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeSink")
            .field("table", &self.table)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}
