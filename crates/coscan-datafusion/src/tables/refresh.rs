//! Refreshes a table of a session by its name.

use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::cache::TableScopedPath;
use datafusion::prelude::SessionContext;

use crate::tables::provider::SharedTableProvider;

/// Looks for a newer snapshot of a session's table, as [`SharedTableProvider::refresh`] does. The files of a table that
/// DataFusion made are listed by the next query, since their list is removed from the session's cache.
///
/// # Errors
/// As [`SharedTableProvider::refresh`]. Also if there is no such table, or it is neither a shared table nor one that
/// DataFusion made of files.
pub async fn refresh(context: &SessionContext, table: impl Into<TableReference>) -> Result<()> {
    let table = table.into();
    let provider = context.table_provider(table.clone()).await?;
    if let Some(shared) = provider.downcast_ref::<SharedTableProvider>() {
        return shared.refresh().await;
    }
    let Some(listing) = provider.downcast_ref::<ListingTable>() else {
        return plan_err!("{table} has no list of files, so there is nothing to refresh");
    };
    if let Some(lists) = context.runtime_env().cache_manager.get_list_files_cache() {
        for location in listing.table_paths() {
            let path = location.prefix().clone();
            lists.remove(&TableScopedPath { table: location.get_table_ref().clone(), path });
        }
    }
    Ok(())
}
