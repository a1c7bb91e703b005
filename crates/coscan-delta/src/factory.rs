//! `CREATE EXTERNAL TABLE … STORED AS DELTA`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use coscan_storage::stores::{StoreOptions, Stores};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, not_impl_err, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use crate::table::DeltaTable;

/// The file types in `STORED AS`. The second is the one of the crate `deltalake`.
const FILE_TYPES: [&str; 2] = ["DELTA", "DELTATABLE"];

/// Adds `CREATE EXTERNAL TABLE … STORED AS DELTA` to a session that has coscan. Call it after
/// [`coscan_datafusion::install`], whose stores and options it keeps.
///
/// # Errors
/// If coscan is not installed in the session.
pub fn install(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    let Some(coscan) = CoscanOptions::of(state.config()) else {
        return plan_err!("Delta tables need coscan: call `coscan_datafusion::install` first");
    };
    let factory = Arc::new(DeltaTableFactory { coscan: coscan.as_ref().clone() });
    for file_type in FILE_TYPES {
        state.table_factories_mut().insert(file_type.to_owned(), Arc::clone(&factory) as _);
    }
    Ok(())
}

#[derive(Debug)]
struct DeltaTableFactory {
    coscan: CoscanOptions,
}

#[async_trait]
impl TableProviderFactory for DeltaTableFactory {
    async fn create(
        &self,
        _: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let [location] = &command.locations[..] else {
            return plan_err!("a Delta table has one location, its directory");
        };
        if let Some(clause) = unsupported_by(command) {
            return not_impl_err!("a Delta table has its columns from its log; leave out {clause}");
        }
        let (of_store, others): (HashMap<_, _>, HashMap<_, _>) = command
            .options
            .clone()
            .into_iter()
            .partition(|(key, _)| StoreOptions::is_for_store(key));
        if let Some(option) = others.keys().min() {
            return plan_err!("a Delta table has no option '{option}'");
        }
        let stores = match of_store.is_empty() {
            true => self.coscan.stores().clone(),
            false => {
                let options = StoreOptions::new(of_store);
                let options =
                    options.map_err(|error| DataFusionError::External(Box::new(error)))?;
                self.coscan.stores().with_options(options)
            }
        };
        let table = open(&self.coscan, &stores, command.name.table(), location).await?;
        Ok(Arc::new(table.with_definition(command.definition.clone())))
    }
}

/// Opens the Delta table in a directory (a path or a URL), which one of these stores has. `name` is its name in EXPLAIN
/// and reports.
///
/// # Errors
/// If there is no Delta table, it needs features that are not supported, or its files cannot be opened.
pub async fn open(
    coscan: &CoscanOptions,
    stores: &Stores,
    name: &str,
    location: &str,
) -> Result<SharedTableProvider> {
    let root = ListingTableUrl::parse(location)?.get_url().clone();
    let table = DeltaTable::new(coscan, stores, root)?;
    let identity = format!("delta {}", table.root());
    SharedTableProvider::from_source(coscan, name, &identity, Arc::new(table)).await
}

/// Whether a location is the directory of a Delta table, which has a `_delta_log`. Files, patterns, and places on web
/// servers, which cannot be listed, are none.
///
/// # Errors
/// If the directory cannot be listed.
pub async fn is_table(stores: &Stores, location: &str) -> Result<bool> {
    let Ok(url) = ListingTableUrl::parse(location) else { return Ok(false) };
    let scheme = url.get_url().scheme();
    let may_be = url.get_glob().is_none()
        && !location.contains(['*', '?', '['])
        && !location.ends_with(".parquet")
        && !matches!(scheme, "http" | "https");
    if !may_be {
        return Ok(false);
    }
    let Ok((_, store)) = stores.resolve(url.get_url()) else { return Ok(false) };
    let log = url.prefix().clone().join("_delta_log");
    match store.list(Some(&log)).next().await {
        None | Some(Err(object_store::Error::NotFound { .. })) => Ok(false),
        Some(Ok(_)) => Ok(true),
        // Opening the table says what is wrong with a local path.
        Some(Err(_)) if scheme == "file" => Ok(false),
        Some(Err(error)) => Err(error.into()),
    }
}

/// The clause of a statement that has no meaning for a Delta table, if there is one.
fn unsupported_by(command: &CreateExternalTable) -> Option<&'static str> {
    if !command.schema.fields().is_empty() {
        Some("the list of columns")
    } else if !command.table_partition_cols.is_empty() {
        Some("PARTITIONED BY")
    } else if !command.order_exprs.is_empty() {
        Some("WITH ORDER")
    } else if command.unbounded {
        Some("UNBOUNDED")
    } else {
        None
    }
}
