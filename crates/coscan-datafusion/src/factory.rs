//! `CREATE EXTERNAL TABLE … STORED AS PARQUET`.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_storage::stores::StoreOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::CreateExternalTable;

use crate::error::from_store;
use crate::location::table_files;
use crate::provider::SharedTableProvider;
use crate::session::Coscan;

/// Makes shared tables.
#[derive(Debug)]
pub(crate) struct SharedTableFactory {
    coscan: Coscan,
}

impl SharedTableFactory {
    pub(crate) fn new(coscan: Coscan) -> Self {
        Self { coscan }
    }
}

#[async_trait]
impl TableProviderFactory for SharedTableFactory {
    async fn create(
        &self,
        session: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        refuse_unsupported(command)?;
        let runtime = session.runtime_env();
        let options = StoreOptions::new(command.options.clone()).map_err(from_store)?;
        let stores = self.coscan.stores().with_options(options);
        let files = table_files(&stores, Some(runtime), &command.locations).await?;
        let name = command.name.table().to_owned();
        let orders = command.order_exprs.clone();
        let provider = SharedTableProvider::open_files(&self.coscan, files, name, orders).await?;
        check_declared_columns(command.schema.inner(), &provider.schema())?;
        Ok(Arc::new(provider.with_definition(command.definition.clone())))
    }
}

fn refuse_unsupported(command: &CreateExternalTable) -> Result<()> {
    let refused = if !command.table_partition_cols.is_empty() {
        Some("PARTITIONED BY; name one partition's directory as the location".to_owned())
    } else if let Some(option) = other_option(command) {
        Some(format!("OPTIONS such as {option}; leave all out but those for its store"))
    } else if command.unbounded {
        Some("UNBOUNDED tables".to_owned())
    } else if command.constraints.iter().next().is_some() {
        Some("constraints; leave them out".to_owned())
    } else if !command.column_defaults.is_empty() {
        Some("default values; leave them out".to_owned())
    } else {
        None
    };
    match refused {
        None => Ok(()),
        Some(what) => Err(DataFusionError::NotImplemented(format!(
            "a shared table does not support {what} (CREATE EXTERNAL TABLE {})",
            command.name
        ))),
    }
}

/// An option that is not for the store.
fn other_option(command: &CreateExternalTable) -> Option<&String> {
    command.options.keys().filter(|option| !StoreOptions::is_for_store(option)).min()
}

/// Columns may be declared if they are the ones of the files.
fn check_declared_columns(declared: &Schema, actual: &SchemaRef) -> Result<()> {
    if declared.fields().is_empty() {
        return Ok(());
    }
    let same_count = declared.fields().len() == actual.fields().len();
    let same = declared.fields().iter().zip(actual.fields()).all(|(declared, actual)| {
        declared.name() == actual.name() && declared.data_type() == actual.data_type()
    });
    if same_count && same {
        return Ok(());
    }
    let columns = actual
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect::<Vec<_>>();
    Err(DataFusionError::Plan(format!(
        "the declared columns are not those of the files, which are ({}); leave the column list out, or cast in queries",
        columns.join(", ")
    )))
}
