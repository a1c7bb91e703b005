//! Files that queries name: `SELECT … FROM 's3://bucket/trips/'`.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_storage::stores::URL_LENGTH_MAX;
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::TableReference;
use datafusion::common::plan_err;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::{
    ListingTable, ListingTableConfig, ListingTableConfigExt, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionContext;
use url::Position;

use crate::options::CoscanOptions;
use crate::tables::location::{FileLocator, existing_path, wildcard_of};

/// The extension of files that queries name.
const EXTENSION: &str = ".parquet";

/// Creates a session whose queries may name files, as [`SessionContext::enable_url_table`] does. Errors say why a URL
/// or a path leads to no files. Once coscan is installed, files are looked up in its stores.
#[must_use]
pub fn enable_url_table(context: SessionContext) -> SessionContext {
    let catalogs = Arc::clone(context.state_ref().read().catalog_list());
    let files = Arc::new(NamedFiles::default());
    let catalogs = DynamicFileCatalog::new(catalogs, Arc::clone(&files) as _);
    let session_id = context.session_id();
    let builder = context.into_state_builder().with_session_id(session_id);
    let context = SessionContext::from(builder.with_catalog_list(Arc::new(catalogs)).build());
    files.engine.session_store().with_state(context.state_weak_ref());
    context
}

/// Makes tables of the engine for names of files.
#[derive(Debug, Default)]
struct NamedFiles {
    engine: DynamicListTableFactory,
}

impl NamedFiles {
    /// Looks a table up as [`DynamicListTableFactory`] does, except that lists in the session's cache are kept apart by
    /// store. Otherwise they are found by path alone, and another store may have the same path.
    async fn table(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if url.len() > URL_LENGTH_MAX {
            return Ok(None);
        }
        let session = self.engine.session_store().get_session().upgrade();
        let state = session.and_then(|session| session.read().as_any().downcast_ref().cloned());
        let url = match existing_path(url).await {
            Some(path) => ListingTableUrl::try_new(path, None),
            None => ListingTableUrl::parse(url),
        };
        let (Some(state), Ok(url)) = (state, url) else { return Ok(None) };
        let state: SessionState = state;
        let store = TableReference::bare(&url.get_url()[..Position::BeforePath]);
        let config = ListingTableConfig::new(url.with_table_ref(store));
        let Ok(config) = config.infer_options(&state).await else { return Ok(None) };
        let config = config.infer_partitions_from_path(&state).await?;
        let mut config = config.infer_schema(&state).await?;
        let is_one_file =
            config.table_paths.iter().all(|url| !url.is_collection() && url.get_glob().is_none());
        if !is_one_file {
            config.file_schema = config.file_schema.map(|schema| nullable(&schema));
        }
        Ok(Some(Arc::new(ListingTable::try_new(config)?)))
    }
}

/// Makes all columns nullable. A column that is not nullable in one file may be missing in another, where it is NULL. The engine merges
/// schemas to one where it is not nullable, and then takes `IS NULL` to be false.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
}

#[async_trait]
impl UrlTableFactory for NamedFiles {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = self.table(url).await;
        let is_url = url.contains("://");
        // Other names are names of tables.
        let is_file = is_url || url.contains('/') || url.ends_with(EXTENSION);
        if matches!(found, Ok(Some(_))) || !is_file {
            return found;
        }
        // The engine only reports that there is no such table. Listing the files gives the reason.
        let Some(session) = self.engine.session_store().get_session().upgrade() else {
            return found;
        };
        let (coscan, runtime) = {
            let session = session.read();
            (CoscanOptions::of(session.config()), Arc::clone(session.runtime_env()))
        };
        if let Some(coscan) = coscan {
            let locator = FileLocator {
                stores: coscan.stores(),
                runtime: Some(&runtime),
                ignores_subdirectories: true,
                takes_any_name: false,
            };
            locator.list(&[url.to_owned()]).await?;
            if is_url && wildcard_of(url).is_some() {
                return plan_err!(
                    "A query cannot name files of a store by a pattern ({url}). Name a file or a directory, or use \
                     CREATE EXTERNAL TABLE … LOCATION '{url}'"
                );
            }
        }
        found
    }
}
