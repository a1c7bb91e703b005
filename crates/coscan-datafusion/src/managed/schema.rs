//! A schema of a session's catalog that has the tables of a database.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::managed::database::ManagedDatabase;
use crate::managed::transactions::SessionTransaction;

/// The database whose tables are in the default schema of a session, in its configuration. Its schema is not found in the
/// catalog, where other schemas may be around it.
#[derive(Debug)]
pub(crate) struct DefaultDatabase {
    database: ManagedDatabase,
    catalog: String,
    schema: String,
}

impl DefaultDatabase {
    /// Whether a session has one.
    pub(crate) fn is_in(config: &SessionConfig) -> bool {
        config.get_extension::<Self>().is_some()
    }

    /// The database in which a session creates a table of this name.
    pub(crate) fn for_table(
        config: &SessionConfig,
        name: &TableReference,
    ) -> Option<ManagedDatabase> {
        let default = config.get_extension::<Self>()?;
        let catalog = name.catalog().unwrap_or(&default.catalog);
        let schema = name.schema().unwrap_or(&default.schema);
        let is_default = catalog == default.catalog && schema == default.schema;
        is_default.then(|| default.database.clone())
    }
}

/// The tables of a database, beside tables and views of a session.
#[derive(Clone, Debug)]
pub(crate) struct ManagedSchema {
    database: ManagedDatabase,
    /// The tables and views that the session adds. They are gone with the session.
    session: Arc<dyn SchemaProvider>,
}

impl ManagedDatabase {
    /// Adds the tables of the database to the default schema of a session. `CREATE TABLE` makes tables of the database there
    /// ([`run_managed_statement`](crate::run_managed_statement)), `DROP TABLE` drops them. Other tables and views stay. Sessions
    /// that are made of this one's state or configuration share its transactions.
    ///
    /// # Errors
    /// If the session has no default schema, or a table of the same name.
    pub fn add_to(&self, context: &SessionContext) -> Result<()> {
        let state = context.state();
        let default = &state.config().options().catalog;
        let catalog = state.catalog_list().catalog(&default.default_catalog);
        let schema = catalog.as_ref().and_then(|catalog| catalog.schema(&default.default_schema));
        let (Some(catalog), Some(session)) = (catalog, schema) else {
            return plan_err!("the session has no default schema: create one first");
        };
        let names = self.table_names();
        if let Some(name) = names.iter().find(|name| session.table_exist(name)) {
            return plan_err!(
                "the session has a table {name} already, and so has {}: drop one of them",
                self.name()
            );
        }
        let schema = ManagedSchema { database: self.clone(), session };
        catalog.register_schema(&default.default_schema, Arc::new(schema))?;
        let (catalog, schema) = (default.default_catalog.clone(), default.default_schema.clone());
        let state = context.state_ref();
        let mut state = state.write();
        SessionTransaction::add_to(state.config_mut());
        let default = DefaultDatabase { database: self.clone(), catalog, schema };
        state.config_mut().set_extension(Arc::new(default));
        Ok(())
    }

    /// Makes it the database in which a session creates tables, and whose tables VACUUM concerns: those of this schema of the
    /// session's catalogs, which has the tables already.
    pub fn set_default(&self, config: &mut SessionConfig, catalog: &str, schema: &str) {
        let (catalog, schema) = (catalog.to_owned(), schema.to_owned());
        config.set_extension(Arc::new(DefaultDatabase { database: self.clone(), catalog, schema }));
    }
}

#[async_trait]
impl SchemaProvider for ManagedSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.database.table_names();
        names.extend(self.session.table_names());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.database.table(name)? {
            Some(table) => Ok(Some(Arc::new(table))),
            None => self.session.table(name).await,
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.database.versions().table(&name).is_some() {
            return plan_err!(
                "{} has a table {name} already: choose another name",
                self.database.name()
            );
        }
        self.session.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.database.versions().table(name).is_some() {
            return plan_err!(
                "{name} is a table of the database {}: DROP TABLE it first (in a program, run_managed_statement does that)",
                self.database.name()
            );
        }
        self.session.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.database.versions().table(name).is_some() || self.session.table_exist(name)
    }
}
