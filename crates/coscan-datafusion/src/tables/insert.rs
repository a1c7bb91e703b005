//! `INSERT INTO` a table of listed files: the engine's own table writes a new file, and the next query sees it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProviderFactory};
use datafusion::common::internal_err;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::CreateExternalTable;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::tables::snapshots::Snapshots;

/// Plans an insert into the table that a statement has created.
///
/// # Errors
/// As the engine's own table: if the location is no directory, or the columns do not match.
pub(crate) async fn plan_insert(
    session: &dyn Session,
    created_by: &CreateExternalTable,
    snapshots: &Arc<Snapshots>,
    input: Arc<dyn ExecutionPlan>,
    operation: InsertOp,
) -> Result<Arc<dyn ExecutionPlan>> {
    let table = ListingTableFactory::new().create(session, created_by).await?;
    let plan = table.insert_into(session, input, operation).await?;
    let Some(insert) = plan.downcast_ref::<DataSinkExec>() else {
        return internal_err!("an insert of the engine is a sink");
    };
    let sink = InsertedFiles { insert: insert.clone(), snapshots: Arc::clone(snapshots) };
    let (input, order) = (Arc::clone(insert.input()), insert.sort_order().clone());
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
}

/// The engine's sink, after which the files of the table are listed again.
#[derive(Debug)]
struct InsertedFiles {
    insert: DataSinkExec,
    snapshots: Arc<Snapshots>,
}

#[async_trait]
impl DataSink for InsertedFiles {
    fn metrics(&self) -> Option<MetricsSet> {
        self.insert.sink().metrics()
    }

    fn schema(&self) -> &SchemaRef {
        self.insert.sink().schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let rows = self.insert.sink().write_all(data, context).await?;
        // The rows are written, so this is no reason to report a failure, after which they would be inserted again.
        if let Err(error) = self.snapshots.refresh(None).await {
            log::warn!("inserted rows are not seen before the next refresh: {error}");
        }
        Ok(rows)
    }
}

impl DisplayAs for InsertedFiles {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.insert.sink().fmt_as(kind, f)
    }
}
