//! Metadata: catalogs, schemas, tables, and the capabilities of the server.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    GetCatalogsBuilder, GetDbSchemasBuilder, SqlInfoDataBuilder, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{Command, CommandGetTables};
use datafusion::catalog::CatalogProviderList;
use tonic::Status;

use crate::flight::server_info::{sql_info, type_info};
use crate::flight::wire_types::wire_schema;
use crate::sql::SCHEMA;

const TABLE: &str = "TABLE";
const SYSTEM_TABLE: &str = "SYSTEM TABLE";

/// The schema of the answer to a metadata command, or `None` for other commands.
pub(super) fn schema(command: &Command) -> Option<SchemaRef> {
    let none = None::<String>;
    Some(match command {
        Command::CommandGetCatalogs(_) => GetCatalogsBuilder::new().schema(),
        Command::CommandGetDbSchemas(_) => GetDbSchemasBuilder::new(none.clone(), none).schema(),
        Command::CommandGetTables(command) => command.clone().into_builder().schema(),
        Command::CommandGetTableTypes(command) => command.into_builder().schema(),
        Command::CommandGetSqlInfo(_) => Arc::new(SqlInfoDataBuilder::schema().clone()),
        Command::CommandGetXdbcTypeInfo(_) => XdbcTypeInfoDataBuilder::new().schema(),
        Command::CommandGetPrimaryKeys(_) => primary_keys(),
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => foreign_keys(),
        _ => return None,
    })
}

/// The answer to a metadata command on the catalogs of a session, or `None` for other commands.
pub(super) async fn rows(
    command: Command,
    catalogs: &dyn CatalogProviderList,
    has_database: bool,
) -> Result<Option<RecordBatch>, Status> {
    let rows = match command {
        Command::CommandGetCatalogs(command) => {
            let mut builder = command.into_builder();
            catalogs.catalog_names().into_iter().for_each(|name| builder.append(name));
            builder.build()
        }
        Command::CommandGetDbSchemas(command) => {
            let mut builder = command.into_builder();
            for (catalog, schema) in schemas(catalogs) {
                builder.append(catalog, schema);
            }
            builder.build()
        }
        Command::CommandGetTables(command) => tables(command, catalogs).await,
        Command::CommandGetTableTypes(command) => {
            let mut builder = command.into_builder();
            [TABLE, SYSTEM_TABLE].into_iter().for_each(|name| builder.append(name));
            builder.build()
        }
        Command::CommandGetSqlInfo(mut command) => {
            // Each number is compared with all existing ones.
            command.info.sort_unstable();
            command.info.dedup();
            sql_info(has_database).and_then(|info| command.into_builder(&info).build())
        }
        Command::CommandGetXdbcTypeInfo(command) => {
            type_info().and_then(|types| command.into_builder(&types).build())
        }
        other => Ok(match schema(&other) {
            Some(keys) => RecordBatch::new_empty(keys), // Tables have no keys.
            None => return Ok(None),
        }),
    };
    rows.map(Some).map_err(Status::from)
}

fn schemas(catalogs: &dyn CatalogProviderList) -> Vec<(String, String)> {
    let of = |name: String| {
        let schemas = catalogs.catalog(&name).map(|catalog| catalog.schema_names());
        schemas.unwrap_or_default().into_iter().map(move |schema| (name.clone(), schema))
    };
    catalogs.catalog_names().into_iter().flat_map(of).collect()
}

async fn tables(
    mut command: CommandGetTables,
    catalogs: &dyn CatalogProviderList,
) -> Result<RecordBatch, FlightError> {
    // Each type is compared with all tables.
    command.table_types.sort_unstable();
    command.table_types.dedup();
    let include_schema = command.include_schema;
    let mut builder = command.into_builder();
    for (catalog, schema) in schemas(catalogs) {
        let provider = catalogs.catalog(&catalog).and_then(|catalog| catalog.schema(&schema));
        let Some(provider) = provider else { continue };
        let kind = if schema == SCHEMA { TABLE } else { SYSTEM_TABLE };
        for name in provider.table_names() {
            let columns = if include_schema {
                let table = provider.table(&name).await;
                let table =
                    table.map_err(|error| FlightError::from_external_error(error.into()))?;
                // The table may have been removed meanwhile.
                let Some(table) = table else { continue };
                wire_schema(&table.schema())
            } else {
                Arc::new(Schema::empty())
            };
            builder.append(&catalog, &schema, name, kind, &columns)?;
        }
    }
    builder.build()
}

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn primary_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

fn foreign_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}
