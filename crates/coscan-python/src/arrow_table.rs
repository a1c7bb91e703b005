//! Tables of Arrow data, which counts for the budget of their session.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use async_trait::async_trait;
use coscan_datafusion::slice_bytes;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// Rows in memory as a table.
#[derive(Debug)]
pub(crate) struct ArrowTable {
    rows: MemTable,
    _memory: MemoryReservation,
}

impl ArrowTable {
    /// A table of all rows of a reader.
    ///
    /// # Errors
    /// If they cannot be read, or are more than the rest of the budget from which `memory` is reserved.
    pub(crate) fn read(
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let counted = batches.map(|batch| {
            let batch = batch?;
            memory.try_grow(slice_bytes(&batch))?;
            Ok(batch)
        });
        let batches = counted.collect::<Result<Vec<_>>>()?;
        Ok(Self { rows: MemTable::try_new(schema, vec![batches])?, _memory: memory })
    }
}

/// Leaves all to the rows. Rows that statements insert later are not counted.
#[async_trait]
impl TableProvider for ArrowTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        self.rows.table_type()
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(session, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.insert_into(session, input, insert).await
    }

    async fn delete_from(
        &self,
        session: &dyn Session,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.delete_from(session, filters).await
    }

    async fn update(
        &self,
        session: &dyn Session,
        assignments: Vec<(String, Expr)>,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.update(session, assignments, filters).await
    }
}
