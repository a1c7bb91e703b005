//! `pg_catalog`, and statements that read it. The tables are those of datafusion-pg-catalog, with `columns` that it
//! leaves out, with `added_tables`, and with the settings of the session (`pg_settings`). Tables of objects that this server does not
//! have are empty (`no_objects`, `empty_queries` with `parameters`). Lists of object identifiers have their type
//! (`oids`). Statements that read only the catalog are rewritten (`rewrite`) into forms that DataFusion can run.
//! Statements that read a table of users are not.

mod added_tables;
mod columns;
mod empty_queries;
mod no_objects;
mod oids;
mod parameters;
mod pg_settings;
mod rewrite;
mod syntax;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use crate::sql::empty_tables::empty_table;
use crate::sql::settings::transactional::SharedSettings;
use crate::users::User;
pub(crate) use oids::is_list_of_oids;
pub(super) use oids::{catalog_field, catalog_schema};
pub(super) use rewrite::rewrite;
pub(super) use syntax::{PG_CATALOG, reads_catalog_only, with_names};

/// The schema of one session.
#[derive(Debug)]
pub(super) struct PgCatalog {
    tables: Arc<dyn SchemaProvider>,
    user: Arc<User>,
    settings: SharedSettings,
}

impl PgCatalog {
    /// Creates the schema from the tables of datafusion-pg-catalog.
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
        let more = added_tables::added_tables().map(str::to_owned);
        self.tables.table_names().into_iter().chain(more).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name == pg_settings::TABLE {
            return Ok(Some(pg_settings::table(&self.settings, &self.user)?));
        }
        if let Some(columns) = no_objects::columns_of_more(name) {
            return empty_table(columns).map(Some);
        }
        if name == added_tables::USERS {
            let roles = self.tables.table("pg_roles").await?;
            return roles.map(added_tables::users).transpose();
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
        self.tables.table_exist(name) || added_tables::is_added(name)
    }
}
