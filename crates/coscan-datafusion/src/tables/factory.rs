//! `CREATE EXTERNAL TABLE … STORED AS PARQUET`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use coscan_storage::stores::{StoreError, StoreOptions};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, not_impl_err, plan_err};
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;
use log::debug;

use crate::error::from_store;
use crate::options::CoscanOptions;
use crate::tables::format::file_options;
use crate::tables::hive;
use crate::tables::listing::Listing;
use crate::tables::location::{ListedFile, name_of};
use crate::tables::opener::{Identity, Opener};
use crate::tables::provider::SharedTableProvider;
use crate::tables::replica::{has, stored_fields};

/// The option that names replicas of the table, parsed by [`locations`].
const REPLICAS: &str = "format.replicas";

/// Creates shared tables, or tables of the engine where a shared table does not support the statement.
#[derive(Debug)]
pub(crate) struct SharedTableFactory {
    coscan: CoscanOptions,
}

impl SharedTableFactory {
    pub(crate) fn new(coscan: CoscanOptions) -> Self {
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
        let mut options = command.options.clone();
        let replicas = locations(&options.remove(REPLICAS).unwrap_or_default())?;
        let (of_store, of_format): (HashMap<_, _>, HashMap<_, _>) =
            options.into_iter().partition(|(key, _)| StoreOptions::is_for_store(key));
        // A table with options of its own has a store of its own.
        let of_coscan = self.coscan.stores();
        let (runtime, stores) = match of_store.is_empty() {
            true => (Some(Arc::clone(session.runtime_env())), of_coscan.clone()),
            false => {
                let options = StoreOptions::new(of_store).map_err(from_store)?;
                (None, of_coscan.with_options(options))
            }
        };
        let options = file_options(session, &of_format, self.coscan.table_options())?;
        let options = match unsupported_by(command).map_or(options, |clause| Err(clause.to_owned()))
        {
            Ok(options) => options,
            Err(unsupported) if runtime.is_some() && replicas.is_empty() => {
                debug!("the engine makes table {} itself: {unsupported}", command.name);
                return ListingTableFactory::new().create(session, command).await;
            }
            Err(unsupported) => {
                return not_impl_err!(
                    "the table {} has replicas or options of a store, so that it has to be a shared one, which does \
                     not support {unsupported}; leave that out",
                    command.name
                );
            }
        };
        let execution = &session.config().options().execution;
        let declared = declared_columns(command)?;
        let infers = execution.listing_table_factory_infer_partitions && declared.is_none();
        let mut listing = Listing {
            locations: command.locations.clone(),
            runtime,
            stores,
            ignores_subdirectories: execution.listing_table_ignore_subdirectory,
            takes_any_name: declared.is_some(),
            partitions: Vec::new(),
            columns: declared,
        };
        let files = listing.files().await;
        // Without files the engine makes the directory when rows are inserted, and its tables are shared, too.
        if listing.columns.is_some()
            && listing.runtime.is_some()
            && replicas.is_empty()
            && files.as_ref().map_or_else(is_missing, Vec::is_empty)
        {
            return ListingTableFactory::new().create(session, command).await;
        }
        let files = files?;
        listing.partitions = partition_columns(command, infers, &files)?;
        let opener = Opener {
            coscan: self.coscan.clone(),
            name: command.name.table().to_owned(),
            identity: Identity::Named(listing.identity(options)),
            options,
            orders: command.order_exprs.clone(),
        };
        let mut provider =
            SharedTableProvider::of_listing(opener.clone(), listing.clone(), files).await?;
        for location in replicas {
            let replica = replica((&opener, &listing), &provider.schema(), &location).await?;
            provider = provider.with_replica(&replica).await?;
        }
        let is_of_session = listing.runtime.is_some();
        let provider = provider.with_definition(command.definition.clone());
        Ok(Arc::new(match is_of_session {
            true => provider.with_inserts(command.clone()),
            false => provider,
        }))
    }
}

/// Whether files could not be listed because there are none.
fn is_missing(error: &DataFusionError) -> bool {
    let DataFusionError::External(error) = error.find_root() else { return false };
    matches!(
        error.downcast_ref(),
        Some(StoreError::NotFound { .. } | StoreError::NoParquetFiles { .. })
    )
}

/// Parses locations, which are separated by commas. A location that contains a comma is in double quotes, in which `""`
/// is a quote.
fn locations(list: &str) -> Result<Vec<String>> {
    let (mut locations, mut is_quoted) = (vec![String::new()], false);
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        let current = locations.last_mut().expect("there is one at first");
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => current.push('"'),
            '"' if is_quoted || current.trim().is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => locations.push(String::new()),
            character => current.push(character),
        }
    }
    if is_quoted {
        return plan_err!("in the option 'replicas' a double quote is not closed: {list}");
    }
    let trimmed = locations.iter().map(|location| location.trim().to_owned());
    Ok(trimmed.filter(|location| !location.is_empty()).collect())
}

/// A replica of a table with these columns. Its files declare how they are sorted.
async fn replica(
    (opener, of): (&Opener, &Listing),
    columns: &SchemaRef,
    location: &str,
) -> Result<SharedTableProvider> {
    let mut listing = Listing { locations: vec![location.to_owned()], ..of.clone() };
    let files = listing.files().await?;
    // The directories of a table may be stored columns of its replica, and vice versa.
    listing.partitions = hive::infer(&files)?;
    listing.partitions.retain(|directory| has(columns, directory));
    let stored = || Arc::new(stored_fields(columns, &listing.partitions));
    listing.columns = of.columns.as_ref().map(|_| stored());
    let opener = Opener {
        name: name_of(location),
        identity: Identity::Named(listing.identity(opener.options)),
        orders: Vec::new(),
        ..opener.clone()
    };
    SharedTableProvider::of_listing(opener, listing, files).await
}

/// The clause of a statement that a shared table does not support, if there is one.
fn unsupported_by(command: &CreateExternalTable) -> Option<&'static str> {
    if command.unbounded {
        Some("UNBOUNDED")
    } else if command.constraints.iter().next().is_some() {
        Some("constraints")
    } else if !command.column_defaults.is_empty() {
        Some("default values")
    } else {
        None
    }
}

/// The declared columns that are stored in files, which are all except those of directories. `None` if no columns are
/// declared.
fn declared_columns(command: &CreateExternalTable) -> Result<Option<SchemaRef>> {
    let declared = command.schema.inner();
    if declared.fields().is_empty() {
        return Ok(None);
    }
    let is_stored = |field: &&FieldRef| !command.table_partition_cols.contains(field.name());
    let stored = declared.fields().iter().filter(is_stored).cloned();
    Ok(Some(Arc::new(Schema::new(stored.collect::<Vec<_>>()))))
}

/// The columns of directories: those of PARTITIONED BY, or otherwise those in the names of the directories.
fn partition_columns(
    command: &CreateExternalTable,
    infers: bool,
    files: &[ListedFile],
) -> Result<Vec<FieldRef>> {
    if command.table_partition_cols.is_empty() {
        return if infers { hive::infer(files) } else { Ok(Vec::new()) };
    }
    let declared = command.schema.inner();
    let field = |name: &String| {
        let data_type = match declared.fields().is_empty() {
            true => hive::usual_type(),
            false => declared.field_with_name(name)?.data_type().clone(),
        };
        Ok(Arc::new(Field::new(name, data_type, false)))
    };
    let fields = command.table_partition_cols.iter().map(field).collect::<Result<Vec<_>>>()?;
    hive::check(&fields, files)?;
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_with_a_comma_is_in_quotes() {
        let list = locations(r#" a, "b, c.parquet" ,"say ""x""",, d"e "#).unwrap_or_default();
        assert_eq!(list, ["a", "b, c.parquet", r#"say "x""#, r#"d"e"#]);
        assert!(locations("").is_ok_and(|list| list.is_empty()));
        assert!(locations(r#"a, "b"#).is_err());
    }
}
