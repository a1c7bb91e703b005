//! `pg_catalog`, and statements that read it. The tables are those of datafusion-pg-catalog, with `columns` that it
//! leaves out, `settings` of the session, and without rows where this server has no such objects (`no_objects`).
//! Statements that read nothing but the catalog are rewritten (`rewrite`) into forms that DataFusion can run; statements
//! that read a table of users never are.

mod columns;
mod no_objects;
mod rewrite;
mod settings;
mod syntax;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use crate::engine::session_settings::SharedSettings;
use crate::users::User;
pub(super) use rewrite::rewrite;
pub(super) use syntax::PG_CATALOG;

/// The schema of one session.
#[derive(Debug)]
pub(super) struct PgCatalog {
    tables: Arc<dyn SchemaProvider>,
    user: Arc<User>,
    settings: SharedSettings,
}

impl PgCatalog {
    /// On the tables of datafusion-pg-catalog.
    pub(super) fn new(
        tables: Arc<dyn SchemaProvider>,
        user: Arc<User>,
        settings: SharedSettings,
    ) -> Self {
        Self { tables, user, settings }
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        let more = no_objects::more_tables().map(str::to_owned);
        self.tables.table_names().into_iter().chain(more).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name == settings::TABLE {
            return Ok(Some(settings::table(&self.settings, &self.user)?));
        }
        if let Some(schema) = no_objects::schema_of_more(name) {
            return Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![]])?)));
        }
        let Some(table) = self.tables.table(name).await? else { return Ok(None) };
        if no_objects::has_none(name) {
            return Ok(Some(Arc::new(MemTable::try_new(table.schema(), vec![vec![]])?)));
        }
        columns::complete(name, table).map(Some)
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.tables.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name) || no_objects::more_tables().any(|table| table == name)
    }
}
