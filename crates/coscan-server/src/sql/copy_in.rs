//! Rows that a client copies into a table.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Column, ParamValues, ScalarValue, TableReference, exec_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::queries::{ErrorKind, QueryError, RunningQuery};
use crate::sql::command_tag::Command;
use crate::sql::errors::from_datafusion;
use crate::sql::plan::{Planned, Work};
use crate::sql::write_statements::check;
use crate::sql::{Session, SqlService, normalized};

/// The batches that wait for the query which inserts them.
const BATCHES_WAITING: usize = 2;

/// A part of what a client copies.
pub(crate) enum Copied {
    /// Rows, as texts.
    Rows(RecordBatch),
    /// The end of the rows. Without it, none are inserted.
    End,
}

/// A copy into a table that has begun.
pub(crate) struct RunningCopy {
    /// The query that inserts the rows. It returns their number.
    pub(crate) query: RunningQuery,
    pub(crate) rows: mpsc::Sender<Copied>,
    /// The columns of the rows, which are texts.
    pub(crate) columns: SchemaRef,
}

impl SqlService {
    /// Begins to copy rows into columns of a table; into all of them if none are named. Columns that are not named are NULL.
    ///
    /// # Errors
    /// If there is no such table or column, the user may not change it, or the query cannot run.
    pub(crate) async fn copy_into(
        &self,
        session: &Session,
        table: &ObjectName,
        columns: &[Ident],
    ) -> Result<RunningCopy, QueryError> {
        let state = self.state(session);
        let name = object_name_to_table_reference(table.clone(), true).map_err(from_datafusion)?;
        let schema = state.schema_for_ref(name.clone()).map_err(from_datafusion)?;
        let target = schema.table(name.table()).await.map_err(from_datafusion)?;
        let Some(target) = target else {
            let text = format!("table \"{name}\" does not exist");
            return Err(QueryError::new(ErrorKind::UnknownTable, text));
        };
        let of_table = target.schema();
        let columns = named_columns(&of_table, columns, &name)?;
        let unread = columns.iter().map(|&at| of_table.field(at));
        if let Some(field) = { unread }.find(|field| !has_text(field.data_type())) {
            let (name, data_type) = (field.name(), field.data_type());
            let text = format!(
                "COPY of column \"{name}\" of type {data_type} from text is not supported: insert its values"
            );
            return Err(QueryError::new(ErrorKind::NotSupported, text));
        }
        let texts = columns
            .iter()
            .map(|&column| Field::new(of_table.field(column).name(), DataType::Utf8, true));
        let texts = Arc::new(Schema::new(texts.collect::<Vec<_>>()));
        let (rows, received) = mpsc::channel(BATCHES_WAITING);
        let source = CopySource { schema: Arc::clone(&texts), rows: Mutex::new(Some(received)) };
        let source = StreamingTable::try_new(Arc::clone(&texts), vec![Arc::new(source)]);
        let source = provider_as_source(Arc::new(source.map_err(from_datafusion)?));
        let values = of_table.fields().iter().enumerate().map(|(position, field)| {
            let value = match columns.contains(&position) {
                true => Expr::Column(Column::new_unqualified(field.name())),
                false => Expr::Literal(ScalarValue::Null, None),
            };
            cast(value, field.data_type().clone()).alias(field.name())
        });
        let plan = LogicalPlanBuilder::scan("copy", source, None)
            .and_then(|plan| plan.project(values))
            .and_then(LogicalPlanBuilder::build)
            .and_then(|input| {
                let target = provider_as_source(target);
                LogicalPlanBuilder::insert_into(input, name.clone(), target, InsertOp::Append)
            })
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_datafusion)?;
        check(&plan, &session.user)?;
        let text = format!("COPY {name} FROM STDIN");
        let planned = Planned::of_plan(Command::Insert, text, Work::Query(Arc::new(plan)));
        let query = self.run(session, planned, ParamValues::List(Vec::new())).await?;
        Ok(RunningCopy { query, rows, columns: texts })
    }
}

/// Whether DataFusion reads values of a type from the texts that PostgreSQL writes for it.
fn has_text(data_type: &DataType) -> bool {
    !(data_type.is_nested()
        || data_type.is_binary()
        || matches!(data_type, DataType::FixedSizeBinary(_) | DataType::Interval(_)))
}

/// The positions of named columns; of all if none are named.
fn named_columns(
    of_table: &Schema,
    columns: &[Ident],
    table: &TableReference,
) -> Result<Vec<usize>, QueryError> {
    if columns.is_empty() {
        return Ok((0..of_table.fields().len()).collect());
    }
    let mut positions = Vec::with_capacity(columns.len());
    for column in columns {
        let name = normalized(column);
        let position = of_table.index_of(&name).map_err(|_| {
            let text = format!("table {table} has no column \"{name}\"");
            QueryError::new(ErrorKind::UnknownColumn, text)
        })?;
        if positions.contains(&position) {
            let text = format!("COPY names column \"{name}\" twice");
            return Err(QueryError::new(ErrorKind::Invalid, text));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// The rows that are copied, as a table that is read once.
struct CopySource {
    schema: SchemaRef,
    rows: Mutex<Option<mpsc::Receiver<Copied>>>,
}

impl PartitionStream for CopySource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let schema = Arc::clone(&self.schema);
        match rows {
            Some(rows) => {
                let rows = futures::stream::unfold(Some(rows), |rows| async {
                    let mut rows = rows?;
                    match rows.recv().await {
                        Some(Copied::Rows(batch)) => Some((Ok(batch), Some(rows))),
                        Some(Copied::End) => None,
                        // The client is gone, or its rows are wrong.
                        None => Some((exec_err!("the copy has not come to its end"), None)),
                    }
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, rows))
            }
            None => {
                let gone = exec_err!("copied rows are read once: copy them again");
                let gone = futures::stream::once(async { gone }).boxed();
                Box::pin(RecordBatchStreamAdapter::new(schema, gone))
            }
        }
    }
}

impl fmt::Debug for CopySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopySource").field("schema", &self.schema).finish_non_exhaustive()
    }
}
