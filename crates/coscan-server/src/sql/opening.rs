//! Opens the tables of the server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

#[cfg(not(feature = "delta"))]
use coscan_datafusion::ManagedDatabase;
use coscan_datafusion::SharedTableProvider;
use datafusion::error::DataFusionError;

use super::catalog::Tables;
use super::{SqlService, SqlServiceError, errors};
use crate::config::TableLocation;

impl SqlService {
    /// Opens tables, which sessions see from [`replace_tables`](Self::replace_tables) on.
    ///
    /// # Errors
    /// If tables cannot be opened. The error names all of them.
    pub(crate) async fn opened_tables(
        &self,
        locations: &BTreeMap<String, TableLocation>,
    ) -> Result<Tables, SqlServiceError> {
        let (mut tables, mut failures) = (Tables::new(), Vec::new());
        for (name, location) in locations {
            match self.open_table(name, location).await {
                Ok(table) => {
                    tables.insert(name.clone(), Arc::new(table));
                }
                Err(error) => {
                    failures.push(format!("table {name}: {}", errors::from_datafusion(error)))
                }
            }
        }
        if failures.is_empty() { Ok(tables) } else { Err(SqlServiceError::Tables(failures)) }
    }

    /// Opens the database whose tables users may change.
    ///
    /// # Errors
    /// If it cannot be opened, or one of the server's tables has the name of one of its tables.
    pub(crate) async fn open_database(&self, directory: &Path) -> Result<(), SqlServiceError> {
        #[cfg(feature = "delta")]
        let database = coscan_delta::open_database(self.coscan.clone(), directory).await;
        #[cfg(not(feature = "delta"))]
        let database = ManagedDatabase::open(self.coscan.clone(), directory).await;
        let database = database.map_err(|error| {
            SqlServiceError::Tables(vec![errors::from_datafusion(error).to_string()])
        })?;
        let tables = self.tables.load();
        let names = database.table_names();
        let twice = names.iter().filter(|name| tables.contains_key(*name));
        let twice: Vec<_> = twice
            .map(|name| format!("table {name} is in the database, too: rename one of them"))
            .collect();
        if !twice.is_empty() {
            return Err(SqlServiceError::Tables(twice));
        }
        let _only_once = self.database.set(database);
        Ok(())
    }

    async fn open_table(
        &self,
        name: &str,
        TableLocation { location, replicas }: &TableLocation,
    ) -> Result<SharedTableProvider, DataFusionError> {
        #[cfg(feature = "delta")]
        if coscan_delta::is_table(self.coscan.stores(), location).await? {
            if !replicas.is_empty() {
                return datafusion::common::plan_err!(
                    "a Delta table has no replicas; leave out those of {name}"
                );
            }
            return coscan_delta::open(&self.coscan, self.coscan.stores(), name, location).await;
        }
        let location = std::slice::from_ref(location);
        let mut table = SharedTableProvider::open_as(&self.coscan, name, location).await?;
        for replica in replicas {
            let location = std::slice::from_ref(replica);
            let replica = SharedTableProvider::open(&self.coscan, location).await?;
            table = table.with_replica(&replica).await?;
        }
        Ok(table)
    }
}
