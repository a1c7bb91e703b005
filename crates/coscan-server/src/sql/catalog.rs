//! The tables that a user sees. Nothing else exists for planning, `information_schema` or `pg_catalog`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use coscan_datafusion::{ManagedDatabase, ManagedTable, SharedTableProvider};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion_pg_catalog::pg_catalog::context::{PgCatalogContextProvider, Role};
use datafusion_pg_catalog::pg_catalog::{PgCatalogSchemaProvider, PgCatalogStaticTables};

use crate::sql::information_schema::{INFORMATION_SCHEMA, InformationSchema};
use crate::sql::pg_catalog::{PG_CATALOG, PgCatalog};
use crate::sql::settings::transactional::SharedSettings;
use crate::system_tables::SystemTables;
use crate::users::User;

/// The name of the only catalog, which is the database of the PostgreSQL protocol.
pub const CATALOG: &str = "coscan";

/// The schema of the tables.
pub const SCHEMA: &str = "public";

const SYSTEM: &str = "system";

/// The tables of the server, by name.
pub(crate) type Tables = BTreeMap<String, Arc<SharedTableProvider>>;

/// The catalog of one user.
#[derive(Debug)]
pub(super) struct UserCatalog {
    granted: Arc<GrantedTables>,
    system: Arc<SystemTables>,
    pg_catalog: Arc<dyn SchemaProvider>,
    information: Arc<InformationSchema>,
}

impl UserCatalog {
    pub(super) fn listed(
        user: &Arc<User>,
        tables: &Arc<ArcSwap<Tables>>,
        database: Option<&ManagedDatabase>,
        system: SystemTables,
        pg_tables: &Arc<PgCatalogStaticTables>,
        settings: &SharedSettings,
    ) -> Result<Arc<UserCatalogs>> {
        let role = OwnRole(Arc::clone(user));
        let mut failed = None;
        // `pg_catalog` lists the catalog that contains it.
        let catalogs = Arc::new_cyclic(|catalogs: &Weak<UserCatalogs>| {
            let listed: Arc<dyn CatalogProviderList> = Arc::new(Listed(Weak::clone(catalogs)));
            let information = Arc::new(InformationSchema::new(Arc::clone(&listed)));
            let pg = PgCatalogSchemaProvider::try_new(listed, Arc::clone(pg_tables), role);
            let system = Arc::new(system);
            let granted = Arc::new(GrantedTables {
                user: Arc::clone(user),
                tables: Arc::clone(tables),
                database: database.cloned(),
                system: Arc::clone(&system),
            });
            let pg_catalog: Arc<dyn SchemaProvider> = match pg {
                Ok(pg) => {
                    let (user, settings) = (Arc::clone(user), Arc::clone(settings));
                    Arc::new(PgCatalog::new(Arc::new(pg), user, settings))
                }
                Err(error) => {
                    failed = Some(error);
                    Arc::clone(&system) as Arc<dyn SchemaProvider>
                }
            };
            UserCatalogs(Arc::new(Self { granted, system, pg_catalog, information }))
        });
        failed.map_or(Ok(catalogs), Err)
    }
}

impl CatalogProvider for UserCatalog {
    fn schema_names(&self) -> Vec<String> {
        [SCHEMA, SYSTEM, PG_CATALOG].map(str::to_owned).to_vec()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            SCHEMA => Some(Arc::clone(&self.granted) as Arc<dyn SchemaProvider>),
            SYSTEM => Some(Arc::clone(&self.system) as Arc<dyn SchemaProvider>),
            PG_CATALOG => Some(Arc::clone(&self.pg_catalog)),
            // It is not among the names, since it lists itself.
            INFORMATION_SCHEMA => Some(Arc::clone(&self.information) as Arc<dyn SchemaProvider>),
            _ => None,
        }
    }
}

/// The only catalog of a user, as a list.
#[derive(Debug)]
pub(super) struct UserCatalogs(Arc<UserCatalog>);

impl CatalogProviderList for UserCatalogs {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None // Statements that make catalogs are refused before.
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::clone(&self.0) as Arc<dyn CatalogProvider>)
    }
}

/// A weak reference to the list.
#[derive(Clone, Debug)]
struct Listed(Weak<UserCatalogs>);

impl CatalogProviderList for Listed {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.0.upgrade().and_then(|catalogs| catalogs.catalog(name))
    }
}

/// The tables of the server that a user was granted.
#[derive(Debug)]
struct GrantedTables {
    user: Arc<User>,
    tables: Arc<ArcSwap<Tables>>,
    database: Option<ManagedDatabase>,
    system: Arc<SystemTables>,
}

impl GrantedTables {
    /// A table of the database, if the user may read it.
    fn of_database(&self, name: &str) -> Result<Option<ManagedTable>> {
        match &self.database {
            Some(database) if self.user.tables.includes(name) => database.table(name),
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl SchemaProvider for GrantedTables {
    fn table_names(&self) -> Vec<String> {
        let tables = self.tables.load();
        let of_database = self.database.iter().flat_map(ManagedDatabase::table_names);
        let all = tables.keys().cloned().chain(of_database);
        all.filter(|name| self.user.tables.includes(name)).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let granted = self.user.tables.includes(name);
        let table = self.tables.load().get(name).cloned();
        match table {
            Some(table) => Ok(granted.then(|| Arc::new(table.with_current_columns()) as _)),
            None => match self.of_database(name)? {
                Some(table) => Ok(Some(Arc::new(table))),
                // System tables need no schema before their names, as `pg_table_is_visible` says.
                None => self.system.table(name).await,
            },
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.user.tables.includes(name) && self.tables.load().contains_key(name)
            || self.of_database(name).is_ok_and(|table| table.is_some())
    }
}

/// The only role that a user sees, which is the user's own.
#[derive(Clone, Debug)]
struct OwnRole(Arc<User>);

#[async_trait]
impl PgCatalogContextProvider for OwnRole {
    async fn roles(&self) -> Vec<String> {
        vec![self.0.name.clone()]
    }

    async fn role(&self, name: &str) -> Option<Role> {
        (name == self.0.name).then(|| Role {
            name: name.to_owned(),
            is_superuser: self.0.admin,
            can_login: true,
            can_create_db: false,
            can_create_role: false,
            can_create_user: false,
            can_replication: false,
            grants: Vec::new(),
            inherited_roles: Vec::new(),
        })
    }
}
