//! `pg_settings`: the settings of the session, and the limits of PostgreSQL that drivers look up.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::sql::settings::transactional::SharedSettings;
use crate::users::User;

pub(super) const TABLE: &str = "pg_settings";

/// Columns that are always NULL here.
const UNKNOWN: [&str; 15] = [
    "unit",
    "category",
    "short_desc",
    "extra_desc",
    "context",
    "vartype",
    "source",
    "min_val",
    "max_val",
    "enumvals",
    "boot_val",
    "reset_val",
    "sourcefile",
    "sourceline",
    "pending_restart",
];

pub(super) fn table(settings: &SharedSettings, user: &Arc<User>) -> Result<Arc<dyn TableProvider>> {
    let columns = ["name", "setting"].into_iter().chain(UNKNOWN);
    let fields: Vec<_> = columns.map(|name| Field::new(name, DataType::Utf8, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let (settings, user) = (Arc::clone(settings), Arc::clone(user));
    let rows = SettingRows { schema: Arc::clone(&schema), settings, user };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(rows)])?))
}

/// The settings at the time when a query runs.
#[derive(Debug)]
struct SettingRows {
    schema: SchemaRef,
    settings: SharedSettings,
    user: Arc<User>,
}

impl SettingRows {
    fn rows(&self) -> Result<RecordBatch> {
        let mut all = self.settings.now().all(&self.user);
        // The maximum number of keys of an index. Drivers read it before they request keys.
        all.push(("max_index_keys".to_owned(), "32".to_owned()));
        let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let unknown: ArrayRef = Arc::new(StringArray::new_null(names.len()));
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(names)), Arc::new(StringArray::from(values))];
        columns.resize(self.schema.fields().len(), unknown);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl PartitionStream for SettingRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = futures::stream::iter([self.rows()]);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
